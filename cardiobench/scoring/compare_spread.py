"""Comparison of two models on the same patients, with an interval that also covers seeds."""

from dataclasses import replace

import numpy as np
import scipy

from cardiobench.scoring.compare import Comparison
from cardiobench.scoring.verdict import DETECTABLE


def with_spread(found: Comparison, spread: float) -> Comparison:
    """Return a comparison whose intervals and p-value also cover another spread of the scores, such as over seeds of a training.

    The distance of each end from the difference is combined by root sum of squares with the normal quantile times the
    spread; p is at least that of a normal variable with the sum of both variances.

    Args:
        found: Comparison over patients.
        spread: Standard deviation of the difference due to the other source of variation, in the unit of the metric.
    """

    def moved(end: float, level: float) -> float:
        reach = scipy.stats.norm.ppf((1 + level) / 2) * spread
        return float(found.difference + np.copysign(np.hypot(end - found.difference, reach), end - found.difference))

    total = np.hypot(found.detectable / DETECTABLE, spread)
    if np.isnan(found.p_value) or not total:
        return found
    p = max(found.p_value, float(2 * scipy.stats.norm.sf(abs(found.difference) / total)))
    return replace(
        found,
        low=moved(found.low, 0.95),
        high=moved(found.high, 0.95),
        inner_low=moved(found.inner_low, 0.90),
        inner_high=moved(found.inner_high, 0.90),
        p_value=p,
        p_adjusted=max(p, found.p_adjusted),
        detectable=float(DETECTABLE * total),
    )
