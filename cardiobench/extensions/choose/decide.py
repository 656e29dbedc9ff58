"""Find the best models on validation patients and the cheapest among them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardiobench.extensions.choose.candidates import Candidate
from cardiobench.scoring.pairs import Standings
from cardiobench.scoring.ranking import Ranking, rank_together
from cardiobench.scoring.verdict import DETECTABLE
from cardiobench.tasks.answers import TableAnswers


@dataclass(frozen=True)
class Decision:
    """Comparison of candidates on validation patients.

    Attributes:
        rankings: One ranking per metric; empty for a single candidate.
        best: Models that no other model is better than, in alphabetical order.
        leader: Best of them by score on the first metric, which need not differ significantly from the others.
        standings: Places over all metrics; None for a single candidate.
    """

    rankings: tuple[Ranking, ...]
    best: tuple[str, ...]
    leader: str
    standings: Standings | None = None


def decide(answers: Mapping[str, Mapping[str, TableAnswers]], protocol: str = "probe") -> Decision:
    """Return the models that no other model is better than.

    All pairs and metrics are corrected together: of equally good models, a single one is named in at most 5 % of cases.

    Args:
        answers: Mapping from task and model to predictions for the same validation units.
        protocol: Protocol of the predictions.
    """
    standings, rankings = rank_together({(task, protocol): models for task, models in answers.items()})
    names = sorted({name for models in answers.values() for name in models})
    if standings is None:
        return Decision((), tuple(names), names[0] if names else "")
    sign = 1 if rankings[0].number.higher_is_better else -1
    best = tuple(standings.best)
    leader = max(best, key=lambda name: sign * rankings[0].scores[name])
    return Decision(tuple(rankings), best, leader, standings)


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
    difference, error = abs(ranking.scores[leader] - ranking.scores[other]), ranking.error(leader, other)
    if not (difference > 0 and math.isfinite(error)):
        return None
    return math.ceil(ranking.patients * (DETECTABLE * error / difference) ** 2)
