"""Build the leaderboard tables: overview, scores and costs of a task, and unranked results."""

import math
from collections.abc import Iterable, Iterator, Sequence

from cardiobench.core.errors import first_n
from cardiobench.leaderboard.boards import (
    NOT_VERIFIABLE,
    RowStanding,
    Standing,
    conditions,
    entries_of,
    not_verifiable,
    row_kinds,
    row_standings,
    standings,
)
from cardiobench.leaderboard.choice import EVERYTHING, Choice, card_of, is_baseline
from cardiobench.leaderboard.conditions import is_declared
from cardiobench.leaderboard.grid import BoardCell, BoardColumn, BoardTable, table_of_values
from cardiobench.report.noise import false_verdicts
from cardiobench.report.overview import GENERATED, ScoreCell, marks, skill, table_name
from cardiobench.report.page.naming import score_row, skill_text
from cardiobench.report.plots.style import shorten
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.cost import short, timing_text
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import LEVEL

LONG = 80
MODEL = "model and protocol"
SEEN = "seen in pretraining"
NO_SUITE = "no suite"
BASELINE = "baseline"
REFERENCE = "ref."
"""Text in place of a place for results of other conditions."""
PLACE = BoardColumn("place", 66)
NAME = BoardColumn("model", 130)
SCORES = (
    PLACE,
    NAME,
    BoardColumn("score", 132, "number"),
    BoardColumn("floor to perfect", 100, "number"),
    BoardColumn("floor", 80, "number"),
    BoardColumn("verdict", 170),
    BoardColumn("patients", 95, "number"),
    BoardColumn("protocol", 130),
    BoardColumn("marks", 190),
)
COSTS = (
    PLACE,
    NAME,
    BoardColumn("score", 132, "number"),
    BoardColumn("parameters", 115, "number"),
    BoardColumn("FLOPs", 100, "number"),
    BoardColumn("width", 90, "number"),
    BoardColumn("bytes", 90, "number"),
    BoardColumn("time on its device", 360),
)
OVERVIEW = (BoardColumn("place", 66), BoardColumn(MODEL, 126))
"""First columns of the overview; they fit a phone width of 390 pixels together with the first score."""
TASK_WIDTH = 132
PROBLEMS = (
    BoardColumn("file", 240),
    BoardColumn("kind", 140),
    BoardColumn("problem and next step", 500),
    BoardColumn("about", 240),
)


def kinds(collection: Collection) -> list[str]:
    """Return the names of the overview tables of one condition."""
    return list(row_kinds(collection.entries))


def overview(collection: Collection, kind: str, choice: Choice = EVERYTHING) -> BoardTable:
    """Return models by tasks, best first, with position between floor and perfect score, marks, score and interval.

    The best result of every other condition on each task follows as a reference.
    """
    condition = _condition(collection, choice)
    tasks, found = row_standings(entries_of(collection, condition, choice.protocol), kind)
    columns = (
        *OVERVIEW,
        *(BoardColumn(task, TASK_WIDTH, "number") for task in tasks),
        BoardColumn("coverage", 95, "number"),
    )
    rows = [_overview_row(one, choice) for one in found if any(choice.takes(entry) for entry in _entries(one))]
    for other in compared_conditions(collection):
        if other != condition and (best := _best(entries_of(collection, other), tasks)):
            rows.append(_reference_row(other, best, tasks))
    return BoardTable(columns, tuple(rows))


def _entries(one: RowStanding) -> Iterator[ResultEntry]:
    yield from (cell.entry for cell in one.row.cells if isinstance(cell, ScoreCell))


def _overview_row(one: RowStanding, choice: Choice) -> tuple[BoardCell, ...]:
    row, place = one.row, one.place
    name = f"{shorten(f'{row.model} {row.setting}'.strip(), LONG)} · {shorten(row.protocol, LONG)}"
    name += _baseline(next(_entries(one)).result)
    if place is None and one.lacking:
        name += f" · no place, lacks {len(one.lacking)} tasks: {tables.markdown_text(first_n(one.lacking, 3))}"
    cells = (_task_cell(cell, choice) for cell in row.cells)
    coverage = BoardCell(row.covered / len(row.cells), f"{row.covered}/{len(row.cells)}")
    return (
        _place(place.first if place else None, place.text if place else ""),
        BoardCell(name, name),
        *cells,
        coverage,
    )


def _task_cell(cell: ScoreCell | str, choice: Choice) -> BoardCell:
    if isinstance(cell, str):
        return BoardCell(None, cell)
    if choice.unseen and cell.entry.result.seen_in_pretraining:
        return BoardCell(None, SEEN)
    value = None if math.isnan(cell.skill) else cell.skill
    return BoardCell(value, f"{skill_text(cell.skill)} {cell.signs} · {cell.score_text}", cell.shade)


def compared_conditions(collection: Collection) -> list[str]:
    """Return the conditions whose best result is shown beside others; a condition that is only declared is not."""
    proved = tuple(entry for entry in collection.entries if not is_declared(entry))
    return conditions(Collection(proved))


def _best(entries: Iterable[ResultEntry], tasks: Sequence[str]) -> dict[str, ResultEntry]:
    """Return the best result of each task."""
    best: dict[str, ResultEntry] = {}
    by_result = {id(entry.result): entry for entry in entries if entry.result.task in tasks}
    for result in tables.ordered([entry.result for entry in by_result.values()]):
        best.setdefault(result.task, by_result[id(result)])
    return best


def _reference_row(condition: str, best: dict[str, ResultEntry], tasks: Sequence[str]) -> tuple[BoardCell, ...]:
    name = f"best {condition}"
    found = [
        ScoreCell(best[task], skill(best[task].result), marks(best[task].result)) if task in best else "–"
        for task in tasks
    ]
    cells = (_task_cell(cell, EVERYTHING) for cell in found)
    return (
        _place(None, REFERENCE),
        BoardCell(name, name),
        *cells,
        BoardCell(len(best) / len(tasks), f"{len(best)}/{len(tasks)}"),
    )


def board(collection: Collection, task: str, choice: Choice = EVERYTHING) -> list[Standing]:
    """Return the selected results of a task by place; places count all results of the condition and protocol.

    Without a condition, the boards of all conditions are concatenated.
    """
    of_task = _of_task(collection, task)
    wanted = [choice.condition] if choice.condition else conditions(of_task)
    return [
        one
        for condition in wanted
        for one in standings(entries_of(of_task, condition, choice.protocol), condition)
        if choice.takes(one.entry)
    ]


def references(collection: Collection, task: str, choice: Choice) -> list[Standing]:
    """Return the best result of a task in each other condition; empty if no condition is selected."""
    of_task = _of_task(collection, task)
    others = [one for one in compared_conditions(of_task) if choice.condition not in ("", one)]
    best = {other: _best(entries_of(of_task, other), (task,)) for other in others}
    return [Standing(found[task], other, None) for other, found in best.items() if found]


def scores(collection: Collection, task: str, choice: Choice = EVERYTHING) -> BoardTable:
    """Return the scores of a task by place, and the best result of every other condition as a reference."""
    rows = [_score_row(one, one.text) for one in board(collection, task, choice)]
    rows += [_score_row(one, REFERENCE) for one in references(collection, task, choice)]
    return BoardTable(SCORES, tuple(rows))


def costs(collection: Collection, task: str, choice: Choice = EVERYTHING) -> BoardTable:
    """Return the costs of a task's models by place; FLOPs and bytes are per recording."""
    return BoardTable(COSTS, tuple(_cost_row(one) for one in board(collection, task, choice)))


def _of_task(collection: Collection, task: str) -> Collection:
    return Collection(tuple(entry for entry in collection.entries if entry.result.task == task))


def _condition(collection: Collection, choice: Choice) -> str:
    return choice.condition or next(iter(conditions(collection)), "")


def _place(first: int | None, text: str) -> BoardCell:
    return BoardCell(first, text)


def _name(result: ScoreResult) -> BoardCell:
    name = shorten(result.model["name"], LONG) + _baseline(result)
    return BoardCell(name, name)


def _baseline(result: ScoreResult) -> str:
    return f" · {BASELINE}" if is_baseline(result) else ""


def score_cell(result: ScoreResult) -> BoardCell:
    """Return a score with its interval."""
    value = result.score.value
    shown = tables.number(value, result)
    interval = "" if math.isnan(result.score.low) else f" [{tables.interval(result.score, result)}]"
    return BoardCell(_number(shown), shown + interval)


def _score_row(one: Standing, place: str) -> tuple[BoardCell, ...]:
    result, row = one.entry.result, score_row(one.entry)
    cell = ScoreCell(one.entry, skill(result), marks(result))
    protocol = f"{row['protocol']} ({one.condition})" if place == REFERENCE else row["protocol"]
    floor, verdict, found = row["floor"], f"{row['sign']} {row['verdict']}", ", ".join(_marks(one.entry))
    return (
        _place(one.place.first if one.place else None, place),
        _name(result),
        score_cell(result),
        BoardCell(None if math.isnan(cell.skill) else cell.skill, skill_text(cell.skill), cell.shade),
        BoardCell(_number(floor), floor),
        BoardCell(verdict, verdict),
        BoardCell(result.score.n_patients, str(result.score.n_patients)),
        BoardCell(protocol, protocol),
        BoardCell(found, found),
    )


def _cost_row(one: Standing) -> tuple[BoardCell, ...]:
    result, cost = one.entry.result, one.entry.result.cost
    numbers = (None,) * 4 if cost is None else (cost.parameters, cost.flops, cost.width, cost.bytes)
    known = [None if number is None or math.isnan(number) else number for number in numbers]
    timing = "–" if cost is None else "; ".join(filter(None, (cost.reason, timing_text(cost))))
    return (
        _place(one.place.first if one.place else None, one.text),
        _name(result),
        score_cell(result),
        *(BoardCell(number, short(number)) for number in known),
        BoardCell(timing, timing),
    )


def _marks(entry: ResultEntry) -> list[str]:
    """Return notes on a score: its marks, and unverifiable statements of the submitter."""
    result, found = entry.result, list(marks(entry.result)[1:])
    if not_verifiable(entry):
        found.append(NOT_VERIFIABLE)
    if entry.submissions > 1:
        found.append(f"best of {entry.submissions} submissions")
    found += [f"the same answers as {other}" for other in entry.same_as]
    seen = result.seen_in_pretraining
    if entry.pushed_by and seen is not None and card_of(result) is None:
        found = [mark for mark in found if mark != SEEN]
        found.append(f"{SEEN if seen else f'not {SEEN}'} (declared by the submitter)")
    if result.scored != result.expected:
        found.append(f"answers {tables.coverage(result)}")
    return found


def _number(text: str) -> float | None:
    """Return a number as printed, so that it sorts like its text; None for words."""
    try:
        return float(text)
    except ValueError:
        return None


def about(collection: Collection, task: str) -> str:
    """Return one line about a task, plain text."""
    results = [entry.result for entry in collection.entries if entry.result.task == task]
    first = results[0]
    both = len({result.external or result.given_embeddings for result in results}) == 2
    elsewhere = f" {tables.ELSEWHERE}" if both else ""
    direction = "higher" if first.higher_is_better else "lower"
    data = f"{first.dataset.get('name')} version {first.dataset.get('version') or 'unknown'}"
    return (
        f"{table_name(first)}. Ranked by {tables.metric_name(first)}, {direction} is better. Data: {data}.{elsewhere}"
    )


def noise(collection: Collection, choice: Choice = EVERYTHING) -> str:
    """Return the number of verdicts and places of a board that noise alone would give, as one line."""
    entries = entries_of(collection, _condition(collection, choice), choice.protocol)
    tested = len([name for name in row_kinds(entries) if not name.startswith(GENERATED)])
    places = f"If all models were equal, at most about {LEVEL * tested:.2g} of the {tested} overview tables of this board would name a better one by noise alone."
    return " ".join(filter(None, (false_verdicts([entry.result for entry in entries]), places if tested else "")))


def problems(collection: Collection) -> BoardTable:
    """Return the table of unranked results with reasons."""
    rows = [(shorten(p.file, 200), p.kind, p.message, shorten(p.subject, LONG)) for p in collection.problems]
    return table_of_values(PROBLEMS, rows)


def tasks_of(entries: Sequence[ResultEntry]) -> list[str]:
    """Return names of the tasks."""
    return sorted({entry.result.task for entry in entries})
