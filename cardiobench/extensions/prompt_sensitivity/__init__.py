"""Measure the sensitivity of zero-shot scores to prompt wording."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"prompt_sensitivity": "cardiobench.extensions.prompt_sensitivity.protocol:PromptSensitivity"},
    figures={"prompt_sensitivity": "cardiobench.extensions.prompt_sensitivity.figures"},
)
