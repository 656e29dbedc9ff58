"""Find the best models on validation patients and the cheapest among them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardiobench.extensions.choose.candidates import Candidate
from cardiobench.scoring.ranking import Ranking, rank_models
from cardiobench.scoring.verdict import DETECTABLE
from cardiobench.tasks.answers import TableAnswers


@dataclass(frozen=True)
class Decision:
    """Comparison of candidates on validation patients.

    Attributes:
        rankings: One ranking per metric; empty for a single candidate.
        best: Models that cannot be told apart from the best by any metric, in alphabetical order.
        leader: Best model by score on the first metric, which need not differ significantly from the others.
    """

    rankings: tuple[Ranking, ...]
    best: tuple[str, ...]
    leader: str


def decide(answers: Mapping[str, Mapping[str, TableAnswers]], protocol: str = "probe") -> Decision:
    """Return the models that cannot be told apart from the best.

    These models are the first group in `cardiobench compare`. All pairs and metrics are corrected together: of equally
    good models, a single one is named in at most 5 % of cases.

    Args:
        answers: Mapping from task and model to predictions for the same validation units.
        protocol: Protocol of the predictions.
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
    """Return the models in the first group of a ranking."""
    return [place.model for place in ranking.places if place.group == 1]


def cheapest(candidates: Sequence[Candidate], best: Sequence[str]) -> Candidate | None:
    """Return the cheapest best model by operations, parameters, then width, or None if no cost is known.

    Models without a network count as cheapest.
    """
    costs = {one.name: one.cost for one in candidates if one.name in best}
    known = {name: cost for name, cost in costs.items() if cost is not None and math.isfinite(cost.sort_key[0])}
    name = min(known, key=lambda one: (known[one].sort_key, one), default=None)
    return next((one for one in candidates if one.name == name), None)


def patients_needed(ranking: Ranking, leader: str, other: str) -> int | None:
    """Estimate the number of patients needed to distinguish two models at their observed difference.

    Returns:
        Total number of patients, or None if there is no difference.
    """
    scores = {place.model: place.score for place in ranking.places}
    difference, error = abs(scores[leader] - scores[other]), ranking.errors[leader, other]
    if not (difference > 0 and math.isfinite(error)):
        return None
    return math.ceil(ranking.patients * (DETECTABLE * error / difference) ** 2)
