"""Specify a table of the published evaluation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from cardiobench.data.spec import VIEWS, Group

PROBABILITIES = tuple(f"prob_{view}" for view in VIEWS)


@dataclass(frozen=True)
class Truth:
    """Source of the truth and selection of its rows.

    Attributes:
        files: Files below the splits folder, read in order.
        key: Column of the ids.
        label: Label column, or one of `VIEWS` if all rows have this view.
        patient: Patient column and a pattern whose first group is the patient id.
        split: Column and value that select test rows.
        where: Mapping from column to value, for row selection.
        having: Mapping from column to value; keys must have a row with this value.
        view: View of labels in capitals.
        once: Whether to use only the first row of a repeated key.
        sort: Whether to sort rows by key first.
        all_splits: Whether the published evaluator ignores the split.
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
    """Subgroups of a regression table.

    Attributes:
        group: Column to group by, with edges and labels; its name appears in the table.
        value: Function that computes the column from truth rows.
        reported: Reported labels in table order.
        lost: Mapping from label that the published evaluator never reports to the reason.
    """

    group: Group
    value: Callable[[pd.DataFrame], pd.Series]
    reported: tuple[str, ...]
    lost: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSpec:
    """Table of one kind, with one truth for all prediction files of a folder.

    Attributes:
        kind: Kind of table: measurement, classification or view.
        predictions: Folder below the predictions folder, with one CSV file per model.
        column: Prediction column; for views, the label that is counted in addition to the probabilities.
        truth: Source of the true values.
        file: Output file of scores; for views also the files `counted` and `per_class`.
        target: Value of the column `target`, in tables that have it.
        groups: Subgroups, written to `groups_file`.
        by_name: Function that adapts the specification to a file name, or returns a reason to skip the file.
        keeps_gaps: Whether the published evaluator stops with an IndexError at a non-numeric probability.
        key_from: Column whose part before `_` is the key, if there is no key column.
        repeats: Whether the published evaluator counts repeated ids twice, because it joins without checks.
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
        """Name of the dataset in output folders."""
        return self.file.partition("/")[0]
