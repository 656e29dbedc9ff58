"""Mirror: metrics and datasets in a folder, so that `load_dataset` and `evaluate.load` find them by their Hub names offline."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"mirror": "cardiobench.extensions.mirror.command"})
