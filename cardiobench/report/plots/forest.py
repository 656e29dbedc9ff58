"""Scores of all models on one task with their intervals, floors as lines, published scores beside them."""

from collections.abc import Sequence

import pandas as pd

from cardiobench.report.plots.panel import Panel, around, key
from cardiobench.report.plots.rows import IntervalRow, interval_rows, scale
from cardiobench.report.plots.style import FLOOR, MODEL, PUBLISHED, Picture, new_figure, shorten
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Entry
from cardiobench.results.published import PublishedScore

MOST = 40  # rows; of more results each model's best one is drawn


def table(entries: Sequence[Entry], printed: Sequence[PublishedScore]) -> pd.DataFrame:
    """The rows of the picture, best first, then the published ones.

    Returns:
        model, protocol, value, low, high, collapsed, n, n_patients, published, source.
    """
    rows = [
        {
            "model": result.model["name"],
            "protocol": result.label,
            **{name: getattr(result.score, name) for name in ("value", "low", "high")},
            "collapsed": result.collapsed,
            **{name: getattr(result.score, name) for name in ("n", "n_patients")},
            "published": False,
            "source": "",
        }
        for result in tables.ordered([entry.result for entry in entries])
    ]
    rows += [
        {"model": row.model, "protocol": row.protocol, "value": row.value, "published": True, "source": row.source}
        for row in sorted(printed, key=lambda row: row.value, reverse=entries[0].result.higher_is_better)
    ]
    return pd.DataFrame(rows)


def forest(entries: Sequence[Entry], printed: Sequence[PublishedScore]) -> Picture:
    """One row a result; filled = varies, hollow = collapsed, diamond = published by others."""
    first = entries[0].result
    full = table(entries, printed)
    shown, note = full, ""
    if len(full) > MOST:
        shown = full[full["published"] | ~full.duplicated("model")]
        note = " Of each model its best protocol is drawn; the table has all."
    factor = 100.0 if first.metric in tables.FRACTIONS else 1.0
    rows = [
        IntervalRow(
            _label(row),
            factor * row.value,
            factor * row.low,
            factor * row.high,
            hollow=bool(row.published or row.collapsed),
            marker="D" if row.published else "o",
            colour=PUBLISHED if row.published else MODEL,
        )
        for row in shown.itertuples()
    ]
    lines = {
        f"{label} {factor * first.floors[name].value:.2f}": (factor * first.floors[name].value, line)
        for name, line, label in (("best_constant", "--", "best constant"), ("chance", ":", "chance"))
        if name in first.floors and first.floors[name].value == first.floors[name].value
    }
    tall = 0.235 * len(rows)
    figure = new_figure(7.6, 0.92 + tall)
    numbers = ([row.value for row in rows], [row.low for row in rows], [row.high for row in rows])
    panel = Panel(
        figure, (3.15, 0.62, 3.7, tall), around(*numbers, [value for value, _ in lines.values()]), scale(rows)
    )
    better = "higher" if first.higher_is_better else "lower"
    panel.bottom_scale(f"{tables.metric_name(first)} ({better} is better)")
    for value, line in lines.values():
        panel.line([value, value], panel.y, color=FLOOR, linestyle=line, linewidth=1.3, zorder=1)
    interval_rows(panel, rows)
    looks = [(text, {"color": FLOOR, "linestyle": line, "linewidth": 1.3}) for text, (_, line) in lines.items()]
    key(figure, looks, panel.left, panel.top + 0.14, columns=2, wide=1.9)
    theirs = "; diamonds: published by others, on their own runs" if len(printed) else ""
    caption = (
        f"Scores on {first.task} with 95 % intervals over patients, n = {_range(entries, 'n')} "
        f"({_range(entries, 'n_patients')} patients); hollow circles: collapsed{theirs}.{note}"
    )
    return Picture("scores", caption, figure, full)


def _label(row) -> str:
    name = shorten(row.model, 30 if row.published else 32)
    return f"{name} · {'published' if row.published else shorten(row.protocol, 22)}"


def _range(entries: Sequence[Entry], name: str) -> str:
    counts = sorted({getattr(entry.result.score, name) for entry in entries})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
