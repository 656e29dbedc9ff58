"""Create a dataset from a folder of recordings and a table of labels, without writing code."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"adopt": "cardiobench.extensions.adopt.command"})
