"""Permutation test: how often do the same answers, permuted between patients, score as well by chance?"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import confusion_table

DRAWS = 1999
MOST_PATIENTS = 10_000
"""Maximum number of patients in the test; from more, this many are selected at random, which keeps the test exact."""
_CHUNK = 2**17  # Rows permuted at a time, which fit in the processor's cache.


class Tails(NamedTuple):
    """One-sided p-values of a test in both directions.

    Attributes:
        p_value: Share of permutations, including the observed order, that score at least as well.
        p_reversed: Share of permutations that score at most as well.
        test: Description of the test; empty if all answers or all true values are equal, so that a permutation changes
            nothing.
    """

    p_value: float
    p_reversed: float
    test: str = ""


NOTHING_PERMUTED = Tails(1.0, 1.0)
MANN_WHITNEY = "Mann-Whitney's test"


class Information(NamedTuple):
    """Outcome of the information test.

    Attributes:
        p_value: Defined as in `Tails`.
        statistic: Key of the compared number.
        n_patients: Number of patients in the test.
        p_reversed: Defined as in `Tails`.
        test: Defined as in `Tails`.
        refitted: Whether labels were permuted and models refitted, instead of permuting fixed answers.
    """

    p_value: float
    statistic: str
    n_patients: int
    p_reversed: float
    test: str
    refitted: bool = False

    @classmethod
    def of(cls, tails: Tails, statistic: str, n_patients: int) -> "Information":
        """Return the outcome with the given tails."""
        return cls(tails.p_value, statistic, n_patients, tails.p_reversed, tails.test)


def information_test(
    sample: ScoringInput, clusters: Clusters, classes: int, draws: int = DRAWS, seed: int = 0
) -> Information:
    """Test whether answers carry information about their patients.

    Args:
        sample: Rows with at least one answer.
        clusters: Patients of the rows.
        classes: Number of classes, K; 0 for numbers.
        draws: Number of permutations, B.
        seed: Seed of the draws.

    Returns:
        The outcome; p is 1 if all answers are the same or all rows have the same class.
    """
    if clusters.count > MOST_PATIENTS:
        chosen = np.random.default_rng(seed).permutation(clusters.count)[:MOST_PATIENTS]
        rows = np.flatnonzero(np.isin(clusters.of_row, chosen))
        sample, clusters = sample.take(rows), clusters.take(rows)
    if sample.multilabel:
        tails = p_of_labels(sample.y_true, sample.scores, clusters, draws, seed)
        # The AUROC of binary answers is the mean of sensitivity and specificity.
        statistic = "balanced_accuracy" if sample.probabilities is None else "auroc_macro"
        return Information.of(tails, statistic, clusters.count)
    if not classes:
        tails = p_of_numbers(sample.y_true, sample.y_pred, clusters, draws, seed)
        return Information.of(tails, "mae", clusters.count)
    if sample.probabilities is not None:
        tails = p_of_ranking(sample.y_true, sample.probabilities, clusters, draws, seed)
        return Information.of(tails, "auroc", clusters.count)
    outcomes = sample.outcomes(classes)
    tails = p_of_classes(sample.y_true, sample.y_pred, clusters, classes, draws, seed, outcomes)
    return Information.of(tails, "f1_macro", clusters.count)


def p_value(observed: float, permuted: np.ndarray) -> float:
    """Compute a one-sided permutation p-value that counts the observed arrangement (Phipson and Smyth 2010)."""
    return float((1 + (permuted >= observed - 1e-12).sum()) / (1 + len(permuted)))


def tails_of(observed: float, permuted: np.ndarray) -> Tails:
    """Compute both one-sided p-values of a score among the scores of permutations. Returns an array (B,)."""
    return Tails(p_value(observed, permuted), p_value(-observed, -permuted), f"{len(permuted):,} permutations")


class PatientPermutations:
    """Permutation of answers between patients.

    Every patient receives the rows of another patient, in a shuffled order from a random start. The rows of a donor
    with fewer rows are repeated, and those of a donor with more rows are cut.

    Attributes:
        rows: Row order of the permutations, (n,): one row of every patient, then all others. Compared values must be in
            this order.
    """

    def __init__(self, clusters: Clusters, rng: np.random.Generator, strata: np.ndarray | None = None):
        """Arrange the rows in the order of the permutations.

        Args:
            clusters: Patients of the rows.
            rng: Generator of the order and of all draws.
            strata: Stratum of each patient, (P,); patients are permuted within strata. None means a single stratum.
        """
        self._rng = rng
        strata = np.zeros(clusters.count, dtype=np.int64) if strata is None else strata
        by_stratum = np.argsort(strata, kind="stable")
        self._ends = [0, *np.cumsum(np.unique(strata, return_counts=True)[1])]
        position = np.empty_like(by_stratum)
        position[by_stratum] = np.arange(clusters.count)
        patient, size = position[clusters.of_row], clusters.rows[by_stratum]
        # Sort by patient, then at random. One combined key takes a tenth of the time of two keys.
        order = patient.argsort() if clusters.one_row_each else np.argsort(patient + rng.random(len(patient)))
        start = np.cumsum(size) - size
        further = np.ones(len(order), dtype=bool)
        further[start] = False
        place = np.concatenate([start, np.flatnonzero(further)])
        self.rows = order[place]
        # The rows of a patient are used in a circle. For each row: the position of its patient's first row, the number
        # of the patient's rows, and its place among them. Floats, because integer division is ten times slower.
        self._patient, self._at = patient[order[further]], place.argsort()
        home = patient[self.rows]
        self._start_of, self._size_of = start[home].astype(np.float64), size[home].astype(np.float64)
        self._before = place - self._start_of
        # Donors are renumbered, those with one row first, because only the others need a random start.
        numbered = np.argsort(size > 1, kind="stable")
        self._donors = numbered.argsort()
        self._first, self._size, self._alone = start[numbered], size[numbered], int((size == 1).sum())

    def draw(self, draws: int) -> Iterator[npt.NDArray[np.int64]]:
        """Yield permutations in blocks: the position in `rows` of the answer that each row receives.

        Each has the shape (b, n).
        """
        step = max(1, _CHUNK // len(self.rows))
        for first in range(0, draws, step):
            donor = self._exchange(min(step, draws - first))
            yield donor if not len(self._patient) else self._permute_rows(donor)

    def _exchange(self, draws: int) -> npt.NDArray[np.int64]:
        """Permute the patients within strata. Returns an array (b, P)."""
        donor = np.tile(self._donors, (draws, 1))
        for low, high in pairwise(self._ends):
            self._rng.permuted(donor[:, low:high], axis=1, out=donor[:, low:high])
        return donor

    def _permute_rows(self, donor: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return for each row the position of the answer it receives from its patient's donor, starting at a random row of it.

        Takes donors (b, P) and returns positions (b, n).
        """
        draws, patients = donor.shape
        alone = self._alone
        size = self._size[alone:]
        begin = (self._rng.random((draws, len(size)), dtype=np.float32) * size.astype(np.float32)).astype(np.int64)
        begins = np.empty(donor.shape, np.int64)
        begins[:, :alone] = self._at[self._first[:alone]]
        begins[:, alone:] = self._at.take(self._first[alone:] + np.minimum(begin, size - 1))
        source = np.empty((draws, len(self.rows)), np.int64)
        # This is a quarter faster than `take_along_axis`.
        source[:, :patients] = first = begins.take(donor + patients * np.arange(draws)[:, None])
        first = first.take(self._patient, axis=1)
        step = self._before.take(first) + self._before[patients:]
        size = self._size_of.take(first)
        step -= size * np.floor(step / size)
        source[:, patients:] = self._at.take((self._start_of.take(first) + step).astype(np.int64))
        return source


def macro_f1(tables: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Compute macro F1 of confusion tables (..., K, outcomes) over the classes present in the whole test set."""
    inside = tables[..., : tables.shape[-2]]
    size = tables.sum(-1) + inside.sum(-2)
    return (2 * np.einsum("...ii->...i", inside) / np.where(size > 0, size, 1))[..., present].mean(-1)


def expected_macro_f1(tables: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Compute the exact mean (...) of macro F1 under random permutation from tables (..., K, K or K + 1).

    The mean of each cell is that of a hypergeometric distribution; `present` selects the classes of the mean.
    """
    true, n = tables.sum(-1), tables.sum((-1, -2))[..., None]
    answered = tables[..., : tables.shape[-2]].sum(-2)
    size = true + answered
    return (2 * true * answered / n / np.where(size > 0, size, 1))[..., present].mean(-1)


def p_of_classes(
    truth: np.ndarray,
    answer: np.ndarray,
    clusters: Clusters,
    classes: int,
    draws: int = DRAWS,
    seed: int = 0,
    outcomes: int | None = None,
) -> Tails:
    """Compute the p-values of predicted classes by macro F1 minus its chance level for the same margins.

    Args:
        truth: Class codes, (n,).
        answer: Codes of the answers, below `outcomes`, (n,).
        clusters: Patients of the rows.
        classes: Number of classes, K.
        draws: Number of permutations, B.
        seed: Seed of the draws.
        outcomes: Number of different answers, such as K + 1 with answers outside the classes; None for K.
    """
    width = outcomes or classes
    counts = confusion_table(truth, answer, classes, width)
    present, used = counts.sum(1) > 0, counts.sum(0) > 0
    if used.sum() < 2 or present.sum() < 2:
        return NOTHING_PERMUTED
    rng = np.random.default_rng(seed)
    if clusters.one_row_each:
        permuted = np.zeros((draws, classes, width))
        margins = counts.sum(1)[present].astype(int), counts.sum(0)[used].astype(int)
        permuted[np.ix_(range(draws), present, used)] = scipy.stats.random_table(*margins, seed=rng).rvs(draws)
    else:
        permutations, parts = PatientPermutations(clusters, rng), []
        code, answer = truth[permutations.rows] * width, answer[permutations.rows]
        for source in permutations.draw(draws):
            cells = code + answer[source] + (np.arange(len(source)) * classes * width)[:, None]
            parts.append(np.bincount(cells.ravel(), minlength=len(source) * classes * width))
        permuted = np.concatenate(parts).reshape(draws, classes, width).astype(np.float64)
    observed, chance = (macro_f1(table, present) - expected_macro_f1(table, present) for table in (counts, permuted))
    return tails_of(float(observed), chance)


def p_of_ranking(
    truth: np.ndarray, probabilities: np.ndarray, clusters: Clusters, draws: int = DRAWS, seed: int = 0
) -> Tails:
    """Compute the p-values of probabilities (n, K) by AUROC, for several classes by its one-vs-rest mean."""
    labels = [1] if probabilities.shape[1] == 2 else list(np.unique(truth))
    labels = [label for label in labels if 0 < (truth == label).sum() < len(truth)]
    if not labels or np.ptp(probabilities, axis=0).max() == 0:
        return NOTHING_PERMUTED
    if len(labels) == 1 and clusters.one_row_each:
        scores, positive = probabilities[:, labels[0]], truth == labels[0]
        better, worse = (
            float(scipy.stats.mannwhitneyu(scores[positive], scores[~positive], alternative=side).pvalue)
            for side in ("greater", "less")
        )
        return Tails(better, worse, MANN_WHITNEY)
    with_it = np.stack([truth == label for label in labels])
    return _p_of_ranks(with_it, ~with_it, probabilities.T[labels], clusters, draws, seed)


def p_of_labels(truth: np.ndarray, scores: np.ndarray, clusters: Clusters, draws: int = DRAWS, seed: int = 0) -> Tails:
    """Compute the p-values of multilabel scores (n, K) by the mean AUROC of the classes that can be ranked.

    Args:
        truth: True classes, 1, 0, or NaN for unmeasured, (n, K).
        scores: Scores of the classes, (n, K).
        clusters: Patients of the rows.
        draws: Number of permutations, B.
        seed: Seed of the draws.
    """
    ranked = (truth == 1).any(axis=0) & (truth == 0).any(axis=0) & (np.ptp(scores, axis=0) > 0)
    if not ranked.any():
        return NOTHING_PERMUTED
    truth = truth.T[ranked]
    return _p_of_ranks(truth == 1, truth == 0, scores.T[ranked], clusters, draws, seed)


def _p_of_ranks(
    with_it: np.ndarray, without: np.ndarray, scores: np.ndarray, clusters: Clusters, draws: int, seed: int
) -> Tails:
    """Compute the p-values of scores (K, n) by the mean AUROC, given which rows (K, n) have and lack each class."""
    permutations = PatientPermutations(clusters, np.random.default_rng(seed))
    ranks = np.stack([scipy.stats.rankdata(row) for row in scores])[:, permutations.rows]
    with_it, without = with_it[:, permutations.rows], without[:, permutations.rows]
    # The mean rank with the class minus that without it equals the AUROC up to a constant, even for repeated ranks.
    contrasts = with_it / with_it.sum(axis=1, keepdims=True) - without / without.sum(axis=1, keepdims=True)
    permuted = []
    for source in permutations.draw(draws):
        permuted.append(sum(rank[source] @ contrast for rank, contrast in zip(ranks, contrasts, strict=True)))
    return tails_of(float((ranks * contrasts).sum()), np.concatenate(permuted))


def p_of_numbers(truth: np.ndarray, answer: np.ndarray, clusters: Clusters, draws: int = DRAWS, seed: int = 0) -> Tails:
    """Compute the p-values of predicted numbers by the mean absolute error, after equalising the medians.

    All permutations use the same shift. Without it, answers that are all far too low would score the same in any order.
    """
    if np.ptp(answer) == 0 or np.ptp(truth) == 0:
        return NOTHING_PERMUTED
    permutations = PatientPermutations(clusters, np.random.default_rng(seed))
    moved, truth = (answer - np.median(answer) + np.median(truth))[permutations.rows], truth[permutations.rows]
    permuted = [-np.abs(moved[source] - truth).mean(axis=1) for source in permutations.draw(draws)]
    return tails_of(float(-np.abs(moved - truth).mean()), np.concatenate(permuted))


def p_of_correlation(x: np.ndarray, y: np.ndarray, clusters: Clusters, draws: int = DRAWS, seed: int = 0) -> float:
    """Compute the two-sided permutation p-value of Pearson's r between two columns, permuting values between patients."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 1.0
    permutations = PatientPermutations(clusters, np.random.default_rng(seed))
    x, centred = x[permutations.rows], (y - y.mean())[permutations.rows]
    centred /= np.sqrt((centred**2).sum())

    def strength(values: np.ndarray) -> np.ndarray:
        spread = np.sqrt(((values - values.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1))
        return np.abs(values @ centred) / np.maximum(spread, 1e-300)

    permuted = [strength(x[source]) for source in permutations.draw(draws)]
    return p_value(float(strength(x)), np.concatenate(permuted))
