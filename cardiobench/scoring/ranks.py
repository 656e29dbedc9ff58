"""Comparison of every pair of models on the same patients, corrected for a family of comparisons."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.results.verdict import LEVEL
from cardiobench.scoring.compare import Comparison, compare
from cardiobench.scoring.families import Family
from cardiobench.tasks.answers import TableAnswers

Contest = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Comparison of two models in one contest.

    Attributes:
        contest: Names that identify the comparison: a task and, for example, a protocol.
        a: Name of the first model.
        b: Name of the second.
        comparison: Difference a - b with its interval, p-value and adjusted p-value.
        family: Primary family of the contest; empty for an exploratory one, whose p-value is not adjusted.
        beside: Whether `b` is a reference, which is not ranked.
        generated: Whether the recordings are phantoms or a synthetic twin.
    """

    contest: Contest
    a: str
    b: str
    comparison: Comparison
    family: str = ""
    beside: bool = False
    generated: bool = False

    @property
    def adjusted(self) -> float:
        """P-value after correction."""
        return self.comparison.p_adjusted

    @property
    def better(self) -> str:
        """The better model, `a` or `b`; else `equivalent`, `undecided` or `too few to say`."""
        return self.comparison.better


def enough_resamples(members: int, resamples: int = RESAMPLES) -> int:
    """Return the number of resamples B for which the smallest p-value, 2 / (B + 1), is below the level in a family of that size."""
    return max(resamples, int(np.ceil(4 * members / LEVEL)))


def compare_all(
    contests: Mapping[Contest, Mapping[str, TableAnswers]],
    *,
    beside: Mapping[Contest, Mapping[str, TableAnswers]] | None = None,
    family: Callable[[Contest], Family | None] = lambda contest: None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Pair]:
    """Compare every pair of models in every contest.

    The p-value of a pair is corrected for all tasks of the contest's primary family, whether they were run or not;
    contests outside families are exploratory and not adjusted. The p-value of a pair therefore does not depend on other
    models, folders or tasks.

    Args:
        contests: Contest (its task first) -> model -> its predictions for the same units.
        beside: Contest -> reference -> its predictions for the same units; each model is compared with each reference, and
            the pair is exploratory.
        family: Contest -> its primary family, or None.
        resamples: Minimum number of resamples; more are drawn if the family needs them.
        seed: Seed of the draws.

    Raises:
        BadPredictions: Two models of a contest do not have predictions for the same units.
    """
    pairs = []
    for contest, models in contests.items():
        of = family(contest)
        drawn = enough_resamples(len(of.tasks) if of else 1, resamples)
        for a, b in combinations(models, 2):
            comparison = compare(models[a], models[b], resamples=drawn, seed=seed)
            if of is not None:
                comparison = replace(comparison, p_adjusted=of.adjust(comparison.p_value))
            pairs.append(Pair(contest, a, b, comparison, of.name if of else ""))
        for a, b in product(models, (references := (beside or {}).get(contest, {}))):
            comparison = compare(models[a], references[b], resamples=resamples, seed=seed)
            pairs.append(Pair(contest, a, b, comparison, beside=True))
    return pairs
