"""Build the leaderboard tables: overview, scores and costs of a task, and unranked results; and the line of counts."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from cardiobench.core.errors import counted, first_n
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
from cardiobench.results.collect import Collection, ResultEntry, model_id
from cardiobench.results.cost import short, timing_text
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import LEVEL
from cardiobench.scoring.pairs import BY_ANSWERS, Place
from cardiobench.scoring.unpaired import MeanScore

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
"""First columns of the overview; they fit a phone width of 390 pixels together with the first mean."""
FACTS = (
    BoardColumn("groups", 84),
    BoardColumn("parameters", 110, "number"),
    BoardColumn("FLOPs", 78, "number"),
    BoardColumn("date", 98),
    BoardColumn("tasks", 70, "number"),
)
"""Columns between the means and the tasks; a date is that of the newest result of the row."""
SHOWN_GROUPS = 6
MEAN_WIDTH, TASK_WIDTH = 132, 140
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
    """Return models by tasks, best first: place, model, means, cost, date and tasks answered, then score and interval of each task.

    The best result of every other condition on each task follows as a reference.
    """
    tasks, found = overview_rows(collection, kind, choice)
    means = sorted({mean.kind: mean.example for one in found for mean in one.means}.items())
    columns = (
        *OVERVIEW,
        *(BoardColumn(f"mean {tables.metric_name(example)}", MEAN_WIDTH, "number") for _, example in means),
        *FACTS,
        *(BoardColumn(task, TASK_WIDTH, "number") for task in tasks),
    )
    rows = [_overview_row(one, [metric for metric, _ in means], choice) for one in found]
    condition = _condition(collection, choice)
    for other in compared_conditions(collection):
        if other != condition and (best := _best(entries_of(collection, other), tasks)):
            rows.append(_reference_row(other, best, tasks, len(means)))
    return BoardTable(columns, tuple(rows), _by_answers(found))


def _by_answers(rows: Sequence[RowStanding]) -> str:
    names = [tables.markdown_text(row_name(one)) for one in rows if one.by_answers]
    return f"{first_n(names)} are {BY_ANSWERS}." if names else ""


def overview_rows(
    collection: Collection, kind: str, choice: Choice = EVERYTHING
) -> tuple[tuple[str, ...], list[RowStanding]]:
    """Return the tasks of an overview table, and its selected rows by place; places count all rows."""
    entries = entries_of(collection, _condition(collection, choice), choice.protocol)
    tasks, found = row_standings(entries, kind)
    return tasks, [one for one in found if any(choice.takes(entry) for entry in _entries(one))]


def counts(collection: Collection) -> str:
    """Return how much the boards hold, as one line: models, tasks, submissions and the date of the newest result.

    A submission is one revision of a model by one owner.
    """
    models, submissions = set(), set()
    for entry in collection.entries:
        model = entry.result.model
        models.add(model_id(str(model["name"])))
        submissions.add((model["name"], model.get("revision"), entry.pushed_by))
    parts = [
        counted(len(models), "model"),
        counted(len(tasks_of(collection.entries)), "task"),
        counted(len(submissions), "submission"),
    ]
    if collection.entries:
        parts.append(f"last update {max(date_of(entry) for entry in collection.entries)}")
    return " · ".join(parts)


def date_of(entry: ResultEntry) -> str:
    """Return the day of a result, or a dash."""
    return (entry.date or "–")[:10]


def _entries(one: RowStanding) -> Iterator[ResultEntry]:
    yield from (cell.entry for cell in one.row.cells if isinstance(cell, ScoreCell))


def row_name(one: RowStanding) -> str:
    """Return model, owner of the submission, setting and protocol of a row."""
    row = one.row
    name = f"{shorten(f'{row.model} {row.setting}'.strip(), LONG)} · {shorten(row.protocol, LONG)}"
    return name + _baseline(next(_entries(one)).result)


def _overview_row(one: RowStanding, metrics: Sequence[tuple[str, str, bool]], choice: Choice) -> tuple[BoardCell, ...]:
    row, place, entries = one.row, one.place, list(_entries(one))
    means = {mean.kind: mean for mean in one.means}
    costs = [entry.result.cost for entry in entries if entry.result.cost is not None]
    date = max(date_of(entry) for entry in entries)
    lacks = ", no place" if place is None and one.lacking else ""
    return (
        _place(place.first if place else None, place.text if place else ""),
        BoardCell(row_name(one), row_name(one)),
        *(_mean_cell(means.get(metric)) for metric in metrics),
        _groups(place),
        _most(cost.parameters for cost in costs),
        _most(cost.flops for cost in costs),
        BoardCell(date, date),
        BoardCell(row.covered / len(row.cells), f"{row.covered}/{len(row.cells)}{lacks}"),
        *(_task_cell(cell, choice) for cell in row.cells),
    )


def _groups(place: Place | None) -> BoardCell:
    """Return the letters of the groups of a row, of which the first are shown."""
    letters = re.findall(r"[a-z]\d*", place.letters) if place else []
    more = f" +{len(letters) - SHOWN_GROUPS}" if len(letters) > SHOWN_GROUPS else ""
    return BoardCell(place.letters if place else "", " ".join(letters[:SHOWN_GROUPS]) + more)


def _mean_cell(mean: MeanScore | None) -> BoardCell:
    if mean is None:
        return BoardCell(None, "–")
    shown = tables.number(mean.value, mean.example)
    return BoardCell(_number(shown), f"{shown} {_unbroken(mean.low, mean.high, mean.example)}")


def _most(numbers: Iterable[float | None]) -> BoardCell:
    """Return a cost that can differ between the tasks of a row: its range, sorted by the largest."""
    known = sorted(number for number in numbers if number is not None and not math.isnan(number))
    if not known:
        return BoardCell(None, "–")
    ends = dict.fromkeys(short(number) for number in (known[0], known[-1]))
    return BoardCell(known[-1], " – ".join(ends))


def _task_cell(cell: ScoreCell | str, choice: Choice) -> BoardCell:
    if isinstance(cell, str):
        return BoardCell(None, cell)
    result = cell.entry.result
    if choice.unseen and result.seen_in_pretraining:
        return BoardCell(None, SEEN)
    shown = tables.number(result.score.value, result)
    interval = "(no CI)" if math.isnan(result.score.low) else _unbroken(result.score.low, result.score.high, result)
    return BoardCell(_number(shown), f"{shown} {cell.signs} {interval}")


def _unbroken(low: float, high: float, result: ScoreResult) -> str:
    """Return an interval in brackets, which stays on one line."""
    return f"[{tables.number(low, result)},\N{NO-BREAK SPACE}{tables.number(high, result)}]"


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


def _reference_row(
    condition: str, best: dict[str, ResultEntry], tasks: Sequence[str], means: int
) -> tuple[BoardCell, ...]:
    name = f"best {condition}"
    found = [
        ScoreCell(best[task], skill(best[task].result), marks(best[task].result)) if task in best else "–"
        for task in tasks
    ]
    return (
        _place(None, REFERENCE),
        BoardCell(name, name),
        *(BoardCell(None, "–") for _ in range(means + len(FACTS) - 1)),
        BoardCell(len(best) / len(tasks), f"{len(best)}/{len(tasks)}"),
        *(_task_cell(cell, EVERYTHING) for cell in found),
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
