"""External validation: score probes on test patients of other datasets."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"transfer": "cardiobench.extensions.transfer.protocol:Transfer"},
    figures={"transfer": "cardiobench.extensions.transfer.figures"},
)
