"""Few-shot evaluation: scores of linear probes trained on a handful of patients."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"few_shot": "cardiobench.extensions.few_shot.protocol:FewShot"},
    figures={"few_shot": "cardiobench.extensions.few_shot.figures"},
)
