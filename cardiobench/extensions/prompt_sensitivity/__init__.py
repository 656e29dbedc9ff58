"""Prompt sensitivity: how much a zero-shot score depends on the wording of its prompts."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"prompt_sensitivity": "cardiobench.extensions.prompt_sensitivity.protocol:PromptSensitivity"},
    figures={"prompt_sensitivity": "cardiobench.extensions.prompt_sensitivity.figures"},
)
