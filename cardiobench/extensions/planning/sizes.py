"""Smallest numbers of patients for a half-width, a power, and the validation of a prediction model."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from cardiobench.core.errors import BadConfig, MissingExtra
from cardiobench.extensions.planning.errors import StandardError, auroc_se
from cardiobench.stats.bootstrap import MIN_PATIENTS

MOST = 10_000_000
"""Largest number of patients that is searched."""
LEVEL = 0.05
Z = 1.959964


def check_power(power: float) -> float:
    """Return a power above the level and below 1; raise `BadConfig` otherwise."""
    if not LEVEL < power < 1:
        reason = "no number of patients reaches it" if power >= 1 else "a test without data has as much"
        raise BadConfig(f"--power {power:g}: {reason}. Give a fraction such as 0.8.")
    return power


def check_width(value: float, flag: str) -> float:
    """Return a margin or half-width above 0; raise `BadConfig` otherwise."""
    if not 0 < value < math.inf:
        raise BadConfig(
            f"{flag} {value:g}: no number of patients shows a difference of {value:g}. Give a number above 0."
        )
    return value


def patients_for_half_width(se: StandardError, half_width: float) -> int | None:
    """Return the patients for which a 95 % interval (Student's) has this half-width; None above `MOST`."""
    return _smallest(lambda n: scipy.stats.t.ppf(1 - LEVEL / 2, n - 1) * se(n) <= half_width)


def patients_for_difference(se: StandardError, difference: float, power: float, tests: int = 1) -> int | None:
    """Return the patients for which a two-sided test finds a difference with this power; None above `MOST`.

    Args:
        se: Standard error of the estimated difference.
        difference: True difference.
        power: Share of studies that find it.
        tests: Number of tests whose p-values are corrected together (Bonferroni).
    """
    return _smallest(lambda n: power_of(difference, se(n), n, LEVEL / tests, "two-sided") >= power)


def patients_above_floor(
    se: StandardError, at_floor: StandardError, difference: float, power: float, tests: int = 1
) -> int | None:
    """Return the patients for which an interval excludes the floor with this power; None above `MOST`.

    Args:
        se: Standard error of the score.
        at_floor: Standard error of a score equal to the floor, which decides for Wilson's and Newcombe's intervals.
        difference: True distance of the score from the floor.
        power: Share of studies whose interval excludes the floor.
        tests: Number of tests whose p-values are corrected together (Bonferroni).
    """
    return _smallest(lambda n: power_above_floor(difference, se(n), at_floor(n), LEVEL / tests) >= power)


def power_above_floor(difference: float, se: float, at_floor: float, level: float) -> float:
    """Compute the power of an interval to exclude the floor; see `patients_above_floor`."""
    return float(scipy.stats.norm.cdf((difference - scipy.stats.norm.isf(level / 2) * at_floor) / se))


def patients_for_not_worse(se: StandardError, margin: float, power: float, tests: int = 1) -> int | None:
    """Return the patients for which two equal models are shown to differ by less than a margin, one-sided."""
    return _smallest(lambda n: power_of(margin, se(n), n, LEVEL / tests, "larger") >= power)


def power_of(difference: float, se: float, n: float, level: float, alternative: str) -> float:
    """Compute the power of Student's test over n patients.

    Raises:
        MissingExtra: The package statsmodels is not installed.
    """
    try:
        from statsmodels.stats.power import TTestPower
    except ImportError:
        raise MissingExtra("planning", "analysis", "statsmodels") from None
    effect = difference / (se * math.sqrt(n))
    if effect * math.sqrt(n) > 30:  # The noncentral distribution is not computed that far.
        return 1.0
    return float(TTestPower().power(effect, n, level, alternative=alternative))


def _smallest(enough: Callable[[int], bool]) -> int | None:
    """Return the smallest number of patients that is enough, by bisection; at least 10, below which nothing has an interval."""
    low, high = MIN_PATIENTS, 2 * MIN_PATIENTS
    if enough(low):
        return low
    while not enough(high):
        low, high = high, 2 * high
        if low > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


class ValidationSizes(NamedTuple):
    """Patients to validate a prediction model with two classes (Riley et al., Statistics in Medicine 40, 2021).

    Attributes:
        ratio: Size that makes the ratio of observed to expected patients precise enough.
        slope: The same for the calibration slope.
        auroc: The same for the AUROC.
    """

    ratio: int
    slope: int
    auroc: int


def validation_sizes(
    prevalence: float,
    auroc: float,
    *,
    mean: float | None = None,
    sd: float | None = None,
    ratio_width: float = 0.2,
    slope_width: float = 0.2,
    auroc_width: float = 0.1,
) -> ValidationSizes:
    """Return the patients with which 95 % intervals have these widths, if the model is well calibrated.

    Args:
        prevalence: Share of patients with the class.
        auroc: Expected AUROC.
        mean: Mean of the log odds, which are normal; None for the one that fits prevalence and AUROC.
        sd: Standard deviation of the log odds; None as for `mean`.
        ratio_width: Width of the interval of observed / expected.
        slope_width: Width of the interval of the calibration slope.
        auroc_width: Width of the interval of the AUROC.
    """
    if mean is None or sd is None:
        mean, sd = log_odds_for(prevalence, auroc)
    se = math.asinh(ratio_width / 2) / Z  # Of log(observed / expected): exp(Z se) - exp(-Z se) is the width.
    ratio = (1 - prevalence) / (prevalence * se**2)
    at, weights = _normal_grid(mean, sd)
    curvature = scipy.special.expit(at) * scipy.special.expit(-at)
    zero, one, two = (float(weights @ (at**power * curvature)) for power in (0, 1, 2))
    slope = zero / ((slope_width / (2 * Z)) ** 2 * (zero * two - one**2))
    area = _smallest(lambda n: auroc_se(auroc, prevalence, n) <= auroc_width / (2 * Z))
    return ValidationSizes(math.ceil(ratio), math.ceil(slope), area or MOST)


def log_odds_for(prevalence: float, auroc: float) -> tuple[float, float]:
    """Return mean and standard deviation of normal log odds of a calibrated model with this prevalence and AUROC.

    Raises:
        BadConfig: The AUROC is not above 0.5 and below 0.99, or the prevalence not above 0 and below 1.
    """
    if not (0 < prevalence < 1 and 0.5 < auroc < 0.99):
        raise BadConfig(
            f"prevalence {prevalence:g}, AUROC {auroc:g}: give a prevalence above 0 and below 1, and an AUROC above 0.5 "
            "and below 0.99."
        )

    def mean_for(sd: float) -> float:
        def excess(mean: float) -> float:
            at, weights = _normal_grid(mean, sd)
            return float(weights @ scipy.special.expit(at)) - prevalence

        return float(scipy.optimize.brentq(excess, -60, 60))

    def area(sd: float) -> float:
        at, weights = _normal_grid(mean_for(sd), sd)
        ill = weights * scipy.special.expit(at)
        well = weights * scipy.special.expit(-at)
        below = np.cumsum(well) - well / 2
        return float((ill * below).sum() / (ill.sum() * well.sum()))

    sd = float(scipy.optimize.brentq(lambda sd: area(sd) - auroc, 1e-3, 12))
    return mean_for(sd), sd


def _normal_grid(mean: float, sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a normal distribution and their weights, which sum to 1."""
    at = np.linspace(-8, 8, 4001)
    weights = scipy.stats.norm.pdf(at)
    return mean + sd * at, weights / weights.sum()
