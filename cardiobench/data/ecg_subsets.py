"""Nested balanced subsets of an ECG task in the four sizes of arXiv:2601.21830."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, NotApplicable, first_n
from cardiobench.core.io import parse_json, write_text
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task

SizeName = Literal["XS", "S", "M", "L"]
SIZES: dict[SizeName, tuple[int, int | None]] = {
    "XS": (30, 499),
    "S": (500, 2499),
    "M": (2500, 4999),
    "L": (5000, None),
}
"""Size -> minimum and maximum number of records. The smallest XS has a positive for each of the paper's 15 folds; L has
no upper limit."""


@dataclass(frozen=True)
class Subset:
    """A balanced subset of a task's recordings: half of them positive, one per patient.

    Attributes:
        task: Task of the labels.
        size: XS, S, M or L.
        seed: Seed of the draw.
        ids: Recording ids in drawing order: a positive, a negative, and so on.
    """

    task: str
    size: str
    seed: int
    ids: tuple[str, ...]

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table with these ids, in the table's order; raises `BadData` if some are missing."""
        absent = set(self.ids) - set(table["id"])
        if absent:
            raise BadData(
                f"subset {self.size} of {self.task}: {len(absent)} of {len(self.ids)} ids are not in the data: "
                f"{first_n(sorted(absent))}. Complete the data or draw the subset again."
            )
        return table[table["id"].isin(self.ids)]


def draw_subset(
    references: pd.DataFrame, task: Task, size: str, seed: int = 0, *, one_a_patient: bool = True
) -> Subset:
    """Draw as many records as the size allows, half of them positive, at most one per patient.

    A patient with a positive record is drawn as a positive, unless all records of a patient may be drawn. Both classes
    are shuffled once and taken from the front, so that for one seed XS lies within S, S within M and M within L,
    regardless of the order of the table.

    Args:
        references: Table with id, patient_id and y_true for all splits, such as `OpenDataset.references`.
        task: A binary task; the last of its classes is the positive one.
        size: XS (at most 499), S (500-2,499), M (2,500-4,999) or L (5,000 and more).
        seed: Seed of the shuffle.
        one_a_patient: Whether to draw at most one record per patient; the paper did not.

    Raises:
        NotApplicable: A class has too few patients for the size, or the task is not binary.
        ValueError: The size is unknown.
    """
    if size not in SIZES:
        raise ValueError(f"size '{size}': expected one of {', '.join(SIZES)}")
    if not task.rules.two_classes:
        raise NotApplicable(f"{task.name} is a {task.kind} task; subsets are balanced between two classes.")
    least, most = SIZES[size]
    rng = np.random.default_rng(seed)
    table = references.sort_values("id").iloc[rng.permutation(len(references))]
    positive = table["y_true"] == task.classes[1]
    positives, negatives = table[positive], table[~positive]
    if one_a_patient:
        positives = positives.drop_duplicates("patient_id")
        negatives = negatives[~negatives["patient_id"].isin(positives["patient_id"])].drop_duplicates("patient_id")
    for name, available in (("positives", len(positives)), ("negatives", len(negatives))):
        if available < least // 2:
            raise NotApplicable(
                f"size {size} of {task.name} needs {least // 2} {name}{', one per patient' if one_a_patient else ''}, and there are {available}."
            )
    half = min(len(positives), len(negatives), most // 2 if most else len(table))
    ids = np.stack([positives["id"].to_numpy(str)[:half], negatives["id"].to_numpy(str)[:half]], axis=1).reshape(-1)
    return Subset(task.name, size, seed, tuple(ids.tolist()))


def draw_subsets(
    references: pd.DataFrame, task: Task, seed: int = 0, *, one_a_patient: bool = True
) -> tuple[dict[str, Subset], dict[str, str]]:
    """Draw every size available in the data (`draw_subset`).

    Returns:
        The nested subsets by size; and size -> reason why it is not available.

    Raises:
        NotApplicable: The task is not binary.
    """
    drawn: dict[str, Subset] = {}
    reasons: dict[str, str] = {}
    for size in SIZES:
        try:
            drawn[size] = draw_subset(references, task, size, seed, one_a_patient=one_a_patient)
        except NotApplicable as error:
            if not task.rules.two_classes:
                raise
            reasons[size] = str(error)
    return drawn, reasons


def write_subsets(
    name: str,
    data_dir: str | os.PathLike | None,
    out: Path,
    *,
    seed: int = 0,
    one_a_patient: bool = True,
    allow_missing: bool = False,
) -> tuple[dict[str, Path], dict[str, str]]:
    """Write the subsets of a task, which cross-validation draws, as `out/<dataset>__<target>__<size>.json`.

    Args:
        name: Task name, such as `ptb_xl/cd`.
        data_dir: Raw or prepared folder; None for CARDIOBENCH_DATA.
        out: Output folder, created if needed.
        seed: Seed of the draw.
        one_a_patient: Whether to draw at most one record per patient; the paper did not.
        allow_missing: Whether to draw from an incomplete copy.

    Returns:
        Size -> file, and size -> reason why it is not available.
    """
    task = catalog.task(name)
    rows = open_dataset(task.dataset, data_dir, allow_missing=allow_missing).task_rows(task)
    drawn, reasons = draw_subsets(rows.assign(y_true=rows[task.target]), task, seed, one_a_patient=one_a_patient)
    path = f"{task.name.replace('/', '__')}__{{}}.json"
    return {size: write_subset(subset, out / path.format(size)) for size, subset in drawn.items()}, reasons


def write_subset(subset: Subset, path: Path) -> Path:
    """Write a subset as JSON: task, size, seed, and one id per line."""
    return write_text(json.dumps(asdict(subset), indent=1) + "\n", path)


def read_subset(path: Path) -> Subset:
    """Read the file of `write_subset`; raise `BadData` if its content differs from the dataset."""
    try:
        content = parse_json(path.read_bytes())
        subset = Subset(**{**content, "ids": tuple(content["ids"])})
    except FileNotFoundError:
        raise BadData(f"{path} does not exist. Draw the subset again, or check the path.") from None
    except (BadData, OSError, ValueError, TypeError, KeyError) as error:
        raise BadData(f"{path} is not a subset file with task, size, seed and ids ({error}). Draw it again.") from None
    if not all(isinstance(name, str) for name in subset.ids) or len(set(subset.ids)) < len(subset.ids):
        raise BadData(f"{path}: its ids must be unique strings. Draw it again.")
    return subset
