"""Calibration of probabilities and decision curves, with intervals over patients."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"calibration": "cardiobench.extensions.calibration.command"})
