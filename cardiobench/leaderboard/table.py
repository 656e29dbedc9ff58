"""The leaderboard's tables: the overview, every score, and what is not ranked; text, as the report writes it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from cardiobench.report.overview import ScoreCell, marks, overview_tables, ranked, skill, table_name
from cardiobench.report.page.naming import score_row, skill_text
from cardiobench.report.plots.style import shorten
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection, Entry
from cardiobench.results.score_result import ScoreResult

ABOVE = "above the floor"

LONG = 80
SCORES = (
    "rank",
    "model",
    "protocol",
    "score",
    "95 % CI",
    "floor to perfect",
    "floor",
    "verdict",
    "n",
    "patients",
    "coverage",
    "marks",
)
PROBLEMS = ("file", "kind", "what is wrong, and what to do", "about")


@dataclass(frozen=True)
class Choice:
    """What a visitor asked for.

    Attributes:
        model: part of a name, any letter case; empty for all.
        protocol: whole name; empty for all.
        above: only scores above the floor.
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
        return pd.DataFrame(columns=["model", "protocol", "coverage"])
    rows = []
    for row in board.rows:
        beats = any(isinstance(cell, ScoreCell) and cell.marks[0] == ABOVE for cell in row.cells)
        if choice.takes(row.model, row.protocol) and (beats or not choice.above):
            cells = {task: _text(cell) for task, cell in zip(board.tasks, row.cells, strict=True)}
            name = shorten(f"{row.model} {row.setting}".strip(), LONG)
            rows.append(
                {"model": name, "protocol": row.protocol, "coverage": f"{row.covered}/{len(row.cells)}", **cells}
            )
    return pd.DataFrame(rows, columns=["model", "protocol", "coverage", *board.tasks])


def _text(cell: ScoreCell | str) -> str:
    return cell if isinstance(cell, str) else f"{skill_text(cell.skill)} {cell.signs} · {cell.score_text}"


def scores(collection: Collection, task: str, choice: Choice = Choice()) -> pd.DataFrame:
    """Return the scores of a task, best first; the rank counts all of them, selected or not."""
    by_result = {id(entry.result): entry for entry in collection.entries if entry.result.task == task}
    ordered = tables.ordered([entry.result for entry in by_result.values()])
    rows = [
        _row(rank, by_result[id(result)])
        for rank, result in zip(_ranks(ordered), ordered, strict=True)
        if choice.takes(result.model["name"], result.label) and (result.verdict.word == ABOVE or not choice.above)
    ]
    return pd.DataFrame(rows, columns=list(SCORES))


def _ranks(ordered: Sequence[ScoreResult]) -> list[str]:
    """Return the place of each result; none for one that may not be ranked, or is of generated recordings."""
    ranks, place = [], 0
    for result in ordered:
        place += (counts := ranked(result) and not result.generated)
        ranks.append(str(place) if counts else "–")
    return ranks


def _row(rank: str, entry: Entry) -> dict[str, str]:
    row = score_row(entry)
    words = (
        rank,
        shorten(row["model"], LONG),
        row["protocol"],
        row["score"],
        row["interval"],
        skill_text(skill(entry.result)),
        row["floor"],
        f"{row['sign']} {row['verdict']}",
        row["n"],
        row["patients"],
        row["coverage"],
        ", ".join(marks(entry.result)[1:]),
    )
    return {column: str(word) for column, word in zip(SCORES, words, strict=True)}


def about(collection: Collection, task: str) -> str:
    """Return one line about a task, plain text."""
    first = next(entry.result for entry in collection.entries if entry.result.task == task)
    direction = "higher" if first.higher_is_better else "lower"
    data = f"{first.dataset.get('name')} version {first.dataset.get('version') or 'unknown'}"
    return f"{table_name(first)}. Ranked by {tables.metric_name(first)}, {direction} is better. Data: {data}."


def problems(collection: Collection) -> pd.DataFrame:
    """Return the table of what is not ranked, and why."""
    rows = [(shorten(p.file, 200), p.kind, p.message, shorten(p.subject, LONG)) for p in collection.problems]
    return pd.DataFrame(rows, columns=list(PROBLEMS))


def tasks_of(entries: Sequence[Entry]) -> list[str]:
    """Return names of the tasks."""
    return sorted({entry.result.task for entry in entries})
