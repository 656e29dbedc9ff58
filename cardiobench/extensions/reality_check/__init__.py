"""Evaluate ECG models on raw crops, as in the released code of arXiv:2509.25095."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(conditions={"reality_check": "cardiobench.extensions.reality_check.condition"})
