"""Interface between a kind of task and the one function that scores."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.results.refits import Refits
from cardiobench.results.score_result import Bounds, Breakdown, ClassScore, Estimate, Floor
from cardiobench.stats.information import Information


class Patients(NamedTuple):
    """Patients behind a verdict, each weighted by the share of rows (`Clusters.effective`).

    Attributes:
        total: Number of patients.
        effective: Effective number of patients.
        others: Effective number of patients outside the most frequent class; NaN if there are no classes.
        frequent: Most frequent class; empty if there are no classes.
    """

    total: int
    effective: float
    others: float = math.nan
    frequent: str = ""


@dataclass(frozen=True)
class Evidence:
    """Evidence for a verdict.

    Attributes:
        estimate: Score with its interval; for missing answers that of the worst case.
        floor: Best expected score of answers that ignore the recording, on the same rows.
        information: Outcome of the information test.
        n_patients: Number of patients stated to the reader.
        patients: Patients of the rows.
        bounds: Worst and best case; None where no answer is missing.
        ranking: Score of the ranking, which needs no threshold; None if there is none.
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
    """Answers of one task during scoring; a kind of task creates one for each call.

    Attributes:
        metric: Metric that ranks models.
        key: Key of its number.
    """

    metric: Metric
    key: str

    @abstractmethod
    def overall(self) -> dict[str, Estimate]:
        """Return every number shown in the result, with its interval."""

    def further(self) -> dict[str, float]:
        """Return the numbers that are only in the file; by default none."""
        return {}

    @abstractmethod
    def number(self, key: str) -> Number:
        """Return the definition of a number of the result."""

    @abstractmethod
    def floors(self) -> dict[str, Floor]:
        """Return the floors of the ranking number; the verdict uses `best_uninformed`."""

    @abstractmethod
    def evidence(self, estimate: Estimate, floor: Floor) -> Evidence:
        """Return the evidence for the verdict.

        Args:
            estimate: Ranking number of the given answers.
            floor: `best_uninformed` of the given answers.
        """

    @abstractmethod
    def groups(self) -> tuple[dict[str, Breakdown], dict[str, str], list[str]]:
        """Return the breakdowns, the reasons why other groups have no score, and sentences about them."""

    @abstractmethod
    def collapsed(self) -> str:
        """Return a description of answers that are (nearly) all the same; empty for others."""

    @abstractmethod
    def coverage(self) -> Mapping[str, int | None]:
        """Return the number of `scored` and `expected` units or frames."""

    def refits(self, overall: Mapping[str, Estimate]) -> Refits | None:
        """Return the scores of refits for the numbers in `overall`; by default none."""
        return None

    def per_class(self) -> dict[str, ClassScore]:
        """Return scores of single classes; by default none."""
        return {}

    def coverage_sentences(self) -> list[str]:
        """Return sentences about missing answers; by default none."""
        return []

    def sentences(self, estimate: Estimate) -> list[str]:
        """Return further sentences for the reader of the score; by default none."""
        return []
