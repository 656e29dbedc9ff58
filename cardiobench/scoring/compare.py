"""Whether one model is better than another: on the same patients, and with a correction for asking many times."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import BadPredictions, first_n
from cardiobench.scoring.bootstrap import RESAMPLES, percentile_interval, resample
from cardiobench.scoring.metrics import load_metric
from cardiobench.scoring.predictions import Predictions


@dataclass(frozen=True)
class Comparison:
    """Two models on one task.

    Attributes:
        task: `<dataset>/<target>`.
        metric: key of the metric.
        a: score of the first model.
        b: score of the second.
        difference: a - b, in the metric's own direction.
        low: 2.5 % quantile of the paired difference over patients.
        high: 97.5 % quantile.
        p_value: two-sided, of no difference, by the same resamples; not below 2 / (B + 1).
        better: `a` or `b` when the interval leaves out zero, else `tied`; `unknown` without an interval.
        n: rows.
        n_patients: patients.
    """

    task: str
    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    better: str
    n: int
    n_patients: int


def compare(
    a: Predictions, b: Predictions, metric: str | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Paired comparison of two models by a bootstrap over patients.

    Args:
        a: predictions of the first model.
        b: predictions of the second model for the same units.
        metric: folder of `hf_metrics/`; None means the task's ranking metric.
        resamples: B.
        seed: of the draws.

    Raises:
        BadPredictions: the two do not answer the same units of the same task.
    """
    if a.task.name != b.task.name:
        raise BadPredictions(f"{a.source} answers {a.task.name} and {b.source} {b.task.name}: compare the same task.")
    frame = _same_rows(a, b)
    other = Predictions(b.task, frame, b.expected, b.source)
    loaded = load_metric(metric or a.task.metrics[0])
    key = loaded.primary_key
    first, second, patients = a.sample(), other.sample(), a.patients
    scores = loaded.value(first)[key], loaded.value(second)[key]
    low = high = p_value = np.nan
    if len(set(patients)) > 1:
        drawn = resample(
            lambda weights: {
                "difference": loaded.resamples(first, weights)[key] - loaded.resamples(second, weights)[key]
            },
            patients,
            resamples,
            seed,
        )["difference"]
        low, high = percentile_interval(drawn)
        p_value = two_sided(drawn)
    better = "unknown"
    if not np.isnan(low):
        better = "tied" if low <= 0 <= high else "a" if (low > 0) == bool(loaded.direction[key]) else "b"
    difference = scores[0] - scores[1]
    count = len(first), len(set(patients))
    return Comparison(a.task.name, key, *scores, difference, low, high, p_value, better, *count)


def _same_rows(a: Predictions, b: Predictions):
    """The rows of b in the order of a; refuses other units or other truths."""
    ours, theirs = set(a.frame["id"]), set(b.frame["id"])
    if ours != theirs:
        only = [
            f"{p.source} alone has {first_n(sorted(own))}" for p, own in ((a, ours - theirs), (b, theirs - ours)) if own
        ]
        raise BadPredictions(f"the two do not answer the same units of {a.task.name}: {'; '.join(only)}.")
    frame = b.frame.set_index("id").loc[a.frame["id"]].reset_index()
    for column in ("y_true", "patient_id"):
        odd = a.frame["id"][(a.frame[column].to_numpy() != frame[column].to_numpy())]
        if len(odd):
            raise BadPredictions(
                f"{a.source} and {b.source} were set against other references: {column} of {first_n(odd)}."
            )
    return frame


def two_sided(differences: np.ndarray) -> float:
    """Two-sided p-value of no difference: twice the smaller share of resamples on either side of zero.

    Zeros count on both sides, and one is added to each share, so that no finite number of resamples gives 0.
    """
    defined = differences[~np.isnan(differences)]
    if not len(defined):
        return np.nan
    smaller = min((defined <= 0).sum(), (defined >= 0).sum())
    return float(min(1.0, 2 * (smaller + 1) / (len(defined) + 1)))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """P-values adjusted for their number by Holm's step-down rule, in the order given.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979).

    Raises:
        ValueError: a value is not in [0, 1].
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p-values are numbers in [0, 1], one per comparison; got {p_values!r}")
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted
