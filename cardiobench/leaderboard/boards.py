"""Rank the results of each condition with places as intervals."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cardiobench.core.errors import UnknownName
from cardiobench.protocols import protocol_class
from cardiobench.protocols.base import BaseProtocol
from cardiobench.report.contests import TRAINED
from cardiobench.report.overview import ModelRow, OverviewTable, ScoreCell, overview_tables, ranked
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.record import EMBEDDINGS
from cardiobench.scoring.places import Place, arrange, told_apart
from cardiobench.stats.variability import TEST

PREDICTIONS = "predictions from elsewhere"
UNKNOWN = "unknown protocol"
LAST = (EMBEDDINGS, PREDICTIONS, UNKNOWN)
"""Conditions whose boards follow those declared by protocols."""
NOT_VERIFIABLE = "interval not verifiable"


@dataclass(frozen=True)
class Standing:
    """Result on the board of its task.

    Attributes:
        entry: Loaded result.
        condition: Condition in which the result is ranked.
        place: Place among results of the condition; None if unrankable or on generated recordings.
    """

    entry: ResultEntry
    condition: str
    place: Place | None

    @property
    def text(self) -> str:
        """Place as text; empty without one."""
        return self.place.text if self.place else ""


@dataclass(frozen=True)
class RowStanding:
    """Model and protocol over the tasks of a table.

    Attributes:
        row: Cells of the model.
        place: Place over all tasks; None in a table of generated recordings.
    """

    row: ModelRow
    place: Place | None


def condition_of(entry: ResultEntry) -> str:
    """Return the condition of a result; results of different conditions are never ranked together."""
    result = entry.result
    if result.given_embeddings:
        base = EMBEDDINGS
    elif result.external:
        base = PREDICTIONS
    else:
        base = _trained(result.protocol)
    declared = result.variant if result.external and result.variant in TRAINED else ""
    refits = NOT_VERIFIABLE if not_verifiable(entry) else ""
    return ", ".join(filter(None, (base, declared, result.input_condition, refits)))


@lru_cache(maxsize=256)
def _trained(protocol: str) -> str:
    try:
        return protocol_class(protocol).condition
    except UnknownName:
        return UNKNOWN


def not_verifiable(entry: ResultEntry) -> bool:
    """Return whether a submission has an interval or p-value of refits, which its predictions cannot reproduce."""
    refits = entry.result.score.covers != TEST or entry.result.verdict.refitted
    return bool(entry.pushed_by) and refits


def conditions(collection: Collection) -> list[str]:
    """Return the conditions with results in the order of their boards.

    The default condition comes first, followed by those declared by protocols in alphabetical order, then `LAST`. A
    suffix after a comma defines a separate board after the plain one.
    """

    def order(name: str) -> tuple[int, str]:
        base = name.partition(", ")[0]
        return (2 + LAST.index(base) if base in LAST else int(base != BaseProtocol.condition)), name

    return sorted({condition_of(entry) for entry in collection.entries}, key=order)


def entries_of(collection: Collection, condition: str, protocol: str = "") -> list[ResultEntry]:
    """Return the results of a board.

    Args:
        collection: All results.
        condition: Condition of the board.
        protocol: Protocol with its variant; empty for all.
    """
    return [
        entry
        for entry in collection.entries
        if protocol in ("", entry.result.label) and condition_of(entry) == condition
    ]


def standings(entries: Iterable[ResultEntry], condition: str) -> list[Standing]:
    """Return results of one task and condition by place, followed by those without a place, best first.

    Predictions are not available here, so results are compared as if their patients differed, which is conservative.
    """
    by_result = {id(entry.result): entry for entry in entries}
    best_first = [by_result[id(one)] for one in tables.ordered([entry.result for entry in by_result.values()])]
    counted = [entry for entry in best_first if _counts(entry)]
    names = _names(counted)
    gains = _gains(counted)
    places = arrange(list(names), gains, _better(counted), gains) if counted else []
    found = [Standing(counted[names[place.model]], condition, place) for place in places]
    return found + [Standing(entry, condition, None) for entry in best_first if not _counts(entry)]


def row_standings(entries: Sequence[ResultEntry], kind: str) -> tuple[tuple[str, ...], list[RowStanding]]:
    """Return the tasks of an overview table, and its models and protocols by place over these tasks.

    A row is better than another if it is better on more of the tasks that distinguish them. Each task is corrected for
    all pairs. Different metrics are never averaged, and a missing task does not count.

    Args:
        entries: Results of one condition.
        kind: Name of the table.
    """
    table = next((table for table in overview_tables(entries) if table.name == kind), None)
    if table is None:
        return (), []
    rows = [row for row in table.rows if row.covered]
    if table.generated:
        return table.tasks, [RowStanding(row, None) for row in rows]
    wins = _wins(table, rows)
    names = {f"{row.model} {row.protocol} {number}": number for number, row in enumerate(rows)}
    balance = (wins.sum(axis=1) - wins.sum(axis=0)).astype(np.float64)
    places = arrange(list(names), balance, wins > wins.T, balance)
    return table.tasks, [RowStanding(rows[names[place.model]], place) for place in places]


def _wins(table: OverviewTable, rows: Sequence[ModelRow]) -> np.ndarray:
    """Return the number of tasks on which each row is significantly better than each column, int (M, M)."""
    wins = np.zeros((len(rows), len(rows)), dtype=np.int64)
    for column in range(len(table.tasks)):
        cells = {number: row.cells[column] for number, row in enumerate(rows)}
        there = {
            number: cell.entry
            for number, cell in cells.items()
            if isinstance(cell, ScoreCell) and _counts(cell.entry) and not math.isnan(cell.entry.result.score.value)
        }
        if len(there) > 1:
            index = np.array(list(there))
            wins[np.ix_(index, index)] += _better(list(there.values()))
    return wins


def _counts(entry: ResultEntry) -> bool:
    return ranked(entry.result) and not entry.result.generated


def _names(entries: Sequence[ResultEntry]) -> dict[str, int]:
    """Return distinct names with positions, which determine the order within a group."""
    return {f"{one.result.model['name']} {one.result.label} {number}": number for number, one in enumerate(entries)}


def _gains(entries: Sequence[ResultEntry]) -> np.ndarray:
    """Return scores of one task, oriented so that larger is better, (M,)."""
    return np.array(
        [(1 if one.result.higher_is_better else -1) * one.result.score.value for one in entries], dtype=np.float64
    )


def _better(entries: Sequence[ResultEntry]) -> np.ndarray:
    """Return which results of one task are significantly better than others, bool (M, M)."""
    errors = np.array([one.result.score.se for one in entries], dtype=np.float64)
    patients = np.array([one.result.score.n_patients for one in entries], dtype=np.float64)
    return told_apart(_gains(entries), np.diag(errors**2), np.minimum.outer(patients, patients) - 1)
