"""Rank the results of each condition with places as intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cardiobench.core.errors import UnknownName
from cardiobench.leaderboard.conditions import DECLARED, is_declared
from cardiobench.protocols import protocol_class
from cardiobench.protocols.base import BaseProtocol
from cardiobench.report.contests import TRAINED, suite_tasks
from cardiobench.report.overview import ModelRow, ScoreCell, overview_tables, ranked, task_kind
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.pairs import Place, is_complete, table_tasks
from cardiobench.scoring.suites import list_suites
from cardiobench.scoring.unpaired import MeanScore, decide_unpaired, mean_scores, standard_error
from cardiobench.stats.variability import SEEDS, TEST

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
        place: Place over the tasks of the table; None for a model that lacks too many of them, and for generated
            recordings.
        lacking: Tasks of the table that do not count for the model.
        means: Mean of each metric over the tasks of the table; empty for a model that lacks too many of them.
        by_answers: Whether the model is better or worse than another by its answers only, because refits on other training
            patients are not known.
    """

    row: ModelRow
    place: Place | None
    lacking: tuple[str, ...] = ()
    means: tuple[MeanScore, ...] = ()
    by_answers: bool = False


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
    unproved = DECLARED if is_declared(entry) else ""
    return ", ".join(filter(None, (base, declared, result.input_condition, refits, unproved)))


@lru_cache(maxsize=256)
def _trained(protocol: str) -> str:
    try:
        return protocol_class(protocol).condition
    except UnknownName:
        return UNKNOWN


def not_verifiable(entry: ResultEntry) -> bool:
    """Return whether a submission has an interval or p-value of refits, which its predictions cannot reproduce.

    An interval over seeds is reproduced from the answers of all trainings, which results up to schema 6 lack. The refits
    of an interval have the penalty and thresholds of the model itself, and their answers are not kept.
    """
    result = entry.result
    seeds = result.score.covers == SEEDS and result.refits is not None
    refits = (result.score.covers != TEST and not seeds) or result.verdict.refitted
    return bool(entry.pushed_by) and refits


def conditions(collection: Collection) -> list[str]:
    """Return the conditions with results in the order of their boards.

    The default condition comes first, followed by those of protocols in alphabetical order, then `LAST`, and conditions
    that are only declared by a submitter. A suffix after a comma defines a separate board after the plain one.
    """

    def order(name: str) -> tuple[bool, int, str]:
        base, last = name.partition(", ")[0], name.rpartition(", ")[2]
        place = 2 + LAST.index(base) if base in LAST else int(base != BaseProtocol.condition)
        return last == DECLARED, place, name

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
    names = {f"{one.result.model['name']} {one.result.label} {number}": number for number, one in enumerate(counted)}
    places = decide_unpaired(list(names), [{one.result.task: one.result} for one in counted]).places
    found = [Standing(counted[names[place.model]], condition, place) for place in places]
    return found + [Standing(entry, condition, None) for entry in best_first if not _counts(entry)]


def row_kinds(entries: Sequence[ResultEntry]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the tables of a board: name -> kind of task, and the tasks that decide about places.

    The tasks are those of the suite; without one, each set of tasks that two or more rows answered completely is a table.
    """
    found = {}
    for table in overview_tables(entries):
        answered = {str(number): frozenset(_results(row, table.tasks)) for number, row in enumerate(table.rows)}
        of_suite = {task for name in _suites(entries) for task in suite_tasks(name) if task_kind(task) == table.name}
        sets = table_tasks(answered, [of_suite] if of_suite else []) or [table.tasks]
        for number, tasks in enumerate(sets, 1):
            found[table.name if number == 1 else f"{table.name}, table {number} ({len(tasks)} tasks)"] = (
                table.name,
                tasks,
            )
    return found


def row_standings(entries: Sequence[ResultEntry], name: str) -> tuple[tuple[str, ...], list[RowStanding]]:
    """Return the tasks of an overview table, and its models and protocols by place.

    Rows are compared by the mean over the tasks that both answered, without averaging different metrics. The first table of
    a kind has a column for every task.

    Args:
        entries: Results of one condition.
        name: Name of the table, from `row_kinds`.
    """
    kinds = row_kinds(entries)
    if name not in kinds:
        return (), []
    kind, deciding = kinds[name]
    table = next(table for table in overview_tables(entries) if table.name == kind)
    columns = tuple(number for number, task in enumerate(table.tasks) if name == kind or task in deciding)
    rows = [replace(row, cells=tuple(row.cells[number] for number in columns)) for row in table.rows]
    rows = [row for row in rows if row.covered]
    tasks = tuple(table.tasks[number] for number in columns)
    if table.generated:
        return tasks, [RowStanding(row, None, means=_means(_known(row, tasks), deciding)) for row in rows]
    results = [{task: one for task, one in _results(row, tasks).items() if task in deciding} for row in rows]
    means = [_means(its, deciding) for its in results]
    lacking = [tuple(task for task in deciding if task not in its) for its in results]
    placed = [number for number, its in enumerate(results) if is_complete(its, deciding)]
    names = {f"{rows[number].model} {rows[number].protocol} {number}": number for number in placed}
    decided = decide_unpaired(list(names), [results[number] for number in placed])
    by_answers = set(decided.placed_by_answers())
    found = [
        RowStanding(rows[at := names[place.model]], place, lacking[at], means[at], place.model in by_answers)
        for place in decided.places
    ]
    others = (number for number in range(len(rows)) if number not in placed)
    return tasks, found + [RowStanding(rows[number], None, lacking[number]) for number in others]


def _means(results: Mapping[str, ScoreResult], deciding: Sequence[str]) -> tuple[MeanScore, ...]:
    own = [results[task] for task in deciding if task in results]
    return tuple(mean_scores(own)) if is_complete([one.task for one in own], deciding) else ()


def _suites(entries: Sequence[ResultEntry]) -> list[str]:
    known = list_suites()
    return sorted({entry.suite for entry in entries if entry.suite in known})


def _results(row: ModelRow, tasks: Sequence[str]) -> dict[str, ScoreResult]:
    """Return the results of a row that count for its place."""
    cells = zip(tasks, row.cells, strict=True)
    counting = {task for task, cell in cells if isinstance(cell, ScoreCell) and _counts(cell.entry)}
    return {task: one for task, one in _known(row, tasks).items() if task in counting}


def _known(row: ModelRow, tasks: Sequence[str]) -> dict[str, ScoreResult]:
    """Return the results of a row that have an interval."""
    cells = zip(tasks, row.cells, strict=True)
    found = {task: cell.entry.result for task, cell in cells if isinstance(cell, ScoreCell)}
    return {task: result for task, result in found.items() if not math.isnan(standard_error(result))}


def _counts(entry: ResultEntry) -> bool:
    return ranked(entry.result) and not entry.result.generated and not is_declared(entry)
