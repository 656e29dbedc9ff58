"""Retrieve recordings and generated captions, and test the understanding of negation."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"retrieval": "cardiobench.extensions.retrieval.protocol:Retrieval"},
    figures={"retrieval": "cardiobench.extensions.retrieval.figures"},
)
