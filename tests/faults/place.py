"""A damaged file and its reader."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """A file that the package reads.

    Attributes:
        make: Writes a good one, and what belongs to it, into a folder; returns the file.
        read: Reads it through a public function; returns whether it was taken for a good one.
        form: Form of the content: binary, text (with numbers) or a mapping (JSON, which is YAML too).
        checked: A checksum covers the content, so that no damage to it passes for a good file.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    form: str = "binary"
    checked: bool = False


def root(path: Path) -> Path:
    """Return the folder that was given to `make`."""
    return next(parent for parent in path.parents if parent.name == "place")
