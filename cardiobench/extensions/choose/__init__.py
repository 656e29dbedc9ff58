"""Choose a model by constraints, validation score and cost."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"choose": "cardiobench.extensions.choose.command"})
