"""Information test of masks and points: whether the same answers would fit other patients as well."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import DRAWS, NOTHING_PERMUTED, Information, PatientPermutations, tails_of
from cardiobench.tasks.task import Task

SIDE = 64
"""Number of rows and columns of the small masks for this test."""
MOST_PATIENTS = 2000
"""Number of patients above which the test uses a random sample, because each view stores the fit of all pairs."""
GRID = 2.0**20
"""Resolution of the fit: integers have exact sums, so that equal fits tie."""

Closeness = Callable[[np.ndarray, np.ndarray, int], npt.NDArray[np.float64]]


def shrunk(mask: np.ndarray) -> np.ndarray:
    """Return a mask (H, W) reduced to `SIDE` rows and columns by nearest pixel, flattened."""
    rows, columns = (((np.arange(SIDE) + 0.5) / SIDE * size).astype(int) for size in mask.shape)
    return mask[np.ix_(rows, columns)].ravel()


def permutation_test(
    closeness: Closeness,
    task: Task,
    frame: pd.DataFrame,
    truths: Sequence[np.ndarray],
    answers: Sequence[np.ndarray],
    draws: int = DRAWS,
    seed: int = 0,
) -> Information:
    """Test whether answers fit their own patients better than other patients.

    Whole patients with all their views and phases are exchanged, among patients with the same views and phases;
    patients with a unique set are left out. Several recordings of one view are assigned in turn from a random start.

    Args:
        closeness: Fit of each truth with each answer (`FrameKind.closeness`).
        task: Task of the labels.
        frame: patient_id, view and phase of each frame.
        truths: Small masks, or points in mm.
        answers: Small masks or points of the predictions.
        draws: Number of permutations.
        seed: Seed of the draws.

    Returns:
        The result for the ranking metric; `n_patients` is the number of patients who can be exchanged.
    """
    rng = np.random.default_rng(seed)
    clusters = Clusters.of(frame["patient_id"].to_numpy())
    slots = frame[["view", "phase"]].fillna("").groupby(["view", "phase"], sort=True).ngroup().to_numpy()
    sets = np.unique(clusters.cells(slots, slots.max() + 1) > 0, axis=0, return_inverse=True)[1].ravel()
    members = np.flatnonzero(np.bincount(sets)[sets] > 1)
    if len(members) > MOST_PATIENTS:
        members = rng.permutation(members)[:MOST_PATIENTS]
    if not len(members):
        return Information.of(NOTHING_PERMUTED, task.metrics[0], 0)
    kept = np.flatnonzero(np.isin(clusters.of_row, members))
    patients = np.searchsorted(members := np.sort(members), clusters.of_row[kept])
    permutations = PatientPermutations(Clusters(np.arange(len(members)), len(members)), rng, sets[members])
    views = [
        _View.of(closeness, kept[slots[kept] == slot], patients[slots[kept] == slot], truths, answers, task, rng)
        for slot in np.unique(slots[kept])
    ]
    donors = np.empty(len(members), np.int64)
    permuted = []
    for source in (one for block in permutations.draw(draws) for one in block):
        donors[permutations.rows] = permutations.rows[source]
        permuted.append(sum(view.fit(donors, rng) for view in views))
    observed = sum(float(np.trace(view.fits)) for view in views)
    tails = NOTHING_PERMUTED if set(permuted) == {observed} else tails_of(observed, np.array(permuted))
    if len(members) < clusters.count and tails.test:
        tails = tails._replace(
            test=f"{tails.test} among the {len(members)} of {clusters.count} patients who can be exchanged"
        )
    return Information.of(tails, task.metrics[0], len(members))


class _View:
    """Frames of one view and phase, by patient, with the fit of each truth (rows) to each answer (columns)."""

    def __init__(self, patients: np.ndarray, fits: npt.NDArray[np.float64]) -> None:
        self.fits, self.patients = fits, patients
        self._members, first, size = np.unique(patients, return_index=True, return_counts=True)
        count = int(patients.max()) + 1
        self._first, self._size = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._first[self._members], self._size[self._members] = first, size
        self._turn = np.arange(len(patients)) - self._first[patients]
        self._rows = np.arange(len(patients))

    @classmethod
    def of(
        cls,
        closeness: Closeness,
        rows: np.ndarray,
        patients: np.ndarray,
        truths: Sequence[np.ndarray],
        answers: Sequence[np.ndarray],
        task: Task,
        rng: np.random.Generator,
    ) -> "_View":
        """Compute all fits of the frames at `rows`; the recordings of a patient are in random order."""
        order = np.lexsort((rng.random(len(rows)), patients))
        truth, answer = (np.stack([values[row] for row in rows[order]]) for values in (truths, answers))
        return cls(patients[order], np.rint(closeness(truth, answer, len(task.structures)) * GRID))

    def fit(self, donors: np.ndarray, rng: np.random.Generator) -> float:
        """Return the fit if each patient receives the answers of its donor. The shape is (P,)."""
        donor = donors[self.patients]
        size, turn = self._size[donor], self._turn
        if len(self._members) < len(self.patients):
            start = np.zeros(len(self._size), np.int64)
            start[self._members] = rng.integers(self._size[donors[self._members]])
            turn = (start[self.patients] + turn) % size
        return float(self.fits[self._rows, self._first[donor] + turn].sum())


def overlap(truth: np.ndarray, answer: np.ndarray, structures: int) -> npt.NDArray[np.float64]:
    """Return the sum of the Dice over structures for all pairs of masks (n, pixels) and (m, pixels).

    The shape is (n, m).
    """
    total = np.zeros((len(truth), len(answer)))
    for label in range(1, structures + 1):
        one, other = (truth == label).astype(np.float32), (answer == label).astype(np.float32)
        pixels = one.sum(axis=1)[:, None] + other.sum(axis=1)
        total += 2 * (one @ other.T) / np.maximum(pixels, 1)  # Pixel counts, exact in float32.
    return total


def distances(truth: np.ndarray, answer: np.ndarray) -> npt.NDArray[np.float64]:
    """Return minus the sum of the distances between labelled points (n, k, 2) and answers (m, k, 2) for all pairs.

    The shape is (n, m).
    """
    total = np.zeros((len(truth), len(answer)))
    for points, others in zip(truth.swapaxes(0, 1), answer.swapaxes(0, 1), strict=True):
        apart = points[:, None] - others
        total -= np.nan_to_num(np.hypot(apart[..., 0], apart[..., 1]))
    return total
