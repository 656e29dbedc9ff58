"""State how many verdicts of a page noise alone would give."""

import math
from collections.abc import Sequence

from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import LEVEL
from cardiobench.scoring.ranking import Ranking

EXPLORATORY = (
    "Exploratory: not in a primary family of a suite, so the p-value is not corrected for other tasks and protocols."
)


def false_verdicts(results: Sequence[ScoreResult]) -> str:
    """Return a sentence with the number of verdicts "above the floor" that noise alone would give; empty without a test.

    Results of one model in a family of a suite are corrected together and count once; exploratory results count each.
    """
    tested = [one for one in results if not math.isnan(one.verdict.p_value) and not one.outdated]
    if not tested:
        return ""
    families = {(_model(one), one.verdict.family) for one in tested if one.verdict.family}
    single = sum(not one.verdict.family for one in tested)
    models, protocols = len({one.model["name"] for one in tested}), len({one.label for one in tested})
    kinds = {
        f"{_count(len(families), 'family', 'families')} corrected together": families,
        _count(single, "exploratory result"): single,
    }
    each = " and ".join(text for text, there in kinds.items() if there)
    return (
        f"This page holds {_count(len(tested), 'verdict')} on {_count(models, 'model')} and {_count(protocols, 'protocol')}: "
        f"{each}, {'each ' if len(families) + single > 1 else ''}at level {LEVEL:g}. "
        f"If no model carried information, at most about {LEVEL * (len(families) + single):.2g} of these would be above the floor by noise alone."
    )


def false_rankings(rankings: Sequence[Ranking]) -> str:
    """Return a sentence with the number of rankings in which noise alone would find a better model; empty without rankings."""
    tested = sum(one.standings.pairs > 0 for one in rankings)
    if not tested:
        return ""
    return (
        f"If all models were equal, at most about {LEVEL * tested:.2g} of {_count(tested, 'ranking')} would name a better model by noise alone "
        f"(level {LEVEL:g} for each)."
    )


def _model(result: ScoreResult) -> tuple[str, ...]:
    return tuple(str(result.model.get(fact)) for fact in ("name", "revision", "token_pooling", "preprocessing"))


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
