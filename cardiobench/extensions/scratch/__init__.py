"""Scratch: a network that is trained from nothing on the training patients of a task, as a reference for frozen models."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"scratch": "cardiobench.extensions.scratch.protocol:Scratch"},
    cards="cardiobench.extensions.scratch.cards",
)
