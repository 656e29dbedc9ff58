"""Reuse verified results from a published dataset of results."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    hooks="cardiobench.extensions.reuse.hooks:ReuseHooks",
    commands={"missing": "cardiobench.extensions.reuse.missing"},
)
