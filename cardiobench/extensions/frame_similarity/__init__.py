"""Frame similarity: how much of the motion of a heart the vectors of its frames keep."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"frame_similarity": "cardiobench.extensions.frame_similarity.protocol:FrameSimilarity"},
    figures={"frame_similarity": "cardiobench.extensions.frame_similarity.figures"},
)
