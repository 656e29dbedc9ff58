"""Estimate the patients that a learner needs for the score of another, from their learning curves."""

from dataclasses import dataclass, field

import numpy as np

from cardiobench.scoring.compare import ComparedDraws, compare_draws
from cardiobench.scoring.pairs import Outcome
from cardiobench.stats.bootstrap import MIN_PATIENTS

CONCLUSIONS: dict[Outcome, str] = {
    "better": "needs fewer patients",
    "worse": "needs more patients",
    "undecided": "cannot be told apart",
    "too few to say": "too few to say",
}
"""Outcome of a comparison in words. A learner needs fewer patients if and only if its score with all patients is better."""


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
        """Return monotone scores (1, J) and resamples (B, J), oriented so that larger is better.

        They are rounded to 12 decimals, so that equal scores stay equal.
        """
        sign = 1.0 if self.higher_is_better else -1.0
        one, several = (np.round(monotone(sign * each), 12) for each in (self.scores[None], self.resamples))
        return one, several


@dataclass(frozen=True)
class Saving:
    """Number of patients that one learner needs to match another with all patients.

    Attributes:
        name: Name of the learner.
        other: Name of the comparison learner.
        needed: Patients needed for the score of the comparison learner with all patients; 0 if the smallest subset is
            sufficient, infinite if all patients are not.
        needed_low: Lower end of the 95 % interval; NaN if unavailable.
        needed_high: Upper end of the interval.
        factor: Patients needed by the comparison learner, divided by those needed by this learner for the same score.
            Above 1, this learner needs fewer patients; below 1, more. Infinite or 0 if the smallest subset is
            sufficient.
        low: Lower end of the 95 % interval of the factor; NaN if unavailable.
        high: Upper end of the interval.
        smallest: Smallest subset of this learner's curve.
        others_smallest: Smallest subset of the comparison learner's curve.
        all: Total number of patients.
        compared: Comparison of the scores with all patients, read from the monotone curves.
    """

    name: str
    other: str
    needed: float
    needed_low: float
    needed_high: float
    factor: float
    low: float
    high: float
    smallest: int
    others_smallest: int
    all: int
    compared: ComparedDraws

    @property
    def conclusion(self) -> str:
        """Which of both learners needs fewer patients, by the rule for all comparisons of models."""
        return CONCLUSIONS[self.compared.outcome]

    @property
    def text(self) -> str:
        """Number of patients needed, and its interval in words."""
        return f"{self._patients(self.needed)} ({self._interval})"

    @property
    def sentence(self) -> str:
        """Sentence on the number of patients needed, in two lines."""
        return f"needs {self._patients(self.needed)} patients\n({self._interval})"

    @property
    def _interval(self) -> str:
        if np.isnan(self.needed_low):
            return f"no interval: fewer than {MIN_PATIENTS} test patients"
        value, low, high = map(self._patients, (self.needed, self.needed_low, self.needed_high))
        return f"95 % interval: {low} to {high}" if {low, high} != {value} else "as in 95 % of the resamples"

    @property
    def factor_text(self) -> str:
        """Text with the factor and its interval."""
        value = self._times(self.factor)
        return value if np.isnan(self.low) else _with_interval(value, self._times(self.low), self._times(self.high))

    def _patients(self, needed: float) -> str:
        if np.isinf(needed):
            return f"more than all {self.all}"
        return f"fewer than {self.smallest}" if needed == 0 else f"{needed:.0f}"

    def _times(self, factor: float) -> str:
        if factor == 0:
            return f"< {self.others_smallest / self.all:.2g}"
        return f"> {self.all / self.smallest:.3g}" if np.isinf(factor) else f"{factor:.2g}"


def _with_interval(value: str, low: str, high: str) -> str:
    return f"{value} [{low}, {high}]" if {low, high} != {value} else f"{value}, as in 95 % of the resamples"


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


def factors(patients: np.ndarray, curves: np.ndarray, others: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Return the factor by which one learner needs fewer patients than another. The shape is (B,).

    Both curves are compared at the lower of their final scores, as a horizontal distance. If the final scores are equal,
    both may reach them with fewer than all patients.

    Args:
        patients: Numbers of patients of the learner, ascending, (J,).
        curves: Its non-decreasing scores, oriented so that larger is better, (B, J).
        others: Numbers of patients of the other learner, (K,).
        references: Its scores, (B, K).
    """
    own = patients_needed(patients, curves, references[:, -1])
    its = patients_needed(others, references, curves[:, -1])
    with np.errstate(divide="ignore", invalid="ignore"):
        both = np.where(own == its, 1.0, its / own)
        found = np.where(curves[:, -1] > references[:, -1], others[-1] / own, its / patients[-1])
    found = np.where(curves[:, -1] == references[:, -1], both, found)
    return np.where(np.isnan(curves).any(axis=1) | np.isnan(references).any(axis=1), np.nan, found)


def saving(one: Curve, other: Curve) -> Saving:
    """Compare two learners by the number of patients needed, over the joint resamples in which both curves are defined.

    Raises:
        ValueError: The curves have different patients or draws.
    """
    if one.paired_by != other.paired_by:
        raise ValueError(f"{one.name} and {other.name} learned from, or were tested on, different patients or draws")
    (first, firsts), (second, seconds) = one.rising(), other.rising()
    needed, drawn = (
        (
            patients_needed(one.patients, curves, references[:, -1]),
            factors(one.patients, curves, other.patients, references),
        )
        for curves, references in ((first, second), (firsts, seconds))
    )
    undefined = np.isnan(drawn[1])
    compared = compare_draws(
        float(first[0, -1] - second[0, -1]),
        np.where(undefined, np.nan, firsts[:, -1] - seconds[:, -1]),
        (np.where(undefined, np.nan, drawn[0]), drawn[1]),
        one.test_patients,
    )
    (needed_low, needed_high), (low, high) = compared.ratios
    smallest = int(one.patients[0]), int(other.patients[0])
    return Saving(
        one.name,
        other.name,
        float(needed[0][0]),
        needed_low,
        needed_high,
        float(needed[1][0]),
        low,
        high,
        *smallest,
        int(one.patients[-1]),
        compared,
    )
