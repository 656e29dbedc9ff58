"""Plot scores and losses for lead sets from twelve leads to one."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cardiobench.report.plots.style import FLOOR_LINE, INK, LINES, PAPER, subplots
from cardiobench.report.plots.units import shown_scores
from cardiobench.results.analysis_result import AnalysisResult

OFFSET = 0.12
"""Vertical distance between protocols within a lead set."""
NOTES = {"leads": "Lines: 95 % intervals over test patients; hollow: the leads left out are zeros."}


def draw(record: AnalysisResult) -> dict[str, Figure]:
    """Draw scores and losses relative to twelve leads; hollow markers are zero-filled."""
    table, label = shown_scores(record.tables["leads"], record.tables["leads"].iloc[0])
    sets = list(dict.fromkeys(table.sort_values("count", ascending=False, kind="stable")["leads"]))
    by = list(dict.fromkeys(table["by"]))
    title = (record.subject, record.models[0]["name"])
    height = 1.4 + len(sets) * (0.25 + OFFSET * len(by))
    figure, (scores, losses) = subplots(1, 2, height=max(height, 2.4), sharey=True, title=title)
    for number, name in enumerate(by):
        rows = table[table["by"] == name]
        places = [sets.index(leads) + OFFSET * (number - (len(by) - 1) / 2) for leads in rows["leads"]]
        _points(scores, rows, places, "score", LINES[number % len(LINES)])
        _points(losses, rows, places, "loss", LINES[number % len(LINES)])
        scores.plot([], [], "o", color=LINES[number % len(LINES)], label=name)
    first = table.iloc[0]
    scores.axvline(first["floor"], label="floor", **FLOOR_LINE)
    losses.axvline(0, color=INK, linewidth=0.8)
    if (table["taken"] == "zero-filled").any():
        scores.plot([], [], "o", color=INK, markerfacecolor=PAPER, label="zero-filled")
    scores.set(xlabel=label.replace(", ", ",\n"), yticks=range(len(sets)))
    scores.set_yticklabels([_wrapped(leads) for leads in sets])
    scores.set_ylim(len(sets) - 0.5, -0.5)
    losses.set(xlabel="loss against 12 leads,\npaired, 95 % interval")
    for axes in (scores, losses):
        axes.grid(axis="x")
    figure.legend(*scores.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return {"leads": figure}


def _points(axes: Axes, rows: pd.DataFrame, places: list[float], name: str, colour: str) -> None:
    for (_, row), place in zip(rows.iterrows(), places, strict=True):
        fill = PAPER if row["taken"] == "zero-filled" else colour
        axes.plot([row[f"{name}_low"], row[f"{name}_high"]], [place, place], color=colour, linewidth=1.3)
        axes.plot(row[name], place, "o", color=colour, markerfacecolor=fill, markersize=5)


def _wrapped(leads: str) -> str:
    """Return lead names in lines of at most six."""
    names = leads.split()
    return "\n".join(" ".join(names[start : start + 6]) for start in range(0, len(names), 6))
