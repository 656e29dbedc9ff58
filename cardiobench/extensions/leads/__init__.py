"""Fewer leads: every ECG task with some of the twelve leads, in training and in test, and the loss against twelve."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    conditions={"leads": "cardiobench.extensions.leads.condition"},
    figures={"leads": "cardiobench.extensions.leads.figures"},
    after_model="cardiobench.extensions.leads.loss:compare_lead_sets",
)
