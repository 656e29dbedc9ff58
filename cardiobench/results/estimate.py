"""A score with its interval, and the score that needs no model."""

import math
from dataclasses import dataclass

from cardiobench.results.record import Count, Number, Part


@dataclass(frozen=True)
class Estimate(Part):
    """A score and its 95 % interval over patients.

    Attributes:
        value: The score; NaN where it is undefined.
        low: Lower end of the interval; NaN where there is none.
        high: Upper end.
        n: Scored rows.
        n_patients: Patients they come from.
        reason: Reason why a number is NaN or has no interval; empty otherwise.
        se: Standard error over patients.
        method: Method of the interval; a name in `cardiobench.stats.estimates.METHODS`.
        covers: Source of the variation: "test patients", "test and training patients", or "test patients and seeds of the training".
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
    """A score that needs no model.

    Attributes:
        value: Value of the ranking metric on the same rows; NaN with the reason where there is no such floor.
        prediction: The constant answer; None where answers vary.
        reason: Reason why there is none; empty otherwise.
        reached_by: Strategy that reaches it, such as guessing at the class rates.
    """

    value: Number
    prediction: str | float | None = None
    reason: str = ""
    reached_by: str = ""
