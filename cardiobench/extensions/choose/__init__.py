"""Choose a model: what the constraints leave, what cannot be told apart from the best of it, and the cheapest of that."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"choose": "cardiobench.extensions.choose.command"})
