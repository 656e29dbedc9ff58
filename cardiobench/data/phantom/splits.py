"""Splits of the patients of a twin: assigned in turn, or those of a published list."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

Split = TypeVar("Split")


def round_robin(groups: Sequence[Hashable], order: Sequence[Split]) -> list[Split]:
    """Assign the splits of `order` in turn to the members of each group, so that every split has all groups.

    >>> round_robin(["sick", "well", "sick", "well"], ["test", "train"])
    ['test', 'test', 'train', 'train']
    """
    seen: dict[Hashable, int] = defaultdict(int)
    assigned = []
    for group in groups:
        assigned.append(order[seen[group] % len(order)])
        seen[group] += 1
    return assigned


def published_split(folder: Path, name: str) -> pd.DataFrame:
    """Read `splits/<name>.csv` in the folder of a dataset, with ids, patients and splits as text."""
    return pd.read_csv(folder / "splits" / f"{name}.csv", dtype=str)


def choose(table: pd.DataFrame, patients: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the rows of `patients` patients (or all, if there are fewer), drawn in turn from each split.

    Every second patient of a split is `diseased`, because the diseases of the release are unknown here.
    """
    groups = table.groupby("patient_id")["split"].first()
    piles = [list(rng.permutation(names.index.to_numpy())) for _, names in groups.groupby(groups)]
    diseased: dict[str, bool] = {}
    while len(diseased) < patients and any(piles):
        for pile in piles:
            for sick in (False, True):
                if pile and len(diseased) < patients:
                    diseased[pile.pop()] = sick
    chosen = table[table["patient_id"].isin(diseased.keys())]
    return chosen.assign(diseased=chosen["patient_id"].map(diseased))
