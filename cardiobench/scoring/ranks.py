"""Comparison of every pair of models on the same patients, corrected for a family of comparisons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.results.verdict import LEVEL
from cardiobench.scoring.compare import Comparison, compare
from cardiobench.scoring.families import Family
from cardiobench.scoring.pairs import correct
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
        family: Primary family of the contest; empty for an exploratory one, whose p-value is not corrected for tasks.
        together: Number of comparisons of the contest that are corrected together.
        beside: Whether `b` is a reference, which is not ranked.
        generated: Whether the recordings are phantoms or a synthetic twin.
    """

    contest: Contest
    a: str
    b: str
    comparison: Comparison
    family: str = ""
    together: int = 1
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

    The p-values of a contest are corrected for all its pairs of models by Holm's method, then for all tasks of its
    primary family, whether they were run or not; contests outside families are exploratory. Comparisons with references
    are corrected for each other. Other models change a comparison by this correction only.

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
        size = len(of.tasks) if of else 1
        drawn = enough_resamples(size, resamples)
        found = [(a, b, compare(models[a], models[b], resamples=drawn, seed=seed)) for a, b in combinations(models, 2)]
        pairs += _corrected(contest, found, size, of.name if of else "")
        references = (beside or {}).get(contest, {})
        found = [
            (a, b, compare(models[a], references[b], resamples=resamples, seed=seed))
            for a, b in product(models, references)
        ]
        pairs += [replace(pair, beside=True) for pair in _corrected(contest, found)]
    return pairs


def correct_together(comparisons: Sequence[Comparison], size: int = 1) -> list[Comparison]:
    """Correct the p-values of comparisons that are shown together by Holm's method.

    Args:
        comparisons: Comparisons; those without a p-value do not count.
        size: Number of tasks in their family, by which the corrected p-values are multiplied.
    """
    adjusted = correct([one.p_value for one in comparisons], size)
    return [replace(one, p_adjusted=p) for one, p in zip(comparisons, adjusted, strict=True)]


def _corrected(
    contest: Contest, found: Sequence[tuple[str, str, Comparison]], size: int = 1, family: str = ""
) -> list[Pair]:
    corrected = correct_together([comparison for _, _, comparison in found], size)
    together = sum(not np.isnan(one.p_value) for one in corrected)
    return [
        Pair(contest, a, b, comparison, family, together)
        for (a, b, _), comparison in zip(found, corrected, strict=True)
    ]
