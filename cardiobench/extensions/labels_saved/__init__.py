"""Learning curves over training patients, and the number of patients needed for equal scores."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"learning_curve": "cardiobench.extensions.labels_saved.protocol:LearningCurve"},
    figures={"learning_curve": "cardiobench.extensions.labels_saved.figures"},
    tables={"labels_saved": "cardiobench.extensions.labels_saved.write:write_labels_saved"},
)
