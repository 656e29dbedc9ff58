"""Leaderboard tables as text: the overview, every score, and the unranked results."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.leaderboard.source import RUN_BY
from cardiobench.models.cards import find_card
from cardiobench.report.contests import contest_of
from cardiobench.report.overview import ScoreCell, marks, overview_tables, ranked, skill, table_name
from cardiobench.report.page.naming import score_row, skill_text
from cardiobench.report.plots.style import shorten
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.cost import Cost, timing_text
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.verdict import Rank
from cardiobench.scoring.places import find_places
from cardiobench.stats.variability import TEST

LONG = 80
MODEL = "model and protocol"
SEEN = "seen in pretraining"
NO_SUITE = "no suite"
HARDWARE_FREE = ("M parameters", "GFLOPs", "width")
"""Columns that no device changes, FLOPs per recording."""
SCORES = {
    "place": "str",
    "model": "markdown",
    "score": "number",
    "95 % CI": "str",
    "protocol": "str",
    "floor to perfect, %": "number",
    "floor": "number",
    "verdict": "str",
    "n": "number",
    "patients": "number",
    "coverage": "str",
    "marks": "str",
    **dict.fromkeys(HARDWARE_FREE, "number"),
    "bytes": "number",
    "time on its device": "str",
}
"""Columns of the scores of a task, and what each holds."""
WIDTHS = {
    "place": 70,
    "model": 160,
    MODEL: 175,
    "score": 80,
    "95 % CI": 140,
    "protocol": 120,
    "floor to perfect, %": 120,
    "floor": 80,
}
WIDTHS |= {"time on its device": 300, **dict.fromkeys((*HARDWARE_FREE, "bytes"), 110)}
WIDTHS |= {"verdict": 250, "n": 70, "patients": 100, "coverage": 110, "kind": 140}
"""Pixels of a column: a telephone of 390 shows the model and its first score, and scrolls sideways for the rest."""
TASK_WIDTH = 150
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
PROBLEMS = ("file", "kind", "what is wrong, and what to do", "about")


@dataclass(frozen=True)
class Choice:
    """A visitor's selection.

    Attributes:
        model: Part of a name, any letter case; empty for all.
        protocol: Whole name; empty for all.
        above: Whether to show only scores above the floor.
    """

    model: str = ""
    protocol: str = ""
    above: bool = False

    def takes(self, model: str, protocol: str) -> bool:
        """Return whether a row is selected."""
        return self.model.strip().lower() in model.lower() and self.protocol in ("", protocol)


def kinds(collection: Collection) -> list[str]:
    """Return names of the overview's tables."""
    return [board.name for board in overview_tables(collection.entries)]


def overview(collection: Collection, kind: str, choice: Choice = Choice()) -> pd.DataFrame:
    """Return models by tasks: skill from floor to perfect score, marks, score and interval."""
    board = next((board for board in overview_tables(collection.entries) if board.name == kind), None)
    if board is None:
        return pd.DataFrame(columns=[MODEL, "coverage"])
    rows = []
    for row in board.rows:
        beats = any(isinstance(cell, ScoreCell) and cell.wins for cell in row.cells)
        if choice.takes(row.model, row.protocol) and (beats or not choice.above):
            cells = {task: _text(cell) for task, cell in zip(board.tasks, row.cells, strict=True)}
            name = f"{model_cell(f'{row.model} {row.setting}'.strip())} · {tables.markdown_text(row.protocol)}"
            rows.append({MODEL: name, **cells, "coverage": f"{row.covered}/{len(row.cells)}"})
    return pd.DataFrame(rows, columns=[MODEL, *board.tasks, "coverage"])


def _text(cell: ScoreCell | str) -> str:
    return cell if isinstance(cell, str) else f"{skill_text(cell.skill)} {cell.signs} · {cell.score_text}"


def scores(collection: Collection, task: str, choice: Choice = Choice()) -> pd.DataFrame:
    """Return the scores of a task by place, then those apart (`_apart`); a place counts all, selected or not."""
    by_result = {id(entry.result): entry for entry in collection.entries if entry.result.task == task}
    best_first = [by_result[id(one)] for one in tables.ordered([entry.result for entry in by_result.values()])]
    rows = [
        _row(place, entry)
        for place, entry in _places(sorted(best_first, key=_apart))
        if choice.takes(entry.result.model["name"], entry.result.label)
        and (entry.result.verdict.word.rank is Rank.WINS or not choice.above)
    ]
    return pd.DataFrame(rows, columns=list(SCORES), dtype=object)


def _apart(entry: ResultEntry) -> tuple[str, bool]:
    """Return the groups that are ranked apart: conditions of the input or of results from elsewhere, and facts that predictions cannot reproduce."""
    result = entry.result
    condition = (
        EMBEDDINGS if result.given_embeddings else contest_of(result)[1] if result.external else result.input_condition
    )
    return condition, not_verifiable(entry)


def not_verifiable(entry: ResultEntry) -> bool:
    """Return whether a submission has an interval or a p-value of refits, which cannot be rebuilt from its predictions."""
    refits = entry.result.score.covers != TEST or entry.result.verdict.refitted
    return bool(entry.pushed_by) and refits


def _places(ordered: Sequence[ResultEntry]) -> list[tuple[str, ResultEntry]]:
    """Return each entry with its place among those it is ranked with; empty for one that may not be ranked, or is generated.

    A board has no answers, so that two results count as if they were of different patients, which tells fewer apart.
    """
    found: list[tuple[str, ResultEntry]] = []
    for _, group in groupby(ordered, key=_apart):
        entries = list(group)
        counted = [one for one in entries if ranked(one.result) and not one.result.generated]
        found += _places_of(counted) + [("", one) for one in entries if one not in counted]
    return found


def _places_of(entries: Sequence[ResultEntry]) -> list[tuple[str, ResultEntry]]:
    if not entries:
        return []
    results = [entry.result for entry in entries]
    values, errors, patients = (
        np.array([getattr(one.score, name) for one in results], dtype=np.float64)
        for name in ("value", "se", "n_patients")
    )
    names = {f"{one.model['name']} {one.label} {number}": number for number, one in enumerate(results)}
    freedom = np.minimum.outer(patients, patients) - 1
    higher = results[0].higher_is_better
    places = find_places(list(names), values, np.diag(errors**2), freedom, higher_is_better=higher)
    return [(place.text, entries[names[place.model]]) for place in places]


def _marks(entry: ResultEntry) -> list[str]:
    """Return the remarks beside a score: its marks, and unverifiable statements of a submission."""
    result, found = entry.result, list(marks(entry.result)[1:])
    if not_verifiable(entry):
        found.append("interval not verifiable")
    if entry.submissions > 1:
        found.append(f"best of {entry.submissions} submissions")
    seen = result.seen_in_pretraining
    if entry.pushed_by and seen is not None and find_card(result.model["name"].partition(RUN_BY)[0]) is None:
        found = [mark for mark in found if mark != SEEN]
        found.append(f"{SEEN if seen else f'not {SEEN}'} (declared by the submitter)")
    return found


def _row(place: str, entry: ResultEntry) -> dict[str, Any]:
    row, result = score_row(entry), entry.result
    cells = (
        place,
        model_cell(result.model["name"]),
        _number(row["score"]),
        row["interval"],
        row["protocol"],
        round(100 * share, 1) if math.isfinite(share := skill(result)) else None,
        _number(row["floor"]),
        f"{row['sign']} {row['verdict']}",
        result.score.n,
        result.score.n_patients,
        row["coverage"],
        ", ".join(_marks(entry)),
        *_cost(result.cost),
    )
    return dict(zip(SCORES, cells, strict=True))


def _cost(cost: Cost | None) -> tuple[Any, ...]:
    """Return parameters in millions, FLOPs in units of 10⁹, width, stored bytes, and the times with their device."""
    if cost is None:
        return (None,) * 4 + ("–",)
    parameters = None if cost.parameters is None else round(cost.parameters / 1e6, 3)
    flops = None if math.isnan(cost.flops) else round(cost.flops / 1e9, 3)
    timing = f"{cost.reason}; {timing_text(cost)}" if cost.reason else timing_text(cost)
    return parameters, flops, cost.width, round(cost.bytes), timing


def model_cell(name: str) -> str:
    """Return a model's name as Markdown: a link to its page where the name can be one, else the name as plain text."""
    repository, _, rest = name.partition(" ")
    if not REPOSITORY.fullmatch(repository) or ".." in repository:
        return tables.markdown_text(shorten(name, LONG))
    return f"[{tables.markdown_text(repository)}](https://huggingface.co/{repository}) {tables.markdown_text(rest)}".strip()


def _number(text: str) -> float | None:
    """Return a number as it is printed, so that a table sorts it as one; None where it is a word."""
    try:
        return float(text)
    except ValueError:
        return None


def chart(collection: Collection, task: str, choice: Choice = Choice()) -> pd.DataFrame:
    """Return the scores of a task for a bar chart: setting and score."""
    results = [entry.result for entry in collection.entries if entry.result.task == task]
    rows = [
        (f"{shorten(one.model['name'], LONG)}, {one.label}", _number(tables.number(one.score.value, one)))
        for one in tables.ordered(results)
        if choice.takes(one.model["name"], one.label)
    ]
    return pd.DataFrame(rows, columns=[MODEL, "score"]).dropna()


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


def problems(collection: Collection) -> pd.DataFrame:
    """Return the table of unranked results with reasons."""
    rows = [(shorten(p.file, 200), p.kind, p.message, shorten(p.subject, LONG)) for p in collection.problems]
    return pd.DataFrame(rows, columns=list(PROBLEMS))


def tasks_of(entries: Sequence[ResultEntry]) -> list[str]:
    """Return names of the tasks."""
    return sorted({entry.result.task for entry in entries})
