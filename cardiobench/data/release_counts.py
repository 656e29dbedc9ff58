"""Counts of the complete release: rows missing from a copy by split, and rows of each class."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from cardiobench.core.errors import BadData, first_n
from cardiobench.data.spec import ROWS, TOTAL, DatasetSpec, Task
from cardiobench.data.splits import SPLIT_OF_TENTH, hashed_splits


def absent_rows(spec: DatasetSpec, listed: pd.DataFrame, candidates: Iterable[str] = ()) -> dict[str, int]:
    """Count the rows of the complete release that are missing from the tables of a copy.

    If only the total of the release is known, its splits follow from the hash of the patient id (`hashed_split`).
    Missing rows are then distributed like the candidate ids missing from this copy, or, if there are none, by the
    expected fractions of the rule. At least one row is counted as missing in each split, because none is known to be
    complete.

    Args:
        spec: The dataset.
        listed: All rows of this copy's tables.
        candidates: Possible patient ids of the release.

    Returns:
        Split -> number of missing rows, without complete splits.
    """
    here = listed["split"].value_counts()
    if TOTAL not in spec.expected:
        return {s: n - int(here.get(s, 0)) for s, n in spec.expected.items() if here.get(s, 0) != n}
    lacking = spec.expected[TOTAL] - len(listed)
    if lacking <= 0:
        return {spec.splits[0]: lacking} if lacking else {}
    patients = set(listed["patient_id"])
    shares: Mapping[str, int] = Counter(hashed_splits(name for name in candidates if name not in patients))
    total = sum(shares.values())
    if total < lacking:
        shares, total = Counter(SPLIT_OF_TENTH), len(SPLIT_OF_TENTH)
    if lacking == total:
        return {split: count for split in spec.splits if (count := shares[split])}
    return {split: max(1, math.ceil(lacking * shares[split] / total)) for split in spec.splits}


def most_units(spec: DatasetSpec, task: Task) -> dict[str, int]:
    """Return by split the largest number of labelled units of a task in the release, without splits of unknown size."""
    rows = {split: count for split, count in spec.expected.items() if split in spec.splits}
    labelled = task.expected.get(ROWS, {}) if task.unit_column == "id" else {}
    return rows | {split: count for split, count in labelled.items() if split in spec.splits}


def expected_counts(text: str, splits: Sequence[str]) -> dict[str, dict[str, int]]:
    """Parse `Task.expected` from a text such as `rows 100/20/30, NORM 50/10/15`, with one number per split or in total.

    Args:
        text: Names and counts.
        splits: Splits in the order of the counts.
    """
    counts = {}
    for entry in text.split(","):
        name, _, numbers = entry.strip().rpartition(" ")
        values = [int(number) for number in numbers.split("/")]
        counts[name] = dict(zip(splits if len(values) > 1 else (TOTAL,), values, strict=True))
    return counts


def check_class_counts(spec: DatasetSpec, listed: pd.DataFrame) -> None:
    """Check the number of rows of each class in a complete release.

    Raises:
        BadData: A number differs from that of the release.
    """
    none = pd.Series(dtype=int)
    for task in spec.tasks:
        if not task.expected:
            continue
        # Cells are counted before they are split into names, because few are distinct.
        cells = listed.groupby(["split", task.target]).size().rename_axis(["split", "name"]).reset_index(name="rows")
        of_rows = cells.groupby("split")["rows"].sum()
        cells = cells.drop(columns="name").join(task.rules.each_class(cells["name"]))
        counts = cells.groupby(["name", "split"])["rows"].sum()
        wrong = []
        for name, by_split in task.expected.items():
            here = of_rows if name == ROWS else counts[name] if name in counts.index else none
            for split, number in by_split.items():
                found = int(here.sum() if split == TOTAL else here.get(split, 0))
                if found != number:
                    wrong.append(f"{name} in {split}: {found} instead of {number}")
        if wrong:
            raise BadData(
                f"{task.name}: the labels are not those of the release: {first_n(wrong)}. Download its tables from {spec.access} "
                "again; if the release is newer, this version of the benchmark does not support it."
            )
