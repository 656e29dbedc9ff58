"""Reuse verified results from a published dataset of results."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    known_results="cardiobench.extensions.reuse.known:known_results",
    commands={"missing": "cardiobench.extensions.reuse.missing"},
)
