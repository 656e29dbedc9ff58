"""Alignment: whether recordings lie along the axis that the model's own text draws for a number."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"alignment": "cardiobench.extensions.alignment.protocol:Alignment"},
    figures={"alignment": "cardiobench.extensions.alignment.figures"},
)
