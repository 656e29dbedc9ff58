"""Represent a score with its interval, and the floor of a score."""

import math
from dataclasses import dataclass

from cardiobench.results.record import Count, Number, Part


@dataclass(frozen=True)
class Estimate(Part):
    """Score with a 95 % interval over patients.

    Attributes:
        value: Score; NaN if undefined.
        low: Lower end of the interval; NaN if there is none.
        high: Upper end of the interval.
        n: Number of scored rows.
        n_patients: Number of patients.
        reason: Reason for a NaN or a missing interval; empty otherwise.
        se: Standard error over patients.
        method: Interval method, a name in `cardiobench.stats.estimates.METHODS`.
        covers: Source of variation: "test patients", "test and training patients", or "test patients and seeds of the
            training".
    """

    value: Number
    low: Number
    high: Number
    n: Count
    n_patients: Count
    reason: str = ""
    se: Number = math.nan
    method: str = ""
    covers: str = "test patients"


@dataclass(frozen=True)
class Floor(Part):
    """Score that can be reached without a model.

    Attributes:
        value: Value of the ranking metric on the same rows; NaN with a reason if undefined.
        prediction: Constant answer; None if the answers vary.
        reason: Reason for the absence of a floor; empty otherwise.
        reached_by: Strategy that reaches the floor, such as guessing at the class rates.
    """

    value: Number
    prediction: str | float | None = None
    reason: str = ""
    reached_by: str = ""
