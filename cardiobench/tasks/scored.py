"""Interface between a kind of task and the one function that scores."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.results.score_result import Bounds, Breakdown, ClassScore, Estimate, Floor
from cardiobench.stats.information import Information


class Patients(NamedTuple):
    """Patients that a verdict rests on, each counted by the share of rows (`Clusters.effective`).

    Attributes:
        total: Number of patients.
        effective: Number that they count as.
        others: Number that those outside the most frequent class count as; NaN where no class decides.
        frequent: Most frequent class; empty where no class decides.
    """

    total: int
    effective: float
    others: float = math.nan
    frequent: str = ""


@dataclass(frozen=True)
class Evidence:
    """Everything that a verdict rests on.

    Attributes:
        estimate: Score with its interval; that of the worst case where answers are missing.
        floor: Best expected score of answers that ignore the recording, on the same rows.
        information: Outcome of the information test.
        n_patients: Patients that the reader is told the score rests on.
        patients: Patients of the rows.
        bounds: Worst and best case; None where no answer is missing.
        ranking: The score by ranks alone, which needs no cut; None where there is none.
        numbers: Whether answers are numbers, so that the floor is a constant.
    """

    estimate: Estimate
    floor: Floor
    information: Information
    n_patients: int
    patients: Patients
    bounds: Bounds | None = None
    ranking: Estimate | None = None
    numbers: bool = False


class Scored(ABC):
    """Answers of one task while they are scored; a kind of task makes one for each call.

    Attributes:
        metric: Metric that ranks models.
        key: Key of its number.
    """

    metric: Metric
    key: str

    @abstractmethod
    def overall(self) -> dict[str, Estimate]:
        """Return every number that the result shows, with its interval."""

    def further(self) -> dict[str, float]:
        """Return the numbers that stand in the file alone; by default none."""
        return {}

    @abstractmethod
    def number(self, key: str) -> Number:
        """Return the facts of a number of the result."""

    @abstractmethod
    def floors(self) -> dict[str, Floor]:
        """Return the floors of the ranking number; the verdict is judged by `best_uninformed`."""

    @abstractmethod
    def evidence(self, estimate: Estimate, floor: Floor) -> Evidence:
        """Return the basis of the verdict.

        Args:
            estimate: Ranking number of the answers at hand.
            floor: `best_uninformed` of the answers at hand.
        """

    @abstractmethod
    def groups(self) -> tuple[dict[str, Breakdown], dict[str, str], list[str]]:
        """Return the breakdowns, the reason why other groups have no score, and sentences on them."""

    @abstractmethod
    def collapsed(self) -> str:
        """Return a description of answers that are (nearly) all the same; empty for others."""

    @abstractmethod
    def coverage(self) -> Mapping[str, int | None]:
        """Return how many units or frames are `scored` of how many `expected`."""

    def per_class(self) -> dict[str, ClassScore]:
        """Return scores of single classes; by default none."""
        return {}

    def coverage_sentences(self) -> list[str]:
        """Return sentences on missing answers that the answers themselves do not carry; by default none."""
        return []

    def sentences(self, estimate: Estimate) -> list[str]:
        """Return further sentences for the reader of the score, given its estimate; by default none."""
        return []
