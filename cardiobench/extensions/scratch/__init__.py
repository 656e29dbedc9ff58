"""Train networks from scratch as a reference for frozen models."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"scratch": "cardiobench.extensions.scratch.protocol:Scratch"},
    cards="cardiobench.extensions.scratch.cards",
)
