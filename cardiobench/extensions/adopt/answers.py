"""The user's answers, as the flags of `cardiobench adopt` give them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import unknown_name
from cardiobench.extensions.adopt.columns import NAMES, role_column

if TYPE_CHECKING:
    import pandas as pd

NONE = "none"
"""Answer that there is no such column."""
ROLES = tuple(NAMES)


@dataclass(frozen=True)
class Answers:
    """Answers to everything that no file says; empty where the user gave none.

    Attributes:
        roles: Role of `columns.NAMES` -> column, or "none".
        file_column: Column that names the files.
        record_column: Column with the row of an array.
        in_order: Whether the rows of the table are those of the array.
        targets: Name of a task -> column.
        kinds: Name of a task -> kind.
        positive: Name of a task -> value of the positive class.
        units: Name of a task -> unit of its numbers.
        ranges: Name of a task -> least and greatest number.
        per: Name of a task -> recording, study or patient.
        where: Name of a task -> column -> values of its recordings.
        metrics: Name of a task -> metric that ranks.
        multilabel: Name of a task -> columns of 0 and 1.
        sexes: Cell -> F or M.
        groups: Columns by whose values scores are broken down.
        modality: Word `ecg` or `echo`.
        format: Format of the recordings.
        leads: Names of the channels.
        sampling_rate: Sampling rate in Hz.
        unit: Unit of amplitudes.
        array: Dataset of an HDF5 file with samples.
        records: Dataset of an HDF5 file with ids.
        title: Title of the dataset.
        patient_is_record: Whether the user said that patients are not known.
        allow_missing: Whether rows may name recordings that are not here.
        allow_unreadable: Whether recordings may be unreadable.
        seed: Seed of the split.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    file_column: str = ""
    record_column: str = ""
    in_order: bool = False
    targets: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    positive: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    per: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
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
    allow_missing: bool = False
    allow_unreadable: bool = False
    seed: int = 0


@dataclass(frozen=True)
class AdoptionRequest:
    """A folder to adopt.

    Attributes:
        folder: Folder of the recordings.
        labels: Table of labels.
        name: Name of the dataset.
        answers: Answers of the user.
    """

    folder: Path
    labels: Path
    name: str
    answers: Answers


def named_column(name: str, table: "pd.DataFrame") -> str | None:
    """Return a column that the user named, None for none; raises `UnknownName` with the nearest."""
    if not name or name == NONE:
        return None
    if name not in table:
        raise unknown_name("column", name, list(table))
    return name


def column_of_role(role: str, table: "pd.DataFrame", answers: Answers) -> str | None:
    """Return the column of a role: the user's, else one of a usual name that is no label."""
    if given := answers.roles.get(role, ""):
        return named_column(given, table)
    labels = {*answers.targets.values(), *(one for some in answers.multilabel.values() for one in some)}
    return role_column(role, table, labels if role in ("split", "device", "site") else ())


def pairs(entries: list[str], flag: str, *, key: str = "TASK", value: str = "VALUE") -> dict[str, str]:
    """Return key -> value of entries such as `ef=%`.

    Raises:
        BadConfig: An entry without "=", or one key twice.
    """
    named: dict[str, str] = {}
    for entry in entries:
        name, equals, text = entry.partition("=")
        if not (name.strip() and equals and text.strip()):
            raise BadConfig(f"{flag} {entry!r:.80}: expected {key}={value}")
        if name.strip() in named:
            raise BadConfig(f"{flag} names '{name.strip()}' twice: {named[name.strip()]} and {text.strip()}")
        named[name.strip()] = text.strip()
    return named


def listed(text: str) -> tuple[str, ...]:
    """Return the parts of a text between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def number_range(text: str, flag: str) -> tuple[float, float]:
    """Return the two numbers of a text such as `0:100`; raises `BadConfig` for anything else."""
    low, colon, high = text.partition(":")
    try:
        numbers = float(low), float(high)
    except ValueError:
        numbers = (0.0, 0.0)
    if not colon or not numbers[0] < numbers[1]:
        raise BadConfig(f"{flag} {text!r:.60}: expected LOW:HIGH, such as 0:100")
    return numbers
