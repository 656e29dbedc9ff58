"""One output of the package on fixed input, and the components that produce it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.versions.sketch import TOLERANCE


@dataclass(frozen=True)
class Case:
    """Case with one fixed input.

    Attributes:
        make: Function of an empty folder that returns the output as arrays, and the component ids found by running.
        components: Ids of components that are known in advance.
        slow: Whether the quick tests skip the case.
        tolerance: Largest allowed distance between sketches from two machines.
    """

    make: Callable[[Path], tuple[list[Any], set[str]]]
    components: tuple[str, ...]
    slow: bool = False
    tolerance: float = TOLERANCE


def plain(function: Callable[[Path], list[Any]], *components: str, slow: bool = False) -> Case:
    """Return a case whose components are all known in advance."""
    return Case(lambda folder: (function(folder), set()), components, slow)
