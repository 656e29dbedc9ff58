"""Transfer: the score of a probe on the test patients of a dataset that it did not learn from."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"transfer": "cardiobench.extensions.transfer.protocol:Transfer"},
    figures={"transfer": "cardiobench.extensions.transfer.figures"},
)
