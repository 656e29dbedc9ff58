"""The decision: which models cannot be told apart from the best on the validation patients, and which of them is the cheapest."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardiobench.extensions.choose.candidates import Candidate
from cardiobench.scoring.ranking import Ranking, rank_models
from cardiobench.scoring.verdict import DETECTABLE
from cardiobench.tasks.answers import TableAnswers


@dataclass(frozen=True)
class Decision:
    """The outcome of a comparison of candidates on their validation patients.

    Attributes:
        rankings: One ranking per metric; empty where there is a single candidate.
        best: Models that cannot be told apart from the best, by every metric, in alphabetical order.
        leader: Best score of them by the first metric; a name alone says nothing, since the others may be as good.
    """

    rankings: tuple[Ranking, ...]
    best: tuple[str, ...]
    leader: str


def decide(answers: Mapping[str, Mapping[str, TableAnswers]], protocol: str = "probe") -> Decision:
    """Return the models that cannot be told apart from the best.

    They are the first group of the places that `cardiobench compare` gives: all pairs corrected together, and those by several
    metrics too, so that of equal models a single one is named in at most 5 of 100 cases.

    Args:
        answers: Task -> model -> its answers for the same validation units.
        protocol: Protocol of the answers.
    """
    rankings = tuple(rank_models({(task, protocol): models for task, models in answers.items()}, together=True))
    names = sorted({name for models in answers.values() for name in models})
    if not rankings:
        return Decision((), tuple(names), names[0] if names else "")
    best = sorted(set.intersection(*(set(best_group(one)) for one in rankings)))
    first = {place.model: place.score for place in rankings[0].places}
    sign = 1 if rankings[0].number.higher_is_better else -1
    return Decision(rankings, tuple(best), max(best, key=lambda name: sign * first[name], default=""))


def best_group(ranking: Ranking) -> list[str]:
    """Return the models of the first group of a ranking."""
    return [place.model for place in ranking.places if place.group == 1]


def cheapest(candidates: Sequence[Candidate], best: Sequence[str]) -> Candidate | None:
    """Return the cheapest of the best by operations, then parameters, then width; None where no cost is known.

    A model without a network counts as the cheapest.
    """
    costs = {one.name: one.cost for one in candidates if one.name in best}
    known = {name: cost for name, cost in costs.items() if cost is not None and math.isfinite(cost.sort_key[0])}
    name = min(known, key=lambda one: (known[one].sort_key, one), default=None)
    return next((one for one in candidates if one.name == name), None)


def patients_needed(ranking: Ranking, leader: str, other: str) -> int | None:
    """Return how many patients would usually tell two models apart, if their difference is as large as it is here.

    Returns:
        Number of patients in all; None where the two do not differ, which no number of patients shows.
    """
    scores = {place.model: place.score for place in ranking.places}
    difference, error = abs(scores[leader] - scores[other]), ranking.errors[leader, other]
    if not (difference > 0 and math.isfinite(error)):
        return None
    return math.ceil(ranking.patients * (DETECTABLE * error / difference) ** 2)
