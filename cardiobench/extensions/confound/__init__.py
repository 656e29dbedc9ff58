"""Estimate the part of a score that the source dataset or hospital can explain."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"confound": "cardiobench.extensions.confound.protocol:Confound"},
    figures={"confound": "cardiobench.extensions.confound.figures"},
)
