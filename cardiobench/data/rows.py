"""Rows of a dataset before any recording is read: checked, counted, and with a digest of their source files."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.command import command
from cardiobench.core.errors import BadData, MissingData, counted, first_n
from cardiobench.core.io import sha256_of_file
from cardiobench.data.digests import column_digest, text_digest
from cardiobench.data.file_index import FileIndex, SourceFile, companions
from cardiobench.data.hints import with_hints
from cardiobench.data.release_counts import absent_rows, check_class_counts
from cardiobench.data.spec import DatasetSpec
from cardiobench.data.twin_manifest import GENERATED, TWIN_MARK, TwinManifest, find_manifest, is_generated
from cardiobench.tasks.labels import strange_labels

FRACTION_ROWS = 3
"""Minimum number of percentages, all at most 1, that are recognised as fractions."""
HEADERS_READ = 16
"""Number of recordings whose headers are read to recognise a twin without manifest."""
ARCHIVES = {
    ".zip": "unzip {0}",
    ".tar": "tar xf {0}",
    ".tgz": "tar xf {0}",
    ".gz": "tar xf {0}",
    ".7z": "7z x {0}",
    ".rar": "unrar x {0}",
}
"""Suffix of an archive -> command that unpacks it."""


@dataclass(frozen=True)
class RowTable:
    """Available rows of a dataset, one per recording.

    Attributes:
        listed: All rows of the release's tables, including those with a missing file; the denominator of the coverage.
        frame: Rows with an available recording: id, patient_id, study_id, split, `media` (path below the raw folder, or
            a key of the generator), `record` (position in a file with several records), the columns of the spec, and
            `fingerprint` and `hint`, digests of the states of the source files and of the key frame (`data.hints`).
        missing: Files listed in the release that are missing from the folder or empty.
        absent: Mapping from split to number of rows of the complete release missing from this copy's tables; an
            estimate if unknown, and at least 1 if any may be missing.
        excluded: Mapping from reason to ids of the release that the benchmark excludes on purpose.
        digest: Digest of rows and file sizes; equal on all machines with the same data.
        twin: Whether the data are a synthetic twin, whose scores have no clinical meaning.
        missing_tables: Missing files that contain labels.
    """

    listed: pd.DataFrame
    frame: pd.DataFrame
    missing: tuple[str, ...]
    absent: Mapping[str, int]
    excluded: Mapping[str, tuple[str, ...]]
    digest: str
    twin: bool
    missing_tables: tuple[str, ...] = ()


def safe_join(raw: Path, relative: str) -> Path:
    """Return the file for a relative path stated in a data file.

    Links below the folder are followed; a path that leaves the folder without a link is refused.

    Raises:
        BadData: The path is absolute or leads out of the folder.
    """
    check_relative(raw, relative)
    return raw / relative


def check_relative(raw: Path, relative: str) -> None:
    """Refuse a path that leads out of the raw folder without a link (`safe_join`)."""
    parts = relative.split("/")
    if parts[0] == "" or relative[0] == "\\" or ".." in parts or "\0" in relative or ":" in parts[0]:
        raise BadData(f"{relative!r} points outside the raw folder {raw}. Correct the table that names it.")


def links_out(raw: Path) -> tuple[str, ...]:
    """Return relative paths of symlinks that point outside the folder, without following them."""
    root = os.path.realpath(raw)
    links = []
    for directory, folders, files in os.walk(raw):
        for name in (*folders, *files):
            path = Path(directory) / name
            if path.is_symlink() and os.path.commonpath((root, os.path.realpath(path))) != root:
                links.append(path.relative_to(raw).as_posix())
    return tuple(sorted(links))


def check_rows(spec: DatasetSpec, frame: pd.DataFrame) -> None:
    """Check rows against the dataset's own rules.

    Raises:
        MissingData: There are no rows.
        BadData: Ids are repeated, splits or classes are unknown, a patient is in two splits, or labels are out of range
            or in another unit.
    """
    if frame.empty:
        raise MissingData(f"{spec.title}: the raw folder lists no recordings. Request the data at {spec.access}.")
    hashes = np.sort(_hashes(frame["id"]))
    if (hashes[1:] == hashes[:-1]).any():
        repeated = frame.loc[frame["id"].duplicated(), "id"].unique()
        raise BadData(
            f"{spec.name}: {counted(len(repeated), 'id')} in several rows: {first_n(repeated)}. Each recording needs its own id."
        )
    unknown = sorted(set(frame["split"].unique()) - set(spec.splits))
    if unknown:
        raise BadData(f"{spec.name}: unknown split {first_n(unknown)}; expected one of {', '.join(spec.splits)}.")
    crossing = _in_two_splits(frame)
    if crossing:
        raise BadData(
            f"{spec.name}: {len(crossing)} patients are in two splits: {first_n(crossing)}. "
            "A patient's recordings must stay together; correct the split column of the raw tables."
        )
    for task in spec.tasks:
        if task.classes:
            cells = frame[task.target].drop_duplicates().dropna()
            if strange := strange_labels(cells, task):
                raise BadData(
                    f"{spec.name}: label '{task.target}' has unknown values {first_n(strange)}; expected {', '.join(task.classes)}."
                )
            continue
        labels = frame[task.target].dropna()
        if task.rules.answer == "number" and task.label_range:
            low, high = task.label_range
            outside = labels[~labels.between(low, high)]
            if len(outside):
                raise BadData(
                    f"{spec.name}: {len(outside)} labels '{task.target}' are outside {low:g}-{high:g} {task.unit}: "
                    f"{frame.loc[outside.index[0], 'id']} has {outside.iloc[0]:g}. Check the unit and the row in the raw table."
                )
        if task.unit == "%" and len(labels) >= FRACTION_ROWS and 0 < labels.max() <= 1:
            raise BadData(
                f"{spec.name}: all {len(labels)} labels '{task.target}' are at most 1, so they are fractions, but the unit is "
                "%. Multiply the column of the raw table by 100."
            )


def _hashes(texts: pd.Series) -> np.ndarray:
    """Return hashes, uint64 (n,), which are compared several times faster than millions of texts."""
    return pd.util.hash_array(texts.to_numpy(dtype=object), categorize=False)


def _in_two_splits(frame: pd.DataFrame) -> list[str]:
    """Return the patients with rows in several splits, sorted."""
    patients, _ = pd.factorize(_hashes(frame["patient_id"]))
    splits, _ = pd.factorize(frame["split"])
    one = np.empty(len(frame), dtype=splits.dtype)
    one[patients] = splits  # Last row of each patient.
    rows = frame[np.isin(patients, patients[splits != one[patients]])]
    counts = rows.groupby("patient_id", dropna=False)["split"].nunique()  # Two patients may have the same hash.
    return sorted(counts.index[counts > 1])


def row_table(
    spec: DatasetSpec,
    rows: Iterable[dict] | pd.DataFrame,
    raw: Path | None,
    *,
    excluded: Mapping[str, tuple[str, ...]] | None = None,
    missing_tables: Sequence[str] = (),
    candidates: Iterable[str] = (),
    label_files: Sequence[str] = (),
    generator: str = "",
    allow_missing: bool = False,
    need_media: bool = True,
    verify: bool = False,
) -> RowTable:
    """Check the rows of a dataset and find their files.

    Args:
        spec: The dataset.
        rows: Dicts or a frame with id, patient_id, split, media and the columns of the spec; missing columns become
            null.
        raw: Raw folder; None for generated data.
        excluded: Mapping from reason to ids excluded on purpose, for the report.
        missing_tables: Missing files with labels, without which some rows cannot be read.
        candidates: Possible patient ids of the release, if its splits follow from the id (`absent_rows`).
        label_files: Files with masks or points, which the digest includes.
        generator: Digest of the code that generates the recordings; empty if they are files.
        allow_missing: Whether to continue without missing files, which are counted.
        need_media: Whether recordings are needed; False if only labels are, as for references.
        verify: Whether fingerprints use the content of the files instead of their modification times.

    Raises:
        MissingData: Files or rows of the release are missing and `allow_missing` is false.
        BadData: The rows violate the dataset's rules (`check_rows`), or the folder mixes a synthetic twin with other
            files.
    """
    targets = [task.target for task in spec.all_tasks]
    columns = list(dict.fromkeys(["id", "patient_id", "study_id", "split", "media", "record", *spec.columns, *targets]))
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    absent_column = pd.Series(np.nan, index=frame.index)
    frame = (
        pd.DataFrame({name: frame.get(name, absent_column) for name in columns}, copy=False)
        if len(frame)
        else pd.DataFrame(columns=columns)
    )
    check_rows(spec, frame)

    manifest = None if raw is None else find_manifest(raw)
    missing: dict[str, str] = dict.fromkeys(missing_tables, "")
    sources: dict[str, list[SourceFile]] = {}
    if raw is not None:
        missing, sources, spelled = _find_files(raw, frame["media"].unique(), manifest)
        if manifest is None:
            _refuse_generated(spec, raw, list(sources))
        if any(name != relative for relative, name in spelled.items()):
            frame["media"] = frame["media"].map(spelled)
    listed = frame
    absent = {} if manifest else absent_rows(spec, listed, candidates)
    if raw is not None and not absent and not manifest and not allow_missing:
        check_class_counts(spec, listed)
    lacking = (*missing_tables, *missing.values())
    if need_media and not allow_missing:
        _refuse_incomplete(spec, listed, raw, lacking, absent)
    if need_media and missing:
        frame = frame[~frame["media"].isin(missing.keys())]
        if frame.empty:
            raise MissingData(
                f"{spec.title}: none of the {len(missing)} files named in the tables is in {raw}: "
                f"{first_n(missing.values())}.{archive_hint(raw)}"
            )
    frame = frame.set_axis(pd.RangeIndex(len(frame)), copy=False)  # The frame shares its columns with the listed table.
    origin = "\x1f".join((spec.name, spec.version, generator))
    frame = with_hints(frame, sources, origin, FileIndex(raw) if verify and raw is not None else None)
    label_digests = [sha256_of_file(raw / name) for name in label_files] if raw is not None else []
    file_sizes = json.dumps({name: [one.state.size for one in files] for name, files in sorted(sources.items())})
    return RowTable(
        listed=listed,
        frame=frame,
        missing=lacking,
        missing_tables=tuple(missing_tables),
        absent=absent,
        excluded=excluded or {},
        digest=text_digest(origin, *(column_digest(listed[name]) for name in listed), file_sizes, *label_digests),
        twin=manifest is not None,
    )


def _find_files(
    raw: Path, media: Iterable[str], manifest: TwinManifest | None
) -> tuple[dict[str, str], dict[str, list[SourceFile]], dict[str, str]]:
    """Find the files of recordings.

    Returns:
        Recording -> missing file; recording -> its files; and the spelling of each recording on disk, which is also the
        key of the first two.
    """
    index = FileIndex(raw)
    missing: dict[str, str] = {}
    sources: dict[str, list[SourceFile]] = {}
    spelled: dict[str, str] = {}
    foreign: list[str] = []
    sizes = manifest.sizes(raw) if manifest else {}
    for relative in media:
        check_relative(raw, relative)
        found = index.find(relative)
        if found is None:
            missing[relative] = spelled[relative] = relative
            continue
        name = spelled[relative] = found
        files: list[SourceFile] = []
        for part in companions(name):
            path = index.find(part)
            found_here = [] if path is None else index.sources(path)
            if path is None or not found_here:
                missing[name] = part + (" (empty)" if path and index.stat(path) else "")
                break
            if manifest and sizes.get(path) != found_here[0].state.size:
                foreign.append(path)
            files += found_here
        else:
            sources[name] = files
    if manifest and foreign:
        raise BadData(
            f"{raw} is marked as a synthetic twin, but {len(foreign)} of its files do not belong to it: {first_n(foreign)}. "
            "Keep a release and its twin in separate folders."
        )
    return missing, sources, spelled


def _refuse_generated(spec: DatasetSpec, raw: Path, media: Sequence[str]) -> None:
    """Refuse a twin without manifest, recognised by the headers of sampled recordings."""
    for relative in media[:: max(len(media) // HEADERS_READ, 1)]:
        if any(is_generated(raw / file) for file in companions(relative)):
            raise BadData(
                f"{relative} in {raw} was {GENERATED}, but its mark {TWIN_MARK} is missing. Generate the "
                f"twin again in a new folder: {command('phantom', spec.name, '--out', 'DIR')}; or give the folder of the release only."
            )


def _refuse_incomplete(
    spec: DatasetSpec, listed: pd.DataFrame, raw: Path | None, lacking: Sequence[str], absent: Mapping[str, int]
) -> None:
    if lacking:
        raise MissingData(
            f"{spec.title}: {len(lacking)} of {listed['media'].nunique()} files named in the tables are missing from {raw} "
            f"or empty: {first_n(lacking)}.{archive_hint(raw)} Complete the download, or continue without them with "
            "--allow-missing (the coverage is then stamped on every score)."
        )
    if absent:
        here = listed["split"].value_counts()
        counts = ", ".join(
            f"{split} {int(here.get(split, 0))} of {int(here.get(split, 0)) + count}" for split, count in absent.items()
        )
        raise MissingData(
            f"{spec.title}: the tables in {raw} do not list the complete release ({counts} rows).{archive_hint(raw)} "
            "Complete the download, or continue with --allow-missing (every score then states its coverage)."
        )


def archive_hint(folder: Path | None) -> str:
    """Describe the archives in a folder and how to unpack them; empty if there are none."""
    if folder is None or not folder.is_dir():
        return ""
    archives = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in ARCHIVES and _is_archive(path))
    if not archives:
        return ""
    commands = [ARCHIVES[Path(name).suffix.lower()].format(name) for name in archives]
    return f" {len(archives)} archives are not unpacked: {first_n(commands)}."


def _is_archive(path: Path) -> bool:
    return path.suffix.lower() != ".gz" or path.name.lower().endswith(".tar.gz")
