"""Choice of a model by constraints, groups of equal validation scores, and cost."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"choose": "cardiobench.extensions.choose.command"})
