"""Evaluate ECG tasks with reduced lead sets and compare them with twelve leads."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    conditions={"leads": "cardiobench.extensions.leads.condition"},
    figures={"leads": "cardiobench.extensions.leads.figures"},
    hooks="cardiobench.extensions.leads.hooks:LeadHooks",
)
