"""Study: one answer from all recordings of a study or patient, by attention, their mean or the best single view."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(protocols={"study": "cardiobench.extensions.study.protocol:StudyProbe"})
