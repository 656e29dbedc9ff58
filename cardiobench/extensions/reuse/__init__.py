"""Reuse: verified results of others, taken from a dataset of results instead of being computed again."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    known_results="cardiobench.extensions.reuse.known:known_results",
    commands={"missing": "cardiobench.extensions.reuse.missing"},
)
