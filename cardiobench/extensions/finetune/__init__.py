"""Fine-tune a model's network on the training patients of a task."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"finetune": "cardiobench.extensions.finetune.protocol:Finetune"},
    suites="cardiobench.extensions.finetune.suites",
)
