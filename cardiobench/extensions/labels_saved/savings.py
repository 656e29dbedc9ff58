"""Statistics of learning curves: resamples over test and training patients, and the patients needed for the same score."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cardiobench.stats.bootstrap import LEVEL, MIN_PATIENTS


@dataclass(frozen=True)
class Curve:
    """Scores of one learner over the number of patients that it learned from.

    Attributes:
        name: Name of model and learner.
        patients: Number of patients, ascending, the last is all of them, shape (J,).
        scores: Mean score over the draws, (J,).
        resamples: The same in every joint resample, (B, J); curves of the same patients and seed share theirs.
        higher_is_better: Direction of the score.
        test_patients: Number of test patients.
        reference: Name of the reference that the learner is, empty for others.
        paired_by: Digest of everything that two curves must share to be compared.
    """

    name: str
    patients: np.ndarray
    scores: np.ndarray
    resamples: np.ndarray = field(repr=False)
    higher_is_better: bool
    test_patients: int
    reference: str = ""
    paired_by: str = ""

    def rising(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (1, J) and resamples (B, J) that grow with the patients, the larger the better."""
        sign = 1.0 if self.higher_is_better else -1.0
        return monotone(sign * self.scores[None]), monotone(sign * self.resamples)


@dataclass(frozen=True)
class Saving:
    """Patients that one learner needs for the score that another one has with all of them.

    Attributes:
        name: Learner.
        other: Learner that it is compared with.
        factor: Ratio of the patients that the other one and the learner need: above 1 it reaches the other's score with all patients by
            fewer, below 1 the other reaches its score by fewer. Infinite, or 0, where the smallest subset is enough.
        low: Lower end of the 95 % interval of the factor; NaN for none.
        high: Upper end.
        smallest: Smallest number of patients of the learner's curve.
        others_smallest: The same of the other's curve.
        all: All patients.
    """

    name: str
    other: str
    factor: float
    low: float
    high: float
    smallest: int
    others_smallest: int
    all: int

    @property
    def text(self) -> str:
        """The patients that the learner needs, with their interval, in words."""
        value = self._needed(self.factor)
        if np.isnan(self.low):
            return f"{value} (no interval: fewer than {MIN_PATIENTS} test patients)"
        return _with_interval(value, self._needed(self.high), self._needed(self.low))

    @property
    def factor_text(self) -> str:
        """The factor, with its interval, in words."""
        value = self._times(self.factor)
        return value if np.isnan(self.low) else _with_interval(value, self._times(self.low), self._times(self.high))

    def _needed(self, factor: float) -> str:
        if factor < 1:
            return f"more than all {self.all}"
        return f"fewer than {self.smallest}" if np.isinf(factor) else f"{self.all / factor:.0f}"

    def _times(self, factor: float) -> str:
        if factor == 0:
            return f"< {self.others_smallest / self.all:.2g}"
        return f"> {self.all / self.smallest:.3g}" if np.isinf(factor) else f"{factor:.2g}"


def _with_interval(value: str, low: str, high: str) -> str:
    return f"{value} [{low}, {high}]" if {low, high} != {value} else f"{value}, as in 95 % of the resamples"


def joint_resamples(
    scores: Sequence[np.ndarray], draws: Sequence[np.ndarray], shares: Sequence[float], seed: int
) -> np.ndarray:
    """Return mean scores over the draws in resamples of test and training patients, (B, J).

    The part of the test patients is the score in a resample of them, averaged over the draws. The part of the training patients is
    the deviation of each draw from the mean, with normal weights that all sizes and curves of one seed share. Its variance is that
    over other training patients: draws without replacement from the same ones differ too little by 1 - share, and what
    they share does not average out. All patients together are one draw; the deviations of the largest subset stand in, in
    proportion to its share, since the spread of the error of a model that is fitted to n patients falls as 1 / n
    (`benchmarks/validity/labels_saved.py`).

    Args:
        scores: Score of each draw, (K,), for each of J sizes; with all patients (1,).
        draws: The same in every resample of the test patients, (K, B).
        shares: Share of the patients of each size, ascending.
        seed: Seed of the weights.
    """
    count, resamples = max(map(len, scores)), draws[0].shape[1]
    weights = np.random.default_rng(seed).normal(size=(resamples, count)) / np.sqrt(max(count - 1, 1))
    columns, largest = [], np.zeros(count)
    for score, drawn, share in zip(scores, draws, shares, strict=True):
        if share < 1:
            deviations = (score - score.mean()) / np.sqrt(1 - share)
            moved = deviations * np.sqrt(share + (1 - share) / count)
            largest = deviations * share
        else:
            moved = largest
        columns.append(drawn.mean(axis=0) + weights @ moved)
    return np.stack(columns, axis=1)


def monotone(curves: np.ndarray) -> np.ndarray:
    """Return the nearest curves that never fall (isotonic regression), (B, J), by the formula of greatest and least means."""
    count = curves.shape[1]
    sums = np.concatenate([np.zeros((len(curves), 1)), np.cumsum(curves, axis=1)], axis=1)
    fitted = np.empty_like(curves)
    for place in range(count):
        means = [
            np.min([(sums[:, end + 1] - sums[:, start]) / (end + 1 - start) for end in range(place, count)], axis=0)
            for start in range(place + 1)
        ]
        fitted[:, place] = np.max(means, axis=0)
    return fitted


def patients_needed(patients: np.ndarray, curves: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the number of patients at which curves that never fall reach a score, by interpolation in its logarithm, (B,).

    0 where the smallest subset is there already, infinity where all patients are not enough.

    Args:
        patients: Number of patients, ascending, (J,).
        curves: Scores, the larger the better, (B, J).
        target: Score to be reached, (B,).
    """
    logs = np.log(patients)
    needed = np.where(target <= curves[:, -1], float(patients[-1]), np.inf)
    for place in range(len(patients) - 1, 0, -1):
        low, high = curves[:, place - 1], curves[:, place]
        way = np.clip((target - low) / np.where(high > low, high - low, 1.0), 0, 1)
        here = np.exp(logs[place - 1] + way * (logs[place] - logs[place - 1]))
        needed = np.where(target <= high, np.minimum(here, patients[place]), needed)
    return np.where(target <= curves[:, 0], 0.0, needed)


def factors(one: Curve, other: Curve) -> tuple[float, np.ndarray]:
    """Return how many times fewer patients one learner needs, and the same in every resample, (B,).

    Both are compared at the lower one of their scores with all patients: the horizontal distance of the curves there.
    """
    (first, firsts), (second, seconds) = one.rising(), other.rising()
    return (
        float(_factors(one.patients, first, other.patients, second)[0]),
        _factors(one.patients, firsts, other.patients, seconds),
    )


def _factors(patients: np.ndarray, curves: np.ndarray, others: np.ndarray, references: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        fewer = others[-1] / patients_needed(patients, curves, references[:, -1])
        more = patients_needed(others, references, curves[:, -1]) / patients[-1]
    found = np.where(curves[:, -1] >= references[:, -1], fewer, more)
    return np.where(np.isnan(curves).any(axis=1) | np.isnan(references).any(axis=1), np.nan, found)


def saving(one: Curve, other: Curve, level: float = LEVEL) -> Saving:
    """Compare two learners of the same patients by the number of patients that they need.

    The interval is that of percentiles of the joint resamples where both curves are defined.

    Raises:
        ValueError: The curves are not of the same patients and draws.
    """
    if one.paired_by != other.paired_by:
        raise ValueError(f"{one.name} and {other.name} learned from, or were tested on, different patients or draws")
    value, drawn = factors(one, other)
    drawn = drawn[~np.isnan(drawn)]
    low = high = float("nan")
    if one.test_patients >= MIN_PATIENTS and len(drawn):
        tail = (1 - level) / 2
        low = float(np.quantile(drawn, tail, method="lower"))
        high = float(np.quantile(drawn, 1 - tail, method="higher"))
    smallest = int(one.patients[0]), int(other.patients[0])
    return Saving(one.name, other.name, value, low, high, *smallest, int(one.patients[-1]))
