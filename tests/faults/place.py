"""A damaged file and its reader."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """File that the package reads.

    Attributes:
        make: Function that writes a valid file, and related ones, into a folder, and returns the file.
        read: Function that reads it through a public function, and returns whether the file was accepted as valid.
        form: Form of the content: binary, text (with numbers) or a mapping (JSON or YAML).
        checked: Whether a checksum covers the content, so that a damaged file is never accepted.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    form: str = "binary"
    checked: bool = False


def root(path: Path) -> Path:
    """Return the folder that `make` received."""
    return next(parent for parent in path.parents if parent.name == "place")
