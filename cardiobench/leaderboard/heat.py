"""Draw the overview as a compact heat map: models by tasks, with the position of each score between floor and perfect."""

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

from cardiobench.leaderboard import table
from cardiobench.leaderboard.boards import RowStanding
from cardiobench.leaderboard.choice import EVERYTHING, Choice
from cardiobench.leaderboard.grid import SHADES
from cardiobench.leaderboard.style import scale
from cardiobench.report.overview import ScoreCell
from cardiobench.results.collect import Collection

MEANING = "Share of the way from the floor (0) to a perfect score (100), in percent; negative is below the floor."


def heat_map(collection: Collection, kind: str, choice: Choice = EVERYTHING) -> str:
    """Return the selected rows of an overview table by place as an HTML table with a colour scale; empty without rows."""
    tasks, rows = table.overview_rows(collection, kind, choice)
    if not rows:
        return ""
    head = _head(tasks)
    body = "".join(_row(one, tasks, choice) for one in rows)
    inner = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    # A region that scrolls must take the focus, so that it can be scrolled with the keyboard.
    region = f'<div class="cb-scroll" tabindex="0" role="region" aria-label="Heat map">{inner}</div>'
    return f'<div class="cb-heat"><p>{MEANING}</p>{scale()}{region}</div>'


def _head(tasks: Sequence[str]) -> str:
    """Return two rows: datasets, and the tasks of each below."""
    groups = [(dataset, len(list(its))) for dataset, its in groupby(tasks, lambda task: task.partition("/")[0])]
    datasets = "".join(
        f'<th colspan="{count}" scope="colgroup"><span>{escape(name)}</span></th>' for name, count in groups
    )
    names = "".join(
        f'<th scope="col" title="{escape(task)}"><span>{escape(task.partition("/")[2] or task)}</span></th>'
        for task in tasks
    )
    first = '<th rowspan="2" scope="col">place</th><th rowspan="2" scope="col">model and protocol</th>'
    return f'<tr>{first}{datasets}</tr><tr class="cb-tasks">{names}</tr>'


def _row(one: RowStanding, tasks: Sequence[str], choice: Choice) -> str:
    name = escape(table.row_name(one))
    cells = "".join(_cell(task, cell, choice) for task, cell in zip(tasks, one.row.cells, strict=True))
    place = one.place.text if one.place else "–"
    return f'<tr><td>{place}</td><th scope="row" title="{name}">{name}</th>{cells}</tr>'


def _cell(task: str, cell: ScoreCell | str, choice: Choice) -> str:
    reason = cell if isinstance(cell, str) else ""
    if isinstance(cell, ScoreCell) and choice.unseen and cell.entry.result.seen_in_pretraining:
        reason = table.SEEN
    if reason or isinstance(cell, str):
        return f'<td title="{escape(f"{task}: {reason}")}">–</td>'
    text = "–" if math.isnan(cell.skill) else f"{100 * cell.skill:.0f}".replace("-0", "0").replace("-", "−")
    colour = f"background:var({SHADES[cell.shade + 2]})"
    return f'<td style="{colour}" title="{escape(f"{task}: {cell.score_text} {cell.signs}")}">{text}</td>'
