"""Correct results for the number of tries of their owner at the same question."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from cardiobench.core.errors import CardioBenchError
from cardiobench.data import catalog
from cardiobench.leaderboard.boards import condition_of
from cardiobench.leaderboard.choice import card_of
from cardiobench.leaderboard.rebuild import has_variant
from cardiobench.protocols import protocol
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.results.collect import ResultEntry
from cardiobench.scoring.best_of import best_of

UNKNOWN_TRIES = (
    "The best of k submissions of one owner for a task and protocol is corrected for k: its p-value is multiplied by k, and its "
    "interval has level 1 - .05 / k. Different answers and different revisions are counted, whatever the name of their model, "
    "unless their models have cards with different ids. Unsubmitted attempts are unknown and not corrected for."
)
DIGITS = 9
"""Significant digits of numbers that tell answers apart; computers differ in later ones."""

Question = tuple[str, str, str, str, str]
"""Owner, task, condition, protocol and registered model; answers to one question are tries."""


def question_of(entry: ResultEntry) -> Question:
    """Return what an entry is a try at.

    The variant of predictions from elsewhere is free text and does not tell questions apart. Neither does a variant that
    the protocol does not have, nor the name or revision of a model without a card, because its owner chooses them.
    """
    result, card = entry.result, card_of(entry.result)
    known = not result.external and _is_variant(result.task, result.protocol, result.variant)
    label = result.label if known else result.protocol
    return entry.pushed_by, result.task, _condition(entry), label, card.id if card else ""


@cache
def _is_variant(task: str, name: str, variant: str) -> bool:
    """Return whether runs of a protocol give the variant; those of tasks and protocols that are not known here are not checked."""
    try:
        known, made = catalog.task(task), protocol(name)
    except CardioBenchError:
        return True
    return not isinstance(made, PredictionProtocol) or has_variant(made, known, variant)


def _condition(entry: ResultEntry) -> str:
    """Return the condition, of predictions from elsewhere without their variant."""
    result = entry.result
    return condition_of(replace(entry, result=replace(result, variant="")) if result.external else entry)


def count_tries(entries: Iterable[ResultEntry]) -> Mapping[Question, int]:
    """Return the number of tries at each question.

    Results are one try if their model, its revision and all their numbers are equal: `verify` proves the numbers, so that
    other answers cannot pass for the same ones. Results under older rules have no place and do not count.
    """
    found: dict[Question, set[tuple[str, ...]]] = {}
    for entry in entries:
        result, tries = entry.result, found.setdefault(question_of(entry), set())
        numbers = (f"{key} {estimate.value:.{DIGITS}g}" for key, estimate in sorted(result.overall.items()))
        if not result.outdated:
            tries.add((str(result.model.get("name")), str(result.model.get("revision")), *numbers))
    return {key: max(len(tries), 1) for key, tries in found.items()}


def corrected(entries: Iterable[ResultEntry]) -> list[ResultEntry]:
    """Return the entries of a results dataset, corrected for the tries of their owner at the same question."""
    entries = list(entries)
    counts = count_tries(entries)
    return [
        replace(entry, result=best_of(entry.result, count), submissions=count)
        for entry in entries
        if (count := counts[question_of(entry)])
    ]
