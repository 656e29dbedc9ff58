"""Analyse the dimensions that classifiers use, and the structure of embeddings by label and dataset."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"representation": "cardiobench.extensions.representation.protocol:Representation"},
    figures={"representation": "cardiobench.extensions.representation.figures"},
)
