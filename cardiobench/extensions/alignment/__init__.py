"""Alignment of recording embeddings with the numeric axis of a model's text embeddings."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"alignment": "cardiobench.extensions.alignment.protocol:Alignment"},
    figures={"alignment": "cardiobench.extensions.alignment.figures"},
)
