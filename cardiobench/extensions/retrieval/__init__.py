"""Retrieval between recordings and captions made of measurements, and the understanding of negations."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"retrieval": "cardiobench.extensions.retrieval.protocol:Retrieval"},
    figures={"retrieval": "cardiobench.extensions.retrieval.figures"},
)
