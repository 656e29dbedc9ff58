"""Manifest of a synthetic twin: the list of its files with their digests, written when it is generated."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadData
from cardiobench.core.io import sha256_of_file, write_json

TWIN_MARK = "SYNTHETIC_TWIN.json"


@dataclass(frozen=True)
class TwinManifest:
    """The files of a twin.

    Attributes:
        folder: that the manifest lies in.
        files: path below the folder -> size and SHA-256.
    """

    folder: Path
    files: Mapping[str, tuple[int, str]]

    def has(self, path: Path, size: int) -> bool:
        """Return whether a file belongs to the twin, by its name and size."""
        entry = self.files.get(path.relative_to(self.folder).as_posix())
        return entry is not None and entry[0] == size

    def foreign_files(self) -> list[str]:
        """Return the files in the folder that the twin was not written with, by content: added or changed ones, not empty ones."""
        foreign = []
        for name, path in _files(self.folder):
            entry = self.files.get(name)
            if path.stat().st_size and (entry is None or sha256_of_file(path) != entry[1]):
                foreign.append(name)
        return foreign


def find_manifest(raw: Path) -> TwinManifest | None:
    """Return the manifest of a raw folder, or of the twin that holds it; None for data that is no twin.

    Raises:
        BadData: a manifest that does not list the twin's files.
    """
    path = next((path for folder in (raw, raw.parent) if (path := folder / TWIN_MARK).is_file()), None)
    if path is None:
        return None
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["files"]
        return TwinManifest(path.parent, {str(name): (int(size), str(sha)) for name, (size, sha) in entries.items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadData(
            f"{path} does not list the files of a synthetic twin. Draw the twin again: cardiobench phantom; "
            "or delete the file if real recordings lie there."
        ) from None


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the manifest of all files that are in a folder now, below the facts about the twin."""
    files = {name: (path.stat().st_size, sha256_of_file(path)) for name, path in _files(folder)}
    write_json({**facts, "files": files}, folder / TWIN_MARK)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield path below a folder and file of all its files but the manifest, those behind links included."""
    for directory, folders, files in os.walk(folder, followlinks=True):
        folders.sort()
        for file in sorted(files):
            path = Path(directory) / file
            if file != TWIN_MARK and path.is_file():
                yield path.relative_to(folder).as_posix(), path
