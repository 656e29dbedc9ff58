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
        files: Files below the folder of splits, read one after the other.
        key: Column of the ids.
        label: Column of the labels, or one of `VIEWS` where all rows are of that view.
        patient: Column that names the patient, and the part of it that does (first group of a pattern).
        split: Column and value of the test rows.
        where: Column -> value of the rows that count.
        having: Column -> value: only keys that have such a row.
        view: The view that a label in capitals stands for.
        once: A key that stands more often counts with its first row.
        sort: Rows are put in the order of their keys before.
        all_splits: The published evaluator forgets the split here.
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
        group: Column to cut, edges and labels; its name is the one in the table.
        value: The column's values, computed from the rows of the truth.
        reported: Labels in the order of the table.
        lost: Labels that the published evaluator never reports, with the reason.
    """

    group: Group
    value: Callable[[pd.DataFrame], pd.Series]
    reported: tuple[str, ...]
    lost: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSpec:
    """One table of one kind: all prediction files of a folder against one truth.

    Attributes:
        kind: Measurement, classification or view.
        predictions: Folder below that of the predictions; one CSV a model.
        column: Column of the predictions; for views the label that is counted beside the probabilities.
        truth: Column of the true values.
        file: File of the scores; for views also `counted` and `per_class`.
        target: Value of the column `target`, for tables that have one.
        groups: Breakdowns, written to `groups_file`.
        by_name: Changes by the name of a prediction file; None leaves the file out with a reason.
        keeps_gaps: The published evaluator stops with an IndexError at a probability that is no number.
        key_from: Column whose part before `_` names the key where the key has no column of its own.
        repeats: The published evaluator joins without a check, so that a repeated id is counted twice.
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
