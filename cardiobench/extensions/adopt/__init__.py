"""Adopt: a folder of recordings and a table of labels become a dataset, declared in a file, without code."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"adopt": "cardiobench.extensions.adopt.command"})
