"""Few-shot: the score of a linear layer that learns from a handful of patients."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"few_shot": "cardiobench.extensions.few_shot.protocol:FewShot"},
    figures={"few_shot": "cardiobench.extensions.few_shot.figures"},
)
