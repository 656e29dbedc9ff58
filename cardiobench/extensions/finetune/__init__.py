"""Finetune: training of a model's own network on the training patients of a task, beside its frozen probe."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"finetune": "cardiobench.extensions.finetune.protocol:Finetune"},
    suites="cardiobench.extensions.finetune.suites",
)
