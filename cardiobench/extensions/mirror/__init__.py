"""Mirror metrics and datasets so that their Hub names load offline."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"mirror": "cardiobench.extensions.mirror.command"})
