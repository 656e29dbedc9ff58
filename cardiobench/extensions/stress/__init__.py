"""Stress: the score that survives when recordings are disturbed."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"stress": "cardiobench.extensions.stress.protocol:Stress"},
    figures={"stress": "cardiobench.extensions.stress.figures"},
)
