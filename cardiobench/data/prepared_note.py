"""Note of a prepared folder: its sources, and digests that detect changed files."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cardiobench.core.command import command
from cardiobench.core.config import default_cache
from cardiobench.core.errors import BadData, UnwritableOutput, first_n
from cardiobench.core.file_state import file_state
from cardiobench.core.foreign import check_recordings
from cardiobench.core.io import parse_json, sha256_of_file, sha256_of_json, write_json
from cardiobench.data.prepared_labels import LABELS, SCHEMA
from cardiobench.data.spec import DatasetSpec
from cardiobench.results.record import CHECKSUM, Part, checksum, type_adapter

NOTE = "cardiobench.json"
CHECKS = 1
"""Version of the checks of a file whose digest is cached."""
LEFT_OUT = "left_out.parquet"
"""File with the rows of the release whose recording is not in the folder, which lower the coverage."""


@dataclass(frozen=True)
class Preparation(Part):
    """Provenance of a prepared folder, stored in it as `cardiobench.json`.

    Attributes:
        name: Name of the dataset.
        version: Version of the dataset in CardioBench.
        digest: Digest of the rows and file sizes (`RowTable.digest`).
        twin: Whether the data are a synthetic twin.
        missing: Files named in the tables but missing from the raw folder.
        unreadable: Ids of recordings that could not be read and were left out.
        absent: Split -> number of rows of the release missing from the tables.
        linked: Links to files outside the raw folder, which may include recordings or tables; such a folder is not
            published.
        shards: File in `data` -> its SHA-256.
        labels: File in `labels`, the masks and landmarks -> its SHA-256.
        left_out: SHA-256 of `left_out.parquet`; empty if there is none, None in notes of earlier versions.
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
        """Path in the folder -> SHA-256, for each file that is read from it."""
        files = {f"data/{name}": digest for name, digest in self.shards.items()}
        files |= {f"{LABELS}/{name}": digest for name, digest in self.labels.items()}
        return files | ({LEFT_OUT: self.left_out} if self.left_out else {})


def note_content(path: Path) -> dict[str, Any]:
    """Return the JSON object of a note, not yet validated.

    Raises:
        BadData: The file is not a JSON object.
    """
    try:
        return parse_json(path.read_bytes())
    except BadData as error:
        raise BadData(f"{path}: {error}") from error


def is_note_of(path: Path, name: str) -> bool:
    """Return whether a note belongs to a dataset.

    Raises:
        BadData: The file is not a JSON object, or it does not name this dataset and was changed after it was written.
    """
    content = note_content(path)
    if content.get("name") == name:
        return True
    written, found = content.pop(CHECKSUM, None), checksum(content)
    if written != found and (
        written is not None or "left_out" in content
    ):  # Notes of earlier versions have no checksum.
        raise BadData(
            f"{path} names the dataset {content.get('name')!r:.100} instead of {name}, and was changed after it was "
            f"written: its content has the checksum {found}, but {written} is noted. {_advice(path.parent, name)}"
        )
    return False


def read_note(folder: Path, spec: DatasetSpec) -> Preparation:
    """Read the note of a prepared folder.

    Raises:
        BadData: The folder was made by another version of the dataset, or the note is damaged.
    """
    content = note_content(folder / NOTE)
    advice = _advice(folder, spec.name)
    if content.get("version") != spec.version:
        raise BadData(
            f"{folder} contains version {content.get('version')} of {spec.name}, but version {spec.version} is expected. {advice}"
        )
    older = not content.keys() & {CHECKSUM, "left_out"}  # Notes of earlier versions have no checksum.
    written, found = content.pop(CHECKSUM, None), checksum(content)
    if written != found and not older:
        raise BadData(
            f"{folder / NOTE} was changed after it was written: its content has the checksum {found}, but {written} is noted. {advice}"
        )
    try:
        note = type_adapter(Preparation).validate_json(json.dumps(content))
        if outside := [name for name in (*note.shards, *note.labels) if Path(name).name != name]:
            raise ValueError(f"{first_n(outside)} is not a file name")
    except ValueError as error:
        raise BadData(f"{folder / NOTE} was not written by `cardiobench prepare`: {error}. {advice}") from error
    return note


def check_files(folder: Path, note: Preparation, spec: DatasetSpec, *, verify: bool = False) -> None:
    """Compare the files of a prepared folder, which may be somebody else's, with the digests in its note.

    Columns and sizes of the tables are checked before they are decoded. Matching digests are cached together with the
    state of the file, so that the next opening reads no file.

    Args:
        folder: Prepared folder.
        note: Note of the folder.
        spec: The dataset.
        verify: Whether to read every file regardless of the cache.

    Raises:
        BadData: A file was changed, added or removed, or has other columns or sizes than `prepare` writes; the message
            has both values and the next action.
    """
    kept_in = default_cache() / "prepared" / f"{sha256_of_json([CHECKS, str(folder.resolve())])[:32]}.json"
    matched = {} if verify else _kept(kept_in)
    states: dict[str, Any] = {}
    changed: dict[str, str] = {}
    for path in sorted({*note.digests, *_tables(folder, note)}):
        expected, state = note.digests.get(path), _state(folder / path)
        if matched.get(path) != [expected, *state]:
            if expected != (found := _digest(folder / path)):
                changed[path] = _difference(expected, found)
            else:
                _check_table(path, folder, spec)
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


def _check_table(path: str, folder: Path, spec: DatasetSpec) -> None:
    """Check columns, types and sizes of a table of recordings or labels before it is decoded; raises `BadData`."""
    from cardiobench.data.builder import features

    if path == LEFT_OUT:
        return  # A table like those of users, checked when it is read.
    expected = {} if path.startswith(f"{LABELS}/") else features(spec).to_dict()
    try:
        notes = check_recordings(folder / path, expected or SCHEMA.names)
        stated = parse_json(notes).get("info", {}).get("features", {}) if notes and expected else {}
        for name, kind in stated.items():
            if (found := _type(kind)) != (own := _type(expected.get(name))):
                raise BadData(f"its column {name[:60]} has the type {found}; expected {own}")
    except (BadData, AttributeError) as error:
        raise BadData(f"{folder / path}: {error}. {_advice(folder, spec.name)}") from error


def _type(kind: Any) -> str:
    """Return the type of a column as `datasets` names it, and whether it is decoded when it is read."""
    if not isinstance(kind, Mapping):
        return f"{kind!r:.60}"
    decoded = (
        " that is decoded"
        if kind.get("decode", kind.get("_type") in ("Image", "Video", "Audio", "Pdf", "Nifti"))
        else ""
    )
    return f"{kind.get('_type')!s:.60}{decoded}"


def changed_files(folder: Path, note: Preparation) -> list[str]:
    """Return the paths of changed, added or removed recordings and labels, reading every file."""
    found = {f"{name}/{path.name}" for name in ("data", LABELS) for path in (folder / name).glob("*")}
    return sorted(path for path in {*note.digests, *found} if _digest(folder / path) != note.digests.get(path))


def _tables(folder: Path, note: Preparation) -> list[str]:
    """Return the tables in the folder as relative paths."""
    found = [f"{name}/{path.name}" for name in ("data", LABELS) for path in (folder / name).glob("*.parquet")]
    return found + ([LEFT_OUT] if note.left_out is not None and os.path.lexists(folder / LEFT_OUT) else [])


def _digest(path: Path) -> str | None:
    return sha256_of_file(path) if path.is_file() else None


def _state(path: Path) -> tuple[int, ...]:
    """Return the state of a file; empty if it is not a file."""
    return file_state(path) if path.is_file() else ()


def _kept(path: Path) -> dict[str, Any]:
    try:
        return parse_json(path.read_bytes()) if path.is_file() else {}
    except (BadData, OSError):
        return {}


def _difference(expected: str | None, found: str | None) -> str:
    if expected is None:
        return f"has the SHA-256 {found}, but {NOTE} does not list it; remove it if it was added by mistake"
    if found is None:
        return f"is missing or not a file, but {NOTE} lists it with the SHA-256 {expected}"
    return f"has the SHA-256 {found}, but {NOTE} states {expected}"


def _advice(folder: Path, name: str) -> str:
    if folder.parent.name == "snapshots":  # Cache of the Hub client.
        return f"Delete {folder} and run again; it is downloaded again."
    out = folder.parents[1] if (folder.parent.name, folder.name) == ("cardiobench", name) else "DIR"
    return f"Make it again: {command('prepare', name, '--out', out)}"
