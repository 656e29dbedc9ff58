"""Parse the user's answers from the flags of `cardiobench adopt`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import unknown_name
from cardiobench.extensions.adopt.columns import NAMES, role_column, slug

if TYPE_CHECKING:
    import pandas as pd

NONE = "none"
"""Answer for "no such column"."""
ROLES = tuple(NAMES)
OF_COLUMNS = ("roles", "sexes", "renamed")
"""Mappings of `Answers` whose keys are not names of tasks."""


@dataclass(frozen=True)
class Answers:
    """User's answers for facts that the files do not state; empty where no answer was given.

    Attributes:
        roles: Mapping from role in `columns.NAMES` to column name or "none".
        file_column: Column that names the files.
        record_column: Column with the row number of each recording in an array.
        in_order: Whether table rows and array rows have the same order.
        files: Whether a name that differs from that of a file only in spelling is the "same", or none, "as-written".
        targets: Mapping from task name to label column.
        kinds: Mapping from task name to kind.
        positive: Mapping from task name to value of the positive class.
        units: Mapping from task name to unit of the label.
        ranges: Mapping from task name to smallest and largest valid label.
        per: Mapping from task name to scoring unit: recording, study or patient.
        where: Mapping from task name to column filters, each with its accepted values.
        missing: Mapping from task name to cells that mean "not measured".
        metrics: Mapping from task name to ranking metric.
        multilabel: Mapping from task name to columns of 0 and 1.
        sexes: Mapping from cell value to F or M.
        groups: Columns that define subgroups.
        modality: Modality, "ecg" or "echo".
        format: Format of the recordings.
        leads: Names of the channels.
        sampling_rate: Sampling rate in Hz.
        unit: Unit of the samples.
        array: Name of the HDF5 dataset with the samples.
        records: Name of the HDF5 dataset with the record ids.
        title: Title of the dataset.
        patient_is_record: Whether to treat each recording as a patient because patients are unknown.
        patients: Whether patient ids that differ only in spelling are the "same" person, or different people,
            "as-written".
        drop_without: Roles whose rows are left out if they have no value.
        sheet: Sheet of a workbook of labels.
        encoding: Encoding of a CSV of labels.
        allow_missing: Whether to ignore rows whose recordings are missing.
        allow_unreadable: Whether to ignore recordings that cannot be read.
        seed: Random seed of the split.
        renamed: Mapping from a task name as the user wrote it to its name, where they differ.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    file_column: str = ""
    record_column: str = ""
    in_order: bool = False
    files: str = ""
    targets: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    positive: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    per: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    multilabel: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sexes: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    modality: str = ""
    format: str = ""
    leads: tuple[str, ...] | None = None
    sampling_rate: float | None = None
    unit: str | None = None
    array: str | None = None
    records: str | None = None
    title: str = ""
    patient_is_record: bool = False
    patients: str = ""
    drop_without: tuple[str, ...] = ()
    sheet: str = ""
    encoding: str = ""
    allow_missing: bool = False
    allow_unreadable: bool = False
    seed: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AdoptionRequest:
    """Request to adopt one folder, or one table.

    Attributes:
        folder: Folder of the recordings; None if there are none.
        labels: Path of the table of labels.
        name: Name of the dataset.
        answers: User's answers.
    """

    folder: Path | None
    labels: Path
    name: str
    answers: Answers


def columns_of(answers: Answers) -> dict[str, str]:
    """Return each column that the user named, with the flag that names it."""
    named = {answers.file_column: "--file-column", answers.record_column: "--record-column"}
    named |= {column: f"--{role}-column" for role, column in answers.roles.items()}
    named |= dict.fromkeys(answers.groups, "--group")
    named |= {column: "--multilabel" for columns in answers.multilabel.values() for column in columns}
    named |= dict.fromkeys(answers.targets.values(), "--target")
    return {column: flag for column, flag in named.items() if column not in ("", NONE)}


def without_columns(answers: Answers, absent: Collection[str]) -> Answers:
    """Return the answers without columns, and without the tasks of these columns, so that the others can be checked."""
    lost = {name for name, column in answers.targets.items() if column in absent}
    lost |= {name for name, columns in answers.multilabel.items() if set(columns) & set(absent)}
    kept: dict[str, Any] = {
        one.name: {name: given for name, given in value.items() if name not in lost}
        for one in fields(answers)
        if isinstance(value := getattr(answers, one.name), Mapping) and one.name not in OF_COLUMNS
    }
    return replace(
        answers,
        file_column="" if answers.file_column in absent else answers.file_column,
        record_column="" if answers.record_column in absent else answers.record_column,
        roles={role: NONE if column in absent else column for role, column in answers.roles.items()},
        groups=tuple(column for column in answers.groups if column not in absent),
        **kept,
    )


def named_column(name: str, table: "pd.DataFrame") -> str | None:
    """Return the column that the user named, or None; raises `UnknownName` with the closest name."""
    if not name or name == NONE:
        return None
    if name not in table:
        raise unknown_name("column", name, list(table))
    return name


def column_of_role(role: str, table: "pd.DataFrame", answers: Answers) -> str | None:
    """Return the column of a role: the user's choice, else a non-label column with a usual name."""
    if given := answers.roles.get(role, ""):
        return named_column(given, table)
    labels = {*answers.targets.values(), *(one for some in answers.multilabel.values() for one in some)}
    return role_column(role, table, labels if role in ("split", "device", "site") else ())


def by_task(entries: list[str], flag: str, value: str = "VALUE") -> dict[str, str]:
    """Parse entries such as `EF=%` into a mapping from the task's name in lower case; raises the errors of `pairs`."""
    lowered = [
        f"{slug(name)}={text}" if equals and name.strip() else entry
        for entry in entries
        for name, equals, text in [entry.partition("=")]
    ]
    return pairs(lowered, flag, value=value)


def pairs(entries: list[str], flag: str, *, key: str = "TASK", value: str = "VALUE") -> dict[str, str]:
    """Parse entries such as `ef=%` into a mapping.

    Raises:
        BadConfig: Entries have no "=", or keys occur twice; the message has all of them.
    """
    named: dict[str, str] = {}
    problems = []
    for entry in entries:
        name, equals, text = entry.partition("=")
        if not (name.strip() and equals and text.strip()):
            problems.append(f"{flag} {entry!r:.80}: expected {key}={value}")
        elif name.strip() in named:
            problems.append(f"{flag} names '{name.strip()}' twice: {named[name.strip()]} and {text.strip()}")
        else:
            named[name.strip()] = text.strip()
    if problems:
        raise BadConfig(". ".join(problems))
    return named


def listed(text: str) -> tuple[str, ...]:
    """Split a text at commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def number_range(text: str, flag: str) -> tuple[float, float]:
    """Parse a range such as `0:100` into two numbers; raises `BadConfig` for other formats."""
    low, colon, high = text.partition(":")
    try:
        numbers = float(low), float(high)
    except ValueError:
        numbers = (0.0, 0.0)
    if not colon or not numbers[0] < numbers[1]:
        raise BadConfig(f"{flag} {text!r:.60}: expected LOW:HIGH, such as 0:100")
    return numbers
