"""Format a choice as tables, as a paragraph for a study protocol, and as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardiobench.extensions.choose.candidates import Candidate
from cardiobench.extensions.choose.constraints import Constraints
from cardiobench.extensions.choose.decide import Decision, patients_needed
from cardiobench.extensions.choose.operating_point import Interval, OperatingPoint
from cardiobench.results import cost as costs
from cardiobench.results.formatting import ends, metric_name, number, p_value, verdict
from cardiobench.scoring.pairs import Outcome
from cardiobench.scoring.ranks import Pair

EXCLUDED = ("model", "excluded because of")
SET = ("model", "validation score", "validation patients needed to tell it apart", *costs.COLUMNS)
TEST = ("task", "model", "metric", "test score", "95 % CI", "n", "patients", "verdict")
POINT = ("task", "class", "threshold", "sensitivity", "specificity", "PPV", "NPV", "net benefit", "treat all")


TESTED = ("task", "chosen model against", "difference", "95 % CI", "p", "outcome")


@dataclass(frozen=True)
class Tested:
    """Comparison of the chosen model with another candidate on the test patients.

    Attributes:
        task: Task on whose test patients both were compared.
        other: Name of the other candidate.
        pair: Comparison, as in `cardiobench compare`.
        first: Whether the chosen model is the first of the pair.
    """

    task: str
    other: str
    pair: Pair
    first: bool

    @property
    def outcome(self) -> Outcome:
        """The outcome for the chosen model."""
        turned: dict[Outcome, Outcome] = {"better": "worse", "worse": "better"}
        found = self.pair.comparison.outcome
        return found if self.first else turned.get(found, found)

    @property
    def ends(self) -> tuple[float, float, float]:
        """Difference, chosen minus other, with the ends of its 95 % interval."""
        one = self.pair.comparison
        return (one.difference, one.low, one.high) if self.first else (-one.difference, -one.high, -one.low)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        one, (difference, low, high) = self.pair.comparison, self.ends
        interval = "none" if math.isnan(low) else f"{one.text(low)} – {one.text(high)}"
        words = {"better": "the chosen model is better", "worse": f"{self.other} is better"}
        words |= {"equivalent": "answers equivalent"} if one.of_answers else {}
        return (
            self.task,
            self.other,
            f"{one.number.difference(difference, one.unit)} ({one.metric})",
            interval,
            p_value(self.pair.adjusted),
            words.get(self.outcome, self.outcome),
        )


@dataclass(frozen=True)
class ModelChoice:
    """Choice of a model and the evidence for it.

    Attributes:
        tasks: Task names.
        protocol: Protocol of the compared results.
        constraints: Required properties of the model.
        excluded: Mapping from excluded model to reasons.
        candidates: Candidates that meet the constraints.
        decision: Statistical comparison of the candidates.
        chosen: Cheapest of the best models; None if no cost is known.
        points: Operating points of the chosen model.
        notes: Sentences on missing evidence.
        tested: Comparisons of the chosen model with the other candidates on the test patients.
    """

    tasks: tuple[str, ...]
    protocol: str
    constraints: Constraints
    excluded: Mapping[str, Sequence[str]]
    candidates: tuple[Candidate, ...]
    decision: Decision
    chosen: Candidate | None
    points: tuple[OperatingPoint, ...] = ()
    notes: tuple[str, ...] = ()
    tested: tuple[Tested, ...] = ()

    def by_name(self, name: str) -> Candidate:
        """Return the candidate with the given name."""
        return next(one for one in self.candidates if one.name == name)


def excluded_rows(choice: ModelChoice) -> list[tuple[str, str]]:
    """Return the rows of the table of excluded models."""
    return [(name, "; ".join(reasons)) for name, reasons in sorted(choice.excluded.items())]


def set_rows(choice: ModelChoice) -> list[tuple[str, ...]]:
    """Return the rows of the best models, ordered by cost."""
    best = [choice.by_name(name) for name in choice.decision.best]
    infinite = (math.inf,) * 3
    best.sort(key=lambda one: (one.cost.sort_key if one.cost else infinite, one.name))
    return [(one.name, _scores(choice, one.name), _needed(choice, one.name), *costs.cells(one.cost)) for one in best]


def other_rows(choice: ModelChoice) -> list[tuple[str, ...]]:
    """Return the rows of candidates that are worse than one of the best models."""
    others = sorted(one.name for one in choice.candidates if one.name not in choice.decision.best)
    return [(name, _scores(choice, name), "told apart", *costs.cells(choice.by_name(name).cost)) for name in others]


def _scores(choice: ModelChoice, name: str) -> str:
    found = []
    for ranking in choice.decision.rankings:
        if name in ranking.scores:
            unit = " ".join(filter(None, (ranking.number.key, ranking.number.shown_unit(ranking.unit))))
            found.append(f"{ranking.number.text(ranking.scores[name])} ({unit})")
    return ", ".join(found) or "alone"


def needed(choice: ModelChoice, name: str) -> int | None:
    """Return the total number of patients needed to tell a model from the leader, or None if undefined."""
    if name == choice.decision.leader or not choice.decision.rankings:
        return None
    return patients_needed(choice.decision.rankings[0], choice.decision.leader, name)


def _needed(choice: ModelChoice, name: str) -> str:
    if name == choice.decision.leader:
        return (
            "highest score"
            if choice.decision.rankings[:1] and choice.decision.rankings[0].number.higher_is_better
            else "best score"
        )
    count = needed(choice, name)
    if count is None:
        return "not applicable: no observed difference"
    return f"about {count:,} ({count - choice.decision.rankings[0].patients:,} more)"


def test_rows(choice: ModelChoice) -> list[tuple[str, ...]]:
    """Return test rows of the chosen model, or of all best models if no cost is known."""
    shown = [choice.chosen] if choice.chosen else [choice.by_name(name) for name in choice.decision.best]
    rows: list[tuple[str, ...]] = []
    for one in shown:
        for task in choice.tasks:
            result = one.entries[task].result
            score = result.score
            cells = (
                number(score.value, result),
                ends(score.low, score.high, result),
                str(score.n),
                str(score.n_patients),
            )
            rows.append((task, one.name, metric_name(result), *cells, verdict(result)))
    return rows


def point_rows(choice: ModelChoice) -> list[tuple[str, ...]]:
    """Return the rows of the operating points."""
    return [
        (
            one.task,
            one.positive,
            f"{one.threshold:.3g}",
            *(percent(value) for value in (one.sensitivity, one.specificity, one.ppv, one.npv)),
            benefit(one.net_benefit),
            "–" if math.isnan(one.treat_all) else f"{one.treat_all:.4f}",
        )
        for one in choice.points
    ]


def percent(value: Interval) -> str:
    """Format a fraction and its interval in percent, or a dash if undefined."""
    if math.isnan(value[0]):
        return "–"
    low, high = (100 * end for end in value[1:])
    return f"{100 * value[0]:.1f}" + ("" if math.isnan(low) else f" [{low:.1f}, {high:.1f}]")


def benefit(value: Interval) -> str:
    """Format a net benefit and its interval, or a dash if undefined."""
    if math.isnan(value[0]):
        return "–"
    return f"{value[0]:.4f}" + ("" if math.isnan(value[1]) else f" [{value[1]:.4f}, {value[2]:.4f}]")


def paragraph(choice: ModelChoice) -> str:
    """Describe the choice in one paragraph for a study protocol."""
    asked = "; ".join(choice.constraints.words)
    total = len(choice.candidates) + len(choice.excluded)
    head = (
        f"Of {total} models evaluated on {', '.join(choice.tasks)} by the protocol {choice.protocol} of CardioBench, "
        f"{len(choice.candidates)} could be considered" + (f" (asked for: {asked})" if asked else "") + "."
    )
    if not choice.candidates:
        return f"{head} No model was chosen."
    return " ".join([head, *_comparison(choice), *_on_test(choice), *map(_at_threshold, choice.points)])


def _comparison(choice: ModelChoice) -> list[str]:
    best, leader = choice.decision.best, choice.decision.leader
    if not choice.decision.rankings:
        found = [f"The only candidate was {leader}, so there was no comparison."]
    elif not best:
        found = ["No model is among the best by every metric."]
    else:
        sizes = " and ".join(f"{one.patients} validation patients" for one in choice.decision.rankings)
        others = [name for name in best if name != leader]
        apart = (
            f"{leader} scored best, which is too little evidence to tell it apart from {', '.join(others)}"
            if others
            else _best_alone(choice, leader)
        )
        every = "all pairs and metrics" if len(choice.decision.rankings) > 1 else "all pairs"
        found = [f"On {sizes}, {apart} ({every} corrected together by Holm's method, level 0.05)."]
        counts = [f"{name}: {count:,}" for name in others if (count := needed(choice, name)) is not None]
        if counts:
            found.append(
                "Validation patients usually needed to tell them apart, assuming the observed differences and as many times more "
                f"training patients: {'; '.join(counts)}."
            )
    if choice.chosen is not None:
        why = "chosen as the cheapest of them" if len(best) > 1 else "chosen"
        found.append(f"{choice.chosen.name} was {why} ({_price(choice.chosen)}).")
    return found


def _best_alone(choice: ModelChoice, leader: str) -> str:
    """Say that a model is better than all others, or only its answers if the refits of some are not known."""
    standings = choice.decision.standings
    if standings and any(standings.of_answers(leader, name) for name in standings.names if name != leader):
        return f"the answers of {leader} were better than those of every other candidate, without covering other training patients"
    return f"{leader} was better than every other candidate"


def _price(one: Candidate) -> str:
    cost = one.cost
    if cost is None or cost.reason:
        return "no network" if cost and cost.reason == costs.NO_NETWORK else "cost not known"
    return f"{costs.short(cost.parameters)} parameters, {costs.short(cost.flops)} FLOPs per recording"


def _on_test(choice: ModelChoice) -> list[str]:
    if choice.chosen is None:
        return []
    said = []
    for task, _, metric, score, interval, n, patients, word in test_rows(choice):
        said.append(
            f"On the {patients} test patients of {task} (n = {n}), which took no part in the choice, it reached {metric} {score} [{interval}]: {word}."
        )
    if choice.tested:
        better = [one for one in choice.tested if one.outcome == "worse"]
        apart = f"better than {_named_tests(choice, 'better')} and worse than {_named_tests(choice, 'worse')}"
        said.append(
            f"Compared with the other candidates on the same test patients, it was {apart} (p-values corrected for all pairs of a task by Holm's method)."
        )
        said += [
            f"On {one.task}, {one.other} was better by {one.pair.comparison.number.difference(abs(one.ends[0]), one.pair.comparison.unit)} ({one.pair.comparison.metric}), p = {p_value(one.pair.adjusted)}.".replace(
                "= <", "<"
            )
            for one in better
        ]
    return said


def _named_tests(choice: ModelChoice, outcome: Outcome) -> str:
    found = list(dict.fromkeys(one.other for one in choice.tested if one.outcome == outcome))
    return ", ".join(found) or "none"


def _at_threshold(point: OperatingPoint) -> str:
    units = f"{point.positives} validation units with {point.positive}"
    if point.guarded:
        chosen = (
            f"The largest threshold at which the one-sided 95 % lower bound of the sensitivity reaches {100 * point.asked:g} % on {units} is "
            f"{point.threshold:.3g} ({100 * point.reached:.1f} % were detected)"
        )
    else:
        chosen = (
            f"The largest threshold at which {100 * point.asked:g} % of {units} were detected is "
            f"{point.threshold:.3g} ({100 * point.reached:.1f} % were; the sensitivity on other patients is often lower)"
        )
    text = f"{chosen}. It gave on the test patients of {point.task} a sensitivity of {percent(point.sensitivity)} % and a specificity of {percent(point.specificity)} %"
    if math.isnan(point.prevalence):
        return f"{text}."
    return (
        f"{text}; at a prevalence of {100 * point.prevalence:g} % this is a positive predictive value of {percent(point.ppv)} %, a negative "
        f"predictive value of {percent(point.npv)} % and a net benefit of {benefit(point.net_benefit)} at that threshold "
        f"(treating everybody: {point.treat_all:.4f}, nobody: 0)."
    )


def to_json(choice: ModelChoice) -> dict[str, Any]:
    """Return the choice as one object; undefined numbers are written as null."""
    return {
        "tasks": choice.tasks,
        "protocol": choice.protocol,
        "constraints": choice.constraints,
        "excluded": choice.excluded,
        "candidates": [one.name for one in choice.candidates],
        "best": choice.decision.best,
        "leader": choice.decision.leader,
        "chosen": choice.chosen.name if choice.chosen else None,
        "patients_needed": {name: needed(choice, name) for name in choice.decision.best},
        "validation": [
            {
                "metric": ranking.number.key,
                "patients": ranking.patients,
                "scores": ranking.scores,
            }
            for ranking in choice.decision.rankings
        ],
        "places": [
            {"model": one.model, "first": one.first, "last": one.last, "groups": one.letters}
            for one in (choice.decision.standings.places if choice.decision.standings else ())
        ],
        "costs": {one.name: one.cost for one in choice.candidates},
        "test": {
            one.name: {
                task: {"metric": one.entries[task].result.metric, "score": one.entries[task].result.score}
                for task in choice.tasks
            }
            for one in choice.candidates
            if one.name in choice.decision.best
        },
        "compared_on_test": [
            {
                "task": one.task,
                "other": one.other,
                "difference": one.ends[0],
                "low": one.ends[1],
                "high": one.ends[2],
                "p_value": one.pair.comparison.p_value,
                "p_adjusted": one.pair.adjusted,
                "outcome": one.outcome,
            }
            for one in choice.tested
        ],
        "operating_points": choice.points,
        "paragraph": paragraph(choice),
        "notes": choice.notes,
    }
