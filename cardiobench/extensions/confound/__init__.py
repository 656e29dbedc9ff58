"""Confound: how much of a score could come from the dataset, or the hospital, of a record."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"confound": "cardiobench.extensions.confound.protocol:Confound"},
    figures={"confound": "cardiobench.extensions.confound.figures"},
)
