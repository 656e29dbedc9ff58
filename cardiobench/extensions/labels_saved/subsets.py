"""Draw nested random subsets of training patients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.protocols.base import TaskData
from cardiobench.protocols.patient_pool import nested_subsets, two_of_each

UNUSED = "left out"
"""Split name of excluded training patients."""


@dataclass(frozen=True)
class PatientSubset:
    """Draws of one fraction of the patients.

    Attributes:
        share: Fraction of the train and validation patients.
        draws: Task data for each draw, with excluded patients outside all splits; a single draw for the full set.
    """

    share: float
    draws: tuple[TaskData, ...]

    @property
    def patients(self) -> int:
        """Number of patients in each draw."""
        return _patients(self.draws[0], self.draws[0].indices("train", "validation"))


def draw_subsets(
    data: TaskData, shares: Sequence[float], draws: int, seed: int
) -> tuple[list[PatientSubset], list[str]]:
    """Draw subsets of train and validation patients, ending with the full set.

    If a subset has too few validation patients for model selection, they are used for training.

    Args:
        data: Recordings of the task.
        shares: Fractions of the patients, ascending, ending with 1.
        draws: Number of random patient orders; each provides all subsets.
        seed: Random seed of the orders.

    Returns:
        Subsets with two patients of each class in every draw, and a sentence on each omitted subset.
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
                f"{100 * share:.3g} % of the patients ({count}) cannot include two of each class and are left out"
            )
    return [*subsets, PatientSubset(1.0, (data,))], notes


def _only(data: TaskData, rows: np.ndarray) -> TaskData:
    """Return the task data with all other train and validation patients excluded."""
    split = data.rows["split"].to_numpy()
    kept = np.where(split == "test", split, UNUSED)
    kept[rows] = split[rows]
    validation = rows[split[rows] == "validation"]
    if not two_of_each(data, validation, rows):
        kept[validation] = "train"
    return data.with_splits(kept)


def _patients(data: TaskData, rows: np.ndarray) -> int:
    return len(np.unique(data.patient_codes[rows]))
