"""References as a file: labels of a task, units without a label, and the size of the release."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cardiobench.core.command import command
from cardiobench.core.errors import BadData, first_n
from cardiobench.core.io import sha256_of_json
from cardiobench.core.tables import numbers_of, read_table, text_of, unescape_formula, write_csv, write_parquet
from cardiobench.data.references import COLUMNS, check_references, class_names_of, unlabelled_units
from cardiobench.data.release_counts import most_units
from cardiobench.data.spec import ROWS, DatasetSpec, Task

if TYPE_CHECKING:
    from cardiobench.data.dataset import OpenDataset

TASK, VERSION, TWIN, UNITS, LABELLED, DIGEST = RELEASE_COLUMNS = (
    "task",
    "dataset_version",
    "twin",
    "release_units",
    "labelled",
    "digest",
)
"""Columns about the release, which are constant except `labelled` (0 or 1) and `release_units` (one value per
split)."""
PARQUET = (".parquet", ".pq")
BY_HAND = "they were written by hand or by an older version, and do not state the number of units in the release"


@dataclass(frozen=True)
class Release:
    """Release from which references were made.

    Attributes:
        version: Version of the dataset.
        twin: Whether the data are a synthetic twin.
        units: Mapping from split to number of labelled units of the task in the complete release, for splits with rows.
    """

    version: str
    twin: bool
    units: Mapping[str, int]


@dataclass(frozen=True)
class References:
    """References of a task.

    Attributes:
        task: Task whose labels the table holds.
        table: Id, patient_id, split, y_true and columns of groups, one row per labelled unit of any split.
        unlabelled: Id, patient_id and split of the units without a label.
        release: Release from which they were made; None if unknown.
        problem: Reason why the release is unknown; empty if it is known.
    """

    task: Task
    table: pd.DataFrame
    unlabelled: pd.DataFrame
    release: Release | None
    problem: str = ""

    @classmethod
    def of(cls, dataset: "OpenDataset", task: Task) -> "References":
        """Return the references of a task of an open dataset, without reading recordings."""
        table = dataset.references(task)
        unlabelled = unlabelled_units(dataset.table.listed, task, table["id"])
        splits = {*table["split"], *unlabelled["split"]}
        units = {split: dataset.expected(task, table, split) for split in dataset.spec.splits if split in splits}
        release = Release(dataset.spec.version, dataset.table.twin, units)
        surplus = "" if release.twin else _surplus(dataset.spec, task, table)
        return cls(task, table, unlabelled, None if surplus else release, surplus)

    @property
    def generated(self) -> bool:
        """Return whether the recordings are known to be phantoms or a synthetic twin."""
        from cardiobench.data import catalog

        name = self.task.dataset
        phantoms = name in catalog.list_datasets() and catalog.spec(name).generated
        return phantoms or (self.release is not None and self.release.twin)

    def expected(self, split: str) -> int | None:
        """Return the number of labelled units of a split in the complete release; None if unknown."""
        return None if self.release is None else self.release.units.get(split, 0)

    @property
    def facts(self) -> dict[str, Any]:
        """Dataset, version and digest, as stamped into results; only the name if the release is unknown."""
        if self.release is None:
            return {"name": self.task.dataset, **_marks(self.task)}
        release = self.release
        return {
            "name": self.task.dataset,
            "version": release.version,
            "twin": release.twin,
            "references_digest": self.digest,
            **_marks(self.task),
        }

    @cached_property
    def digest(self) -> str:
        """Digest of the release and of every row, 16 hexadecimal digits.

        Row order, leading zeros of ids and digits after the eighth are ignored, because `pandas.read_csv` may lose
        them.
        """
        release = self.release
        about = None if release is None else [release.version, release.twin, sorted(release.units.items())]
        columns = [*COLUMNS, *self._groups]
        table = self._all_rows()[columns]
        for name in ("id", "patient_id"):
            table[name] = table[name].str.lstrip("0")
        cells = (table[name].map(_digest_text) for name in columns)
        return sha256_of_json([self.task.name, about, columns, sorted(zip(*cells, strict=True))])[:16]

    @property
    def _groups(self) -> list[str]:
        return list(dict.fromkeys(group.column for group in self.task.groups if group.column in self.table))

    def _all_rows(self) -> pd.DataFrame:
        """Return labelled and unlabelled units with canonical cells: text, float, or None for an empty one."""
        table = pd.concat([self.table[[*COLUMNS, *self._groups]], self.unlabelled], ignore_index=True)
        numeric = {group.column for group in self.task.groups if group.edges}
        numeric |= set() if self.task.classes else {"y_true"}
        for name in table.columns:
            cells = table[name].astype(float) if name in numeric else text_of(table[name]).where(table[name].notna())
            table[name] = cells.astype(object).where(cells.notna(), None)
        return table

    def to_frame(self) -> pd.DataFrame:
        """Return labelled and unlabelled units with the columns about the release, in the format of `read_references`.

        Raises:
            BadData: The release is unknown.
        """
        if self.release is None:
            raise BadData(f"the references of {self.task.name} are not those of the release: {self.problem}.")
        table = self._all_rows()
        table[TASK], table[VERSION], table[TWIN] = self.task.name, self.release.version, int(self.release.twin)
        table[UNITS] = table["split"].map(self.release.units)
        table[LABELLED] = table["id"].isin(self.table["id"]).astype(int)
        table[DIGEST] = self.digest
        return table

    def write(self, path: str | Path) -> Path:
        """Write the references as UTF-8 CSV, or as Parquet according to the suffix; see `to_frame`."""
        table = self.to_frame()
        return write_parquet(table, path) if Path(path).suffix.lower() in PARQUET else write_csv(table, path)


def _digest_text(cell: Any) -> str:
    return "" if cell is None else f"{cell:.8g}" if isinstance(cell, float) else cell


def reference_facts(dataset: "OpenDataset", task: Task) -> dict[str, Any]:
    """Return the facts of a task's references, which replace the digest of missing recordings."""
    return References.of(dataset, task).facts if dataset.labels_only else {}


def read_references(source: str | Path | pd.DataFrame, task: Task) -> References:
    """Read references from a CSV or Parquet file or a frame: id, patient_id, split, y_true and columns of groups.

    Ids become text. A class is given by name or by its position in the task's class order (0, 1, ...); classes of a
    multilabel task are given by name, as in `MI;STTC`. A row with an empty y_true is a unit without a label; for a
    multilabel task, the column `labelled` decides, because an empty text means none of the classes.

    Raises:
        BadData: A column is missing, an id is repeated, a label is unknown, or the references belong to another task.
    """
    table, path = read_table(source), "references" if isinstance(source, pd.DataFrame) else str(source)
    absent = [column for column in COLUMNS if column not in table.columns]
    if absent:
        raise BadData(
            f"{path} lacks the column {', '.join(absent)}; it has {', '.join(map(str, table.columns))}. Write it with `cardiobench references`."
        )
    _refuse_other_task(table, task, path)
    for column in ("id", "patient_id", "split"):
        cells = text_of(table[column])
        table[column] = cells.map(unescape_formula) if "'" in "".join(cells) else cells
    labelled = _labelled(table, task)
    unlabelled = table.loc[~labelled, ["id", "patient_id", "split"]].reset_index(drop=True)
    release, digest, problem = _release(table, task)
    if len(unlabelled):
        table = table[labelled].reset_index(drop=True)
    table = _typed(table, task, path)
    if len(unlabelled) and (both := set(unlabelled["id"]) & set(table["id"])):
        raise BadData(
            f"{path}: {len(both)} units have a row with a label and one without: {first_n(sorted(both))}. Keep one of them."
        )
    references = References(task, check_references(table, task, path), unlabelled, release, problem)
    if release is not None and references.digest != digest:
        problem = "their rows differ from those written by `cardiobench references`"
    if release is None or problem:
        problem = "; ".join(filter(None, (problem, _known_surplus(references))))
        return References(task, references.table, unlabelled, None, problem)
    return references


def _refuse_other_task(table: pd.DataFrame, task: Task, path: str) -> None:
    if TASK in table:
        others = sorted(set(text_of(table[TASK])) - {task.name})
        if others:
            raise BadData(
                f"{path} contains references of {first_n(others)}, not of {task.name}. Write them to another file with: "
                f"{command('references', task.name, '--out', 'FILE')}"
            )


def _labelled(table: pd.DataFrame, task: Task) -> pd.Series:
    """Return which rows have a label. The array is bool (n,)."""
    if LABELLED in table:
        return text_of(table[LABELLED]).str.lower().isin(("1", "true"))
    if task.rules.empty_label:  # `check_references` refuses nulls, but pandas reads an empty text as null.
        return pd.Series(True, index=table.index)
    return text_of(table["y_true"]) != ""


def _typed(table: pd.DataFrame, task: Task, path: str) -> pd.DataFrame:
    """Return the table with labels and groups converted to classes, texts and numbers."""
    if task.rules.empty_label and LABELLED in table:
        table["y_true"] = table["y_true"].where(table["y_true"].notna(), "")
    if task.classes:
        table["y_true"] = class_names_of(table["y_true"], task)
    else:
        table["y_true"] = numbers_of(table["y_true"], table["id"], f"{path}: y_true")
    for group in task.groups:
        if group.column in table:
            name, cells = group.column, table[group.column]
            table[name] = (
                numbers_of(cells, table["id"], f"{path}: {name}") if group.edges else text_of(cells).replace("", None)
            )
    return table.drop(columns=[name for name in RELEASE_COLUMNS if name in table])


def _release(table: pd.DataFrame, task: Task) -> tuple[Release | None, str, str]:
    """Return the release stated in a table, its stated digest, and the reason if the release is unknown."""
    if any(name not in table for name in RELEASE_COLUMNS):
        return None, "", BY_HAND
    cells = {name: text_of(table[name]) for name in (VERSION, TWIN, DIGEST)}
    by_split = pd.DataFrame({"split": table["split"], "units": text_of(table[UNITS])}).drop_duplicates()
    try:
        units = {split: int(count) for split, count in by_split.itertuples(index=False)}
    except ValueError:
        return None, "", BY_HAND
    if len(by_split) != len(units) or any(column.nunique() != 1 for column in cells.values()):
        return None, "", "their rows come from several releases"
    version, twin, digest = (column.iloc[0] for column in cells.values())
    release = Release(version, twin.lower() in ("1", "true"), units)
    known = _known_version(task)
    if known and version != known:
        return (
            release,
            digest,
            f"they belong to version {version} of {task.dataset}, but the installed version is {known}",
        )
    return release, digest, "" if release.twin else _miscounted(release, task)


def _miscounted(release: Release, task: Task) -> str:
    """Describe differences between the stated and the known counts of a release; empty if there are none."""
    known = task.expected.get(ROWS, {}) if task.unit_column == "id" else {}
    claimed = release.units  # Totals are not compared, because the splits of a partial copy are estimates.
    wrong = [
        f"{claimed[name]} {name} units, but the release has {n}"
        for name, n in known.items()
        if claimed.get(name, n) != n
    ]
    return f"they state {'; '.join(wrong)}" if wrong else ""


def _known_version(task: Task) -> str:
    from cardiobench.data import catalog

    return catalog.spec(task.dataset).version if task.dataset in catalog.list_datasets() else ""


def _known_surplus(references: References) -> str:
    from cardiobench.data import catalog

    task = references.task
    known = task.dataset in catalog.list_datasets()
    return _surplus(catalog.spec(task.dataset), task, references.table) if known else ""


def _surplus(spec: DatasetSpec, task: Task, table: pd.DataFrame) -> str:
    """Describe splits with more units than the release, as far as its counts are known; empty if there are none."""
    counts, most = table["split"].value_counts(), most_units(spec, task)
    more = [
        f"{counts[name]} {name} units, but the release has {most[name]}"
        for name in most
        if counts.get(name, 0) > most[name]
    ]
    return f"they have {' and '.join(more)}" if more else ""


def _marks(task: Task) -> dict[str, bool]:
    """Return the marks of a user's dataset (`DatasetSpec.marks`); empty for others."""
    from cardiobench.data import catalog

    return catalog.spec(task.dataset).marks if task.dataset in catalog.list_datasets() else {}
