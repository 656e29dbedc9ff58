"""Labelled frames as a form of answer: the protocol that predicts them, and examples for the report."""

from collections.abc import Iterable
from typing import Any

PROTOCOL = "dense"


def examples(*arguments: Any) -> Iterable[Any]:
    """Return the worst, median and best frames: `frame_examples`, imported on first use."""
    from cardiobench.extensions.dense.examples import frame_examples

    return frame_examples(*arguments)
