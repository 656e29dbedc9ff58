"""Which of several models are better than which: every pair on the same patients, corrected for their number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd

from cardiobench.scoring.bootstrap import RESAMPLES
from cardiobench.scoring.compare import Comparison, compare, holm
from cardiobench.scoring.predictions import Predictions

LEVEL = 0.05


@dataclass(frozen=True)
class Pair:
    """Two models of one contest, compared.

    Attributes:
        contest: what they were compared in, such as a task and a protocol.
        a: name of the first model.
        b: name of the second.
        found: difference a - b with its interval and its own p-value.
        adjusted: p-value after Holm's correction for all pairs of all contests.
    """

    contest: tuple[str, ...]
    a: str
    b: str
    found: Comparison
    adjusted: float

    @property
    def better(self) -> str:
        """`a` or `b`, or `tied` where the corrected comparison cannot tell them apart."""
        return self.found.better if self.adjusted < LEVEL and self.found.better in ("a", "b") else "tied"


def enough_resamples(pairs: int, asked: int = RESAMPLES) -> int:
    """Resamples of which the smallest p-value, 2 / (B + 1), is still below the level after correction for all pairs."""
    return max(asked, int(np.ceil(4 * pairs / LEVEL)))


def compare_all(
    contests: Mapping[tuple[str, ...], Mapping[str, Predictions]], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Pair]:
    """Every pair of models in every contest; more resamples than asked for are drawn where the correction needs them.

    Args:
        contests: contest -> model -> its predictions for the same units.
        resamples: B, at least.
        seed: of the draws.

    Raises:
        BadPredictions: two models of a contest do not answer the same units.
    """
    asked = [(contest, a, b) for contest, models in contests.items() for a, b in combinations(models, 2)]
    drawn = enough_resamples(len(asked), resamples)
    pairs = [
        Pair(contest, a, b, compare(contests[contest][a], contests[contest][b], resamples=drawn, seed=seed), np.nan)
        for contest, a, b in asked
    ]
    known = [place for place, pair in enumerate(pairs) if not np.isnan(pair.found.p_value)]
    for place, value in zip(known, holm([pairs[place].found.p_value for place in known]), strict=True):
        pairs[place] = replace(pairs[place], adjusted=float(value))
    return pairs


def ranked(pairs: Sequence[Pair], *, higher_is_better: bool) -> pd.DataFrame:
    """Models of one contest, the best first.

    A model's rank is 1 plus the number of models that are better than it beyond doubt, so that several may be first.

    Args:
        pairs: every pair of the contest.
        higher_is_better: direction of the metric.

    Returns:
        rank, model, score and tied_with (names, comma-separated; empty for a model that is alone in its place).
    """
    scores: dict[str, float] = {}
    beaten: dict[str, int] = {}
    tied: dict[str, list[str]] = {}
    for pair in pairs:
        scores |= {pair.a: pair.found.a, pair.b: pair.found.b}
        for own, other, side in ((pair.a, pair.b, "b"), (pair.b, pair.a, "a")):
            beaten[own] = beaten.get(own, 0) + (pair.better == side)
            tied.setdefault(own, []).extend([other] if pair.better == "tied" else [])
    order = sorted(scores, key=lambda name: (beaten[name], -scores[name] if higher_is_better else scores[name], name))
    return pd.DataFrame(
        {
            "rank": [1 + beaten[name] for name in order],
            "model": order,
            "score": [scores[name] for name in order],
            "tied_with": [", ".join(sorted(tied[name], key=order.index)) for name in order],
        }
    )
