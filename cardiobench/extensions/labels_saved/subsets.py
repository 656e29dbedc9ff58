"""Nested random subsets of the training patients of a task."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.protocols.base import TaskData
from cardiobench.protocols.patient_pool import nested_subsets, two_of_each

UNUSED = "left out"
"""Split of the training patients who are not in a subset."""


@dataclass(frozen=True)
class PatientSubset:
    """Draws of a share of the patients.

    Attributes:
        share: Share of the patients of train and validation.
        draws: Recordings of the task for each draw, in which patients who were not drawn are of no split; one draw of all patients.
    """

    share: float
    draws: tuple[TaskData, ...]

    @property
    def patients(self) -> int:
        """Number of patients, the same in each draw."""
        return _patients(self.draws[0], self.draws[0].indices("train", "validation"))


def draw_subsets(
    data: TaskData, shares: Sequence[float], draws: int, seed: int
) -> tuple[list[PatientSubset], list[str]]:
    """Draw subsets of the patients of train and validation; the last one is all of them.

    Where a subset has too few validation patients to choose by, they are learned from.

    Args:
        data: Recordings of the task.
        shares: Shares of the patients, ascending, the last is 1.
        draws: Number of random orders, from each of which all subsets are taken.
        seed: Seed of the orders.

    Returns:
        The subsets that hold two patients of each class in every draw, and a sentence for each one that is left out.
    """
    pool = data.indices("train", "validation")
    orders = [nested_subsets(data, pool, shares, np.random.default_rng([seed, draw])) for draw in range(draws)]
    subsets, notes = [], []
    for share, *drawn in zip(shares[:-1], *(order[:-1] for order in orders), strict=True):
        if all(two_of_each(data, rows, pool) for rows in drawn):
            subsets.append(PatientSubset(share, tuple(_only(data, rows) for rows in drawn)))
        else:
            count = _patients(data, drawn[0])
            notes.append(
                f"{100 * share:.3g} % of the patients ({count}) cannot hold two of each class, and are left out"
            )
    return [*subsets, PatientSubset(1.0, (data,))], notes


def _only(data: TaskData, rows: np.ndarray) -> TaskData:
    """Return the data in which other patients of train and validation are of no split."""
    split = data.rows["split"].to_numpy()
    kept = np.where(split == "test", split, UNUSED)
    kept[rows] = split[rows]
    validation = rows[split[rows] == "validation"]
    if not two_of_each(data, validation, rows):
        kept[validation] = "train"
    return data.with_splits(kept)


def _patients(data: TaskData, rows: np.ndarray) -> int:
    return len(np.unique(data.patient_codes[rows]))
