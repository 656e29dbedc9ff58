"""One output of the product on fixed input, and the components that make it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.versions.sketch import TOLERANCE


@dataclass(frozen=True)
class Case:
    """One fixed input.

    Attributes:
        make: Takes an empty folder; returns the output as arrays, and ids of components that were found by running.
        components: Ids of those that are known beforehand.
        slow: Whether the quick tests leave it out.
        tolerance: Largest distance of two sketches that were made on two machines.
    """

    make: Callable[[Path], tuple[list[Any], set[str]]]
    components: tuple[str, ...]
    slow: bool = False
    tolerance: float = TOLERANCE


def plain(function: Callable[[Path], list[Any]], *components: str, slow: bool = False) -> Case:
    """Return a case whose components are all known beforehand."""
    return Case(lambda folder: (function(folder), set()), components, slow)
