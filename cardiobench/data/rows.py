"""The rows of a dataset before any recording is read: checked, counted, and with a digest of what they came from."""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadData, MissingData, first_n
from cardiobench.data.spec import IN_ALL, DatasetSpec

TWIN_MARK = "SYNTHETIC_TWIN.json"


@dataclass(frozen=True)
class RowTable:
    """All rows of a dataset that are here, one line a recording.

    Attributes:
        listed: every row of the release's tables, those whose file is missing included: what the coverage is counted against.
        frame: the rows whose recording is here: id, patient_id, study_id, split, `media` (path below the raw folder, or a key of the generator), `record` (which one in
            that file, where it holds several), the columns of the spec, and `fingerprint`: a digest of what the recording is read from (file,
            size, change time, key frame), so that an embedding of a replaced file is never taken for the new one's.
        missing: files that the release lists and the folder lacks, or has with nothing inside.
        absent: split (or `IN_ALL`) -> rows that the complete release has and this copy's own tables lack.
        excluded: reason -> ids that the release has and the benchmark leaves out on purpose.
        digest: of the rows and file sizes; the same on every machine that holds the same data.
        twin: true for a synthetic twin, whose scores mean nothing clinically.
    """

    listed: pd.DataFrame
    frame: pd.DataFrame
    missing: tuple[str, ...]
    absent: Mapping[str, int]
    excluded: Mapping[str, tuple[str, ...]]
    digest: str
    twin: bool


def is_twin(raw: Path) -> bool:
    """Return whether a raw folder is a synthetic twin, or the release's own folder inside one."""
    return any((folder / TWIN_MARK).is_file() for folder in (raw, raw.parent))


def safe_join(raw: Path, relative: str) -> Path:
    """Return the file of that relative path; refuses one that leaves the raw folder, by `..` or by a symbolic link."""
    path = raw / relative
    # Plain `os.path`: with `Path.resolve` this check would take half the time of opening a release of 45,000 files.
    root, real = os.path.realpath(raw), os.path.realpath(path)
    if ".." in Path(relative).parts or os.path.commonpath((root, real)) != root:
        raise BadData(f"{relative} leads out of the raw folder {raw}. Put the file itself there.")
    return path


def _parts(raw: Path, relative: str) -> tuple[Path, ...]:
    """Return the files that a recording is read from: of WFDB the header too, which decides about leads, rate and amplitude."""
    path = safe_join(raw, relative)
    if path.suffix not in (".dat", ".mat"):
        return (path,)
    header = path.with_suffix(".hea")
    return (path, safe_join(raw, header.relative_to(raw).as_posix()) if header.is_symlink() else header)


def _stat(path: Path) -> os.stat_result | None:
    """Return the size and time of a file; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def check_rows(spec: DatasetSpec, frame: pd.DataFrame) -> None:
    """Refuse rows that break the dataset's own rules: repeated ids, unknown splits or classes, a patient in two splits, labels out of range."""
    if frame.empty:
        raise MissingData(f"{spec.title}: the raw folder lists no recording at all. Ask for the data at {spec.access}.")
    repeated = frame.loc[frame["id"].duplicated(), "id"].unique()
    if len(repeated):
        raise BadData(
            f"{spec.name}: {len(repeated)} ids stand more than once: {first_n(repeated)}. Each recording needs its own id."
        )
    unknown = sorted(set(frame["split"]) - set(spec.splits))
    if unknown:
        raise BadData(f"{spec.name}: unknown split {first_n(unknown)}; expected one of {', '.join(spec.splits)}.")
    splits = frame.groupby("patient_id")["split"].nunique()
    crossing = splits.index[splits > 1]
    if len(crossing):
        raise BadData(
            f"{spec.name}: {len(crossing)} patients stand in two splits: {first_n(crossing)}. "
            "A patient's recordings must stay together; mend the split column of the raw tables."
        )
    for task in spec.tasks:
        labels = frame[["id", task.target]].dropna()
        if task.kind == "regression" and task.label_range:
            low, high = task.label_range
            outside = labels[~labels[task.target].between(low, high)]
            if len(outside):
                worst = outside.iloc[0]
                raise BadData(
                    f"{spec.name}: {len(outside)} labels '{task.target}' lie outside {low:g}-{high:g} {task.unit}: "
                    f"{worst['id']} has {worst[task.target]:g}. Check the unit and the row in the raw table."
                )
        if task.classes:
            strange = sorted(set(labels[task.target]) - set(task.classes))
            if strange:
                raise BadData(
                    f"{spec.name}: label '{task.target}' has unknown values {first_n(strange)}; expected {', '.join(task.classes)}."
                )


def row_table(
    spec: DatasetSpec,
    rows: Iterable[dict],
    raw: Path | None,
    *,
    excluded: Mapping[str, tuple[str, ...]] | None = None,
    generator: str = "",
    allow_missing: bool = False,
    need_media: bool = True,
) -> RowTable:
    """Check the rows of a dataset and find their files.

    Args:
        spec: the dataset.
        rows: dicts with id, patient_id, split, media and the columns of the spec; absent columns become null.
        raw: raw folder; None for generated data.
        excluded: reason -> ids left out on purpose, for the report.
        generator: digest of the code that generates the recordings; empty where they are files.
        allow_missing: go on without the files that are missing; they are counted all the same.
        need_media: False where only labels are wanted, as for references.

    Raises:
        MissingData: files or rows of the release are missing and `allow_missing` is false.
        BadData: the rows break the dataset's rules (`check_rows`).
    """
    targets = [task.target for task in spec.tasks]
    columns = list(dict.fromkeys(["id", "patient_id", "study_id", "split", "media", "record", *spec.columns, *targets]))
    frame = pd.DataFrame(list(rows))
    frame = frame.reindex(columns=columns) if len(frame) else pd.DataFrame(columns=columns)
    check_rows(spec, frame)
    complete = frame
    twin = raw is not None and is_twin(raw)

    missing: dict[str, str] = {}
    stats = {}
    if raw is not None:
        for relative in frame["media"].unique():
            sizes = []
            for path in _parts(raw, relative):
                status = _stat(path)
                if status is None or not status.st_size:
                    missing[relative] = path.relative_to(raw).as_posix() + (" (empty)" if status else "")
                    break
                sizes.append((status.st_size, status.st_mtime_ns))
            else:
                stats[relative] = sizes
    listed = {**frame["split"].value_counts(), IN_ALL: len(frame)}
    absent = {} if twin else {s: n - int(listed.get(s, 0)) for s, n in spec.expected.items() if listed.get(s, 0) != n}
    if need_media and missing:
        if not allow_missing:
            raise MissingData(
                f"{spec.title}: {len(missing)} of {frame['media'].nunique()} files that the tables name are missing from {raw} or empty: {first_n(missing.values())}. "
                "Complete the download, or go on without them with --allow-missing (the coverage is then stamped on every score)."
            )
        frame = frame[~frame["media"].isin(missing.keys())]
        if frame.empty:
            raise MissingData(
                f"{spec.title}: none of the {len(missing)} files that the tables name is in {raw}: {first_n(missing.values())}."
            )
    if need_media and absent and not allow_missing:
        counts = ", ".join(f"{split} {int(listed.get(split, 0))} of {spec.expected[split]}" for split in absent)
        raise MissingData(
            f"{spec.title}: the tables in {raw} do not list the complete release ({counts} rows). "
            "Complete the download, or go on with --allow-missing (the coverage is then stamped on every score)."
        )
    frame = frame.reset_index(drop=True)
    key_frames = frame["key_frame"] if "key_frame" in frame else [0] * len(frame)
    frame["fingerprint"] = [
        _digest(spec.name, spec.version, generator, str(media), str(record), str(key_frame), str(stats.get(media, "")))
        for media, record, key_frame in zip(frame["media"], frame["record"], key_frames, strict=True)
    ]
    file_sizes = json.dumps({name: [size for size, _ in parts] for name, parts in sorted(stats.items())})
    return RowTable(
        listed=complete,
        frame=frame,
        missing=tuple(missing.values()),
        absent=absent,
        excluded=excluded or {},
        digest=_digest(spec.name, spec.version, generator, complete.to_csv(index=False), file_sizes),
        twin=twin,
    )
