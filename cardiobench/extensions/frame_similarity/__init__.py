"""Frame similarity: measure how much cardiac motion the frame vectors preserve."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"frame_similarity": "cardiobench.extensions.frame_similarity.protocol:FrameSimilarity"},
    figures={"frame_similarity": "cardiobench.extensions.frame_similarity.figures"},
)
