"""Predict studies or patients from all of their recordings."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(protocols={"study": "cardiobench.extensions.study.protocol:StudyProbe"})
