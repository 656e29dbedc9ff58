"""Specification of a table of the published evaluation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from cardiobench.data.spec import VIEWS, Group

PROBABILITIES = tuple(f"prob_{view}" for view in VIEWS)


@dataclass(frozen=True)
class Truth:
    """The location of the truth and the rows of it that count.

    Attributes:
        files: below the folder of splits, read one after the other.
        key: column of the ids.
        label: column of the labels, or one of `VIEWS` where all rows are of that view.
        patient: column that names the patient, and the part of it that does (first group of a pattern).
        split: column and value of the test rows.
        where: column -> value of the rows that count.
        having: column -> value: only keys that have such a row.
        view: the view that a label in capitals stands for.
        once: a key that stands more often counts with its first row.
        sort: rows are put in the order of their keys before.
        all_splits: the published evaluator forgets the split here.
    """

    files: tuple[str, ...]
    key: str
    label: str
    patient: tuple[str, str]
    split: tuple[str, object] = ("split", "test")
    where: Mapping[str, str] = field(default_factory=dict)
    having: Mapping[str, str] = field(default_factory=dict)
    view: Callable[[str], str] = str
    once: bool = False
    sort: bool = False
    all_splits: bool = False


@dataclass(frozen=True)
class Grouping:
    """A breakdown of a regression.

    Attributes:
        group: column to cut, edges and labels; its name is the one in the table.
        value: the column's values, computed from the rows of the truth.
        reported: labels in the order of the table.
        lost: labels that the published evaluator never reports, with the reason.
    """

    group: Group
    value: Callable[[pd.DataFrame], pd.Series]
    reported: tuple[str, ...]
    lost: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSpec:
    """One table of one kind: all prediction files of a folder against one truth.

    Attributes:
        kind: measurement, classification or view.
        predictions: folder below that of the predictions; one CSV a model.
        column: of the predictions; of views the label that is counted beside the probabilities.
        truth: what they are set against.
        file: of the scores; of views also `counted` and `per_class`.
        target: value of the column `target`, for tables that have one.
        groups: breakdowns, written to `groups_file`.
        by_name: what the name of a prediction file changes; None = the file is left out, with a reason.
        keeps_gaps: the published evaluator stops with an IndexError at a probability that is no number.
        key_from: column whose part before `_` names the key where the key has no column of its own.
        repeats: the published evaluator joins without a check, so that a repeated id is counted twice.
    """

    kind: str
    predictions: str
    column: str
    truth: Truth
    file: str
    counted: str = ""
    per_class: str = ""
    target: str = ""
    groups: tuple[Grouping, ...] = ()
    groups_file: str = ""
    by_name: "Callable[[TableSpec, str], TableSpec | str]" = lambda spec, name: spec
    keeps_gaps: bool = False
    key_from: str = ""
    repeats: bool = False

    @property
    def dataset(self) -> str:
        """Name of the dataset as the folder of its tables has it."""
        return self.file.partition("/")[0]
