"""Correct results for the number of submissions of their owner for the task."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cardiobench.results.collect import ResultEntry
from cardiobench.scoring.best_of import best_of

UNKNOWN_TRIES = (
    "The best of k submissions of one owner for a task is corrected for k: its p-value is multiplied by k, and its interval has "
    "level 1 - .05 / k. Unsubmitted attempts are unknown and not corrected for."
)


def count_submissions(entries: Iterable[ResultEntry]) -> Mapping[tuple[str, str], int]:
    """Return a mapping from (owner, task) to number of distinct model revisions submitted."""
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for entry in entries:
        model = entry.result.model
        revision = (str(model.get("name")), str(model.get("revision")))
        found.setdefault((entry.pushed_by, entry.result.task), set()).add(revision)
    return {key: len(revisions) for key, revisions in found.items()}


def corrected(entries: Iterable[ResultEntry]) -> list[ResultEntry]:
    """Return the entries of a results dataset, corrected for the submissions of their owner for the task."""
    entries = list(entries)
    counts = count_submissions(entries)
    return [
        replace(entry, result=best_of(entry.result, count), submissions=count)
        for entry in entries
        if (count := counts[entry.pushed_by, entry.result.task])
    ]
