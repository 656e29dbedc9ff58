"""Number of patients with failed answers and its upper limit, which a mean error does not show."""

import math

import numpy as np

from cardiobench.metrics.number import Number
from cardiobench.results.score_result import Estimate
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import exact_ends

FAILED = Number("failed", "lower", (0.0, 1.0), unit="fraction", interval="share")
"""Share of patients whose mean error exceeds the limit `Number.failed` of the ranking number."""


def share_failed(values: np.ndarray, clusters: Clusters, number: Number, label_unit: str) -> Estimate | None:
    """Compute the share of patients with failed answers, with its exact interval; None if there is no limit.

    Args:
        values: Error or overlap of each row, (n,).
        clusters: Patients of the rows.
        number: Number of the metric that is the mean of the values.
        label_unit: Unit of the task's label.
    """
    limit = number.failed.get(number.value_unit(label_unit), math.nan)
    if math.isnan(limit) or clusters.count < MIN_PATIENTS:
        return None
    means = clusters.sum(values) / clusters.rows
    share = float(np.mean(means < limit if number.higher_is_better else means > limit))
    low, high = exact_ends(share, clusters.count)
    se = math.sqrt(share * (1 - share) / clusters.count)
    return Estimate(share, low, high, len(values), clusters.count, se=se, method=FAILED.method)


def failures_sentence(failed: Estimate, number: Number, label_unit: str) -> str:
    """Describe how many patients failed and the upper limit of their share, which is above 0 even for no failures."""
    unit = number.value_unit(label_unit)
    limit = f"{number.failed[unit]:g}"
    beyond = (
        f"{number.key} < {limit}" if number.higher_is_better else f"off by > {limit} {unit}".replace(" %", " points")
    )
    count = round(failed.value * failed.n_patients)
    return f"{count or 'none'} of {failed.n_patients} patients failed ({beyond}): up to {100 * failed.high:.0f} % may"
