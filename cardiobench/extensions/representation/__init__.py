"""Representation: the dimensions that a classifier uses, and whether labels or datasets shape the embedding space."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"representation": "cardiobench.extensions.representation.protocol:Representation"},
    figures={"representation": "cardiobench.extensions.representation.figures"},
)
