"""Note of a prepared folder: its sources, and digests that reveal a changed file."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cardiobench.core.config import default_cache
from cardiobench.core.errors import BadData, UnwritableOutput, first_n
from cardiobench.core.io import parse_json, sha256_of_file, sha256_of_json, write_json
from cardiobench.data.prepared_labels import LABELS
from cardiobench.data.spec import DatasetSpec
from cardiobench.results.record import CHECKSUM, Part, checksum, type_adapter

NOTE = "cardiobench.json"
LEFT_OUT = "left_out.parquet"
"""Rows of the release's tables whose recording is not in the folder; what the coverage is counted against."""


@dataclass(frozen=True)
class Preparation(Part):
    """The provenance of a prepared folder, saved in it as `cardiobench.json`.

    Attributes:
        name: Dataset.
        version: Version of the dataset in CardioBench.
        digest: Digest of the rows and file sizes (`RowTable.digest`).
        twin: True for a synthetic twin.
        missing: Files that the tables name and the raw folder lacked.
        unreadable: Ids of recordings that could not be read and were left out.
        absent: Split -> rows of the release that the tables lacked.
        linked: Links out of the raw folder, through which recordings or tables may have come; such a folder is not published.
        shards: File in `data` -> its SHA-256.
        labels: File in `labels`, the masks and landmarks -> its SHA-256.
        left_out: SHA-256 of `left_out.parquet`; empty where there is none, None in a note of an earlier version.
    """

    name: str
    version: str
    digest: str
    twin: bool
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]
    absent: dict[str, int]
    linked: tuple[str, ...]
    shards: dict[str, str]
    labels: dict[str, str] = field(default_factory=dict)
    left_out: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file, with a checksum."""
        content = asdict(self)
        return {**content, CHECKSUM: checksum(content)}

    @property
    def digests(self) -> dict[str, str]:
        """Path in the folder -> SHA-256 of each file that is read from it."""
        files = {f"data/{name}": digest for name, digest in self.shards.items()}
        files |= {f"{LABELS}/{name}": digest for name, digest in self.labels.items()}
        return files | ({LEFT_OUT: self.left_out} if self.left_out else {})


def note_content(path: Path) -> dict[str, Any]:
    """Return the JSON object of a note, not yet validated.

    Raises:
        BadData: No JSON object.
    """
    try:
        return parse_json(path.read_bytes())
    except BadData as error:
        raise BadData(f"{path}: {error}") from error


def is_note_of(path: Path, name: str) -> bool:
    """Return whether a note is that of a dataset.

    Raises:
        BadData: The note names another dataset, or none, and was changed after it was written; or it is no JSON object.
    """
    content = note_content(path)
    if content.get("name") == name:
        return True
    written, found = content.pop(CHECKSUM, None), checksum(content)
    if written != found and (written is not None or "left_out" in content):  # Others are notes of earlier versions.
        raise BadData(
            f"{path} names the dataset {content.get('name')!r:.100} where {name} was looked for, and was changed after it was "
            f"written: its content has the checksum {found}, and {written} is noted. {_advice(path.parent, name)}"
        )
    return False


def read_note(folder: Path, spec: DatasetSpec) -> Preparation:
    """Read the note of a prepared folder.

    Raises:
        BadData: It was made by another version of the dataset, or the note is damaged.
    """
    content = note_content(folder / NOTE)
    advice = _advice(folder, spec.name)
    if content.get("version") != spec.version:
        raise BadData(
            f"{folder} holds version {content.get('version')} of {spec.name}, and this is version {spec.version}. {advice}"
        )
    older = not content.keys() & {CHECKSUM, "left_out"}  # Notes of earlier versions have no checksum.
    written, found = content.pop(CHECKSUM, None), checksum(content)
    if written != found and not older:
        raise BadData(
            f"{folder / NOTE} was changed after it was written: its content has the checksum {found}, and {written} is noted. {advice}"
        )
    try:
        note = type_adapter(Preparation).validate_json(json.dumps(content))
        if outside := [name for name in (*note.shards, *note.labels) if Path(name).name != name]:
            raise ValueError(f"{first_n(outside)} is no file name")
    except ValueError as error:
        raise BadData(f"{folder / NOTE} was not written by `cardiobench prepare`: {error}. {advice}") from error
    return note


def check_files(folder: Path, note: Preparation, *, verify: bool = False) -> None:
    """Compare the files that are read from a prepared folder with the digests in its note.

    Digests that matched are kept in the user's cache together with size and times of the file, so that the next opening
    reads no file for this.

    Args:
        folder: Prepared folder.
        note: Note of the folder.
        verify: Read every file, whatever the cache says.

    Raises:
        BadData: A file was changed, added or removed; names the file, both digests and what to do.
    """
    kept_in = default_cache() / "prepared" / f"{sha256_of_json(str(folder.resolve()))[:32]}.json"
    matched = {} if verify else _kept(kept_in)
    states: dict[str, Any] = {}
    changed: dict[str, str] = {}
    for path in sorted({*note.digests, *_tables(folder, note)}):
        expected, state = note.digests.get(path), _state(folder / path)
        if matched.get(path) != [expected, *state] and expected != (found := _digest(folder / path)):
            changed[path] = _difference(expected, found)
        states[path] = [expected, *state]
    if changed:
        (first, difference), *others = changed.items()
        also = f" Also changed: {first_n(path for path, _ in others)}." if others else ""
        raise BadData(
            f"{folder} was changed after it was written: {first} {difference}.{also} {_advice(folder, note.name)}"
        )
    if states != matched:
        with contextlib.suppress(UnwritableOutput):  # A failed write only costs time at the next opening.
            write_json(states, kept_in)


def changed_files(folder: Path, note: Preparation) -> list[str]:
    """Return the paths of recordings and labels that differ from the note: changed, added or gone; every file is read."""
    found = {f"{name}/{path.name}" for name in ("data", LABELS) for path in (folder / name).glob("*")}
    return sorted(path for path in {*note.digests, *found} if _digest(folder / path) != note.digests.get(path))


def _tables(folder: Path, note: Preparation) -> list[str]:
    """Return the tables that lie in the folder, as paths below it."""
    found = [f"{name}/{path.name}" for name in ("data", LABELS) for path in (folder / name).glob("*.parquet")]
    return found + ([LEFT_OUT] if note.left_out is not None and os.path.lexists(folder / LEFT_OUT) else [])


def _digest(path: Path) -> str | None:
    return sha256_of_file(path) if path.is_file() else None


def _state(path: Path) -> tuple[int, ...]:
    """Return size and times of a file; nothing where it is none."""
    if not path.is_file():
        return ()
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _kept(path: Path) -> dict[str, Any]:
    try:
        return parse_json(path.read_bytes()) if path.is_file() else {}
    except (BadData, OSError):
        return {}


def _difference(expected: str | None, found: str | None) -> str:
    if expected is None:
        return f"has the SHA-256 {found}, and {NOTE} does not list it; remove it if it was added by mistake"
    if found is None:
        return f"is missing or not a file, and {NOTE} lists it with the SHA-256 {expected}"
    return f"has the SHA-256 {found}, and {NOTE} says {expected}"


def _advice(folder: Path, name: str) -> str:
    if folder.parent.name == "snapshots":  # Cache of the Hub client.
        return f"Delete {folder} and run again; it is downloaded again."
    return f"Make it again: cardiobench prepare {name} --out ..."
