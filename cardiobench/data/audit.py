"""Audit of a copy of a dataset: counts, split leakage, duplicates, missing files."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from cardiobench.data import catalog
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.examine import Examined, examine
from cardiobench.data.media.types import FrameSampling
from cardiobench.data.spec import Task
from cardiobench.tasks.labels import label_values

# Patients. A resample lacks a class of k patients with probability e**-k, which is 2 % or more below this count.
FEW = 5


def audit(source: OpenDataset, *, media: bool = True, examined: Examined | None = None) -> list[AuditFinding]:
    """Check a dataset for counts, split leakage, duplicates and missing files, without changing or refusing anything.

    Args:
        source: The dataset, opened from its raw folder.
        media: Whether to also read every recording, for duplicates by content, remarks and `recording_findings`, and
            every mask and landmark.
        examined: Remarks on the recordings, if they were examined before (`examine_recordings`).

    Returns:
        Findings in a fixed order; a check without findings has a count of 0.
    """
    builder = catalog.builder(source.spec.name)
    listed = source.table.listed
    findings = [*_counts(source), *_rare_classes(source), *_patients(source)]
    loose = pd.Series(
        [builder.normalized_patient_id(row) for row in listed.to_dict("records")], listed.index, dtype=object
    )
    findings.append(loose_groups(listed, loose))
    findings.append(
        AuditFinding(
            "files named by the tables but missing from the folder",
            len(source.table.missing),
            "files",
            source.table.missing,
        )
    )
    for split, count in source.table.absent.items():
        findings.append(AuditFinding(f"{split}: rows of the complete release that this copy lacks", count, "rows"))
    for reason, ids in source.table.excluded.items():
        findings.append(AuditFinding(f"left out: {reason}", len(ids), "names", tuple(ids)))
    findings += builder.audit_findings(source.raw, listed)
    if media and source.raw is not None:
        findings.append(_doubles(source.raw, source.frame))
        findings += (examined or examine_recordings(source)).audit_findings()
        findings += builder.recording_findings(source.raw, source.frame)
        findings += [bad_labels(source, task) for task in source.spec.dense_tasks]
    return findings


def audit_folder(name: str, data_dir: str | Path | None = None, *, media: bool = True) -> list[AuditFinding]:
    """Audit the raw folder of a dataset, incomplete or not.

    Args:
        name: Name of the dataset.
        data_dir: Raw folder.
        media: Whether to also read every recording.

    Raises:
        UnknownName: There is no such dataset.
        MissingData: The raw folder or one of its tables is missing.
        BadData: The tables violate the dataset's rules, such as a patient in two splits.
    """
    return audit(open_folder(name, data_dir), media=media)


def open_folder(name: str, data_dir: str | Path | None = None) -> OpenDataset:
    """Open the raw folder of a dataset, incomplete or not, or its tables if it has none; raises the errors of `audit_folder`."""
    builder = catalog.builder(name)
    table = builder.table(data_dir, allow_missing=True, need_media=builder.has_recordings())
    return OpenDataset(builder.SPEC, builder.find_raw(data_dir), table)


def examine_recordings(source: OpenDataset, advance: Callable[[int], None] = lambda count: None) -> Examined:
    """Read every recording of a dataset and return the remarks on them.

    Args:
        source: The dataset.
        advance: Function called with the number of recordings read.
    """
    every = FrameSampling(count=None)
    return examine(list(source.frame["id"]), lambda number: source.recording(number, every), source.spec.media, advance)


def _counts(source: OpenDataset) -> Iterator[AuditFinding]:
    for task in source.spec.all_tasks:
        references = source.references(task)
        for split in source.spec.splits:
            part = references[references["split"] == split]
            patients = part["patient_id"].nunique()
            note = f"{patients} patients"
            if task.classes:
                classes = task.rules.each_class(part["y_true"]).value_counts()
                note += "; " + ", ".join(f"{name} {classes[name]}" for name in task.classes if name in classes)
            yield AuditFinding(f"{task.name} {split}", len(part), task.unit_column, note=note)


def _rare_classes(source: OpenDataset) -> Iterator[AuditFinding]:
    """Yield the classes of multilabel tasks with few test patients, whose AUROC is unreliable."""
    for task in source.spec.tasks:
        if task.rules.answer == "labels":
            references = source.references(task)
            test = references[references["split"] == "test"]
            present = pd.DataFrame(label_values(test["y_true"], task) == 1, columns=task.classes)
            patients = present.groupby(test["patient_id"].to_numpy()).any().sum()
            rare = [f"{name} ({count})" for name, count in patients.sort_values(kind="stable").items() if count < FEW]
            yield AuditFinding(
                f"{task.name} test: classes of fewer than {FEW} patients", len(rare), "classes", tuple(rare)
            )


def _patients(source: OpenDataset) -> Iterator[AuditFinding]:
    listed = source.table.listed
    yield crossing(listed, listed["patient_id"], "patients in two splits")
    for task in source.spec.tasks:
        if task.rules.two_classes:
            rows = source.references(task)
            yield both_labels(rows, task)
            for split in source.spec.splits:
                sick = rows[(rows["split"] == split) & (rows["y_true"] == task.classes[1])]
                yield AuditFinding(
                    f"{task.name} {split}: patients with the answer '{task.classes[1]}'",
                    sick["patient_id"].nunique(),
                    "patients",
                    note="they determine every score",
                )


def bad_labels(source: OpenDataset, task: Task) -> AuditFinding:
    """Return the unusable labels of a dense task, each with its file, row and reason."""
    reasons = tuple(label.reason for label in source.dense_labels(task) if label.reason)
    return AuditFinding(f"{task.name}: frames whose label cannot be used", len(reasons), "frames", reasons)


def both_labels(references: pd.DataFrame, task: Task) -> AuditFinding:
    """Return the patient ids that have recordings of both classes."""
    labels = references.groupby("patient_id")["y_true"].nunique()
    ids = tuple(labels.index[labels > 1])
    return AuditFinding(f"{task.name}: patient ids with both labels", len(ids), "patients", ids)


def crossing(rows: pd.DataFrame, key: pd.Series, check: str) -> AuditFinding:
    """Return the values of a key whose rows are in more than one split."""
    splits = rows["split"].groupby(key).nunique()
    crossed = splits.index[splits > 1]
    affected = int(key.isin(crossed).sum())
    return AuditFinding(check, len(crossed), "groups", tuple(map(str, crossed)), f"{affected} rows" if affected else "")


def loose_groups(rows: pd.DataFrame, loose: pd.Series) -> AuditFinding:
    """Return the patients in two splits whose ids are equal after normalization."""
    check = "patients in two splits when ids are compared loosely"
    if loose.isna().all():
        return AuditFinding(check, 0, "groups", note="ids of this dataset cannot be compared loosely")
    return crossing(rows, loose, check)


def _doubles(raw: Path, rows: pd.DataFrame) -> AuditFinding:
    """Return groups of byte-identical recordings."""
    sizes = defaultdict(list)
    for relative in rows["media"].unique():
        sizes[(raw / relative).stat().st_size].append(relative)
    same = defaultdict(list)
    for files in sizes.values():
        for relative in files if len(files) > 1 else ():
            with (raw / relative).open("rb") as stream:
                same[hashlib.file_digest(stream, "sha256").hexdigest()].append(relative)
    groups = [files for files in same.values() if len(files) > 1]
    split = rows.drop_duplicates("media").set_index("media")["split"]
    crossed = sum(split[files].nunique() > 1 for files in groups)
    examples = tuple(" = ".join(files) for files in groups)
    return AuditFinding(
        "byte-identical recordings",
        len(groups),
        "groups",
        examples,
        f"{crossed} of these groups in two splits",
    )
