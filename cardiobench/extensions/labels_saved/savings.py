"""Resample learning curves and estimate the patients needed for equal scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cardiobench.stats.bootstrap import LEVEL, MIN_PATIENTS


@dataclass(frozen=True)
class Curve:
    """Scores of one learner by number of training patients.

    Attributes:
        name: Name of the model and learner.
        patients: Number of patients in ascending order, ending with all patients, (J,).
        scores: Mean score over draws, (J,).
        resamples: Mean scores in joint resamples, (B, J); shared by curves with the same patients and seed.
        higher_is_better: Whether higher scores are better.
        test_patients: Number of test patients.
        reference: Name of the reference if the learner is one; otherwise empty.
        paired_by: Digest that two curves must share to be comparable.
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
        """Return monotone scores (1, J) and resamples (B, J), oriented so that larger is better."""
        sign = 1.0 if self.higher_is_better else -1.0
        return monotone(sign * self.scores[None]), monotone(sign * self.resamples)


@dataclass(frozen=True)
class Saving:
    """Number of patients that one learner needs to match another with all patients.

    Attributes:
        name: Name of the learner.
        other: Name of the comparison learner.
        factor: Patients needed by the comparison learner, divided by those needed by this learner for the same score.
            Above 1, this learner needs fewer patients; below 1, more. Infinite or 0 if the smallest subset is
            sufficient.
        low: Lower end of the 95 % interval of the factor; NaN if unavailable.
        high: Upper end of the interval.
        smallest: Smallest subset of this learner's curve.
        others_smallest: Smallest subset of the comparison learner's curve.
        all: Total number of patients.
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
        """Number of patients needed, and its interval in words."""
        return f"{self._needed(self.factor)} ({self._interval})"

    @property
    def sentence(self) -> str:
        """Sentence on the number of patients needed, in two lines."""
        return f"needs {self._needed(self.factor)} patients\n({self._interval})"

    @property
    def _interval(self) -> str:
        if np.isnan(self.low):
            return f"no interval: fewer than {MIN_PATIENTS} test patients"
        value, low, high = map(self._needed, (self.factor, self.high, self.low))
        return f"95 % interval: {low} to {high}" if {low, high} != {value} else "as in 95 % of the resamples"

    @property
    def factor_text(self) -> str:
        """Text with the factor and its interval."""
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
    """Return mean scores over draws in joint resamples of test and training patients. The shape is (B, J).

    Test variation is the score in a bootstrap resample of test patients, averaged over draws. Training variation adds
    the deviation of each draw from the mean, with normal weights shared by all sizes and curves of one seed. The
    weights correct the variance for draws without replacement from the same patients, which differ too little by the
    factor 1 - share and whose common part does not average out. The full set has a single draw, so it uses the
    deviations of the largest subset scaled by its share, because the variance of a fitted model decreases as 1 / n
    (`benchmarks/validity/labels_saved.py`).

    Args:
        scores: Score of each draw, (K,), for each of J sizes; (1,) for the full set.
        draws: Scores of the draws in every test resample, (K, B).
        shares: Fraction of the patients at each size, ascending.
        seed: Random seed of the weights.
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
    """Return the closest non-decreasing curves by isotonic regression (max-min formula). The shape is (B, J)."""
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
    """Return the number of patients at which non-decreasing curves reach a score. The shape is (B,).

    Interpolation uses the logarithm of the number of patients. The result is 0 if the smallest subset reaches the
    score, and infinite if no subset does.

    Args:
        patients: Number of patients, ascending, (J,).
        curves: Scores oriented so that larger is better, (B, J).
        target: Target score, (B,).
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
    """Return the factor by which one learner needs fewer patients, and its resamples. The shape is (B,).

    Both curves are compared at the lower of their final scores, as a horizontal distance.
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
    """Compare two learners by the number of patients needed.

    The interval uses percentiles of joint resamples in which both curves are defined.

    Raises:
        ValueError: The curves have different patients or draws.
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
