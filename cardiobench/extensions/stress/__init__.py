"""Stress test: measure scores on perturbed recordings."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"stress": "cardiobench.extensions.stress.protocol:Stress"},
    figures={"stress": "cardiobench.extensions.stress.figures"},
)
