"""Scores of every subgroup with their intervals; of a measurement also the errors behind them (arXiv:2510.00520, Figure 3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.report.plots.panel import Panel, around, key
from cardiobench.report.plots.rows import IntervalRow, heights, interval_rows, scale
from cardiobench.report.plots.style import FLOOR, INK, MODEL, PAPER, Picture, new_figure, shorten
from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.groups import split_rows

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Shares of a group's absolute errors that are at most as large as the ends of its whisker, of its box, and the line in it."""
QUANTILES = [f"error_q{100 * share:02.0f}" for share in SHARES]


def table(results: Sequence[ScoreResult]) -> pd.DataFrame:
    """A row a result, breakdown and group, in the order of the scores: model, protocol, breakdown, group, value, low, high, n, worst, gap."""
    return pd.DataFrame(
        [
            {
                "model": result.model["name"],
                "protocol": result.label,
                "breakdown": name,
                "group": label,
                **{key: getattr(found, key) for key in ("value", "low", "high", "n", "n_patients")},
                "worst": label == breakdown.worst,
                "gap": breakdown.gap.value,
            }
            for result in tables.ordered(list(results))
            for name, breakdown in result.groups.items()
            for label, found in breakdown.values.items()
        ]
    )


def errors(task: Task, result: ScoreResult, frame: pd.DataFrame) -> pd.DataFrame:
    """Absolute errors of each group of a measurement, in the label's unit.

    Args:
        task: with the groups.
        result: whose breakdowns are looked at.
        frame: its predictions, with the columns of the groups.

    Returns:
        breakdown, group, error_mean, and the quantiles `QUANTILES`, a row a scored group.
    """
    off = np.abs(frame["y_pred"].to_numpy(np.float64) - frame["y_true"].to_numpy(np.float64))
    rows = [
        {
            "breakdown": group.name,
            "group": label,
            "error_mean": off[own].mean(),
            **dict(zip(QUANTILES, np.quantile(off[own], SHARES), strict=True)),
        }
        for group in task.groups
        if group.name in result.groups
        for label, own in split_rows(group, frame).rows.items()
    ]
    return pd.DataFrame(rows, columns=["breakdown", "group", "error_mean", *QUANTILES])


def groups(results: Sequence[ScoreResult], best: ScoreResult, task: Task | None, frame: pd.DataFrame) -> Picture:
    """One result, a row a group; the worst group of a breakdown is hollow.

    Args:
        results: of the task, with groups; all of them are in the table.
        best: the one that is drawn.
        task: of the results; None for one that this version does not know.
        frame: predictions of the drawn one.
    """
    factor = 100.0 if best.metric in tables.FRACTIONS else 1.0
    places = [(name, label) for name, breakdown in best.groups.items() for label in breakdown.values]
    found = [best.groups[name].values[label] for name, label in places]
    rows = [
        IntervalRow(
            f"{name.replace('_', ' ')}: {shorten(label, 24)} (n={own.n})",
            factor * own.value,
            factor * own.low,
            factor * own.high,
            hollow=label == best.groups[name].worst,
        )
        for (name, label), own in zip(places, found, strict=True)
    ]
    full = table(results)
    spread = pd.DataFrame()
    if task is not None and task.kind == "regression":
        spread = errors(task, best, frame)
        own = (full["model"] == best.model["name"]) & (full["protocol"] == best.label)
        full = full.merge(spread, on=["breakdown", "group"], how="left")
        full.loc[~own, ["error_mean", *QUANTILES]] = np.nan
    tall = 0.22 * len(rows)
    figure = new_figure(9.2 if len(spread) else 7.6, 0.9 + tall)
    numbers = ([row.value for row in rows], [row.low for row in rows], [row.high for row in rows])
    whole = factor * best.score.value
    panel = Panel(figure, (2.6, 0.6, 3.0 if len(spread) else 4.4, tall), around(*numbers, [whole]), scale(rows))
    panel.bottom_scale(tables.metric_name(best))
    line = {"color": FLOOR, "linestyle": "--", "linewidth": 1.2}
    panel.line([whole, whole], panel.y, zorder=1, **line)
    interval_rows(panel, rows)
    key(figure, [(f"all together {whole:.2f}", line)], panel.left, panel.top + 0.14)
    if len(spread):
        _boxes(
            Panel(figure, (6.4, 0.6, 2.6, tall), around([0], spread[QUANTILES]), panel.y), spread, places, rows, best
        )
    gaps = "; ".join(f"{name.replace('_', ' ')}: {tables.gap_text(own, best)}" for name, own in best.groups.items())
    caption = (
        f"{best.model['name']}, {best.label}, by group with 95 % intervals over patients; hollow: the worst "
        f"group of its breakdown; n = {best.score.n} ({best.score.n_patients} patients). Best to worst group: {gaps}."
        + (" Boxes: quartiles of the absolute errors, with the middle 90 % and the mean." if len(spread) else "")
        + " The CSV has every model."
    )
    return Picture("groups", caption, figure, full)


def _boxes(
    panel: Panel, spread: pd.DataFrame, places: Sequence, rows: Sequence[IntervalRow], result: ScoreResult
) -> None:
    """Quartiles, median, mean and the middle 90 % of each group's absolute errors, in the same rows."""
    panel.bottom_scale(f"absolute error ({result.unit})")
    up = dict(zip(places, heights(rows), strict=True))
    known = spread[[place in up for place in zip(spread["breakdown"], spread["group"], strict=True)]]
    y = np.array([up[place] for place in zip(known["breakdown"], known["group"], strict=True)])
    low, box, middle, end, high = (known[name].to_numpy() for name in QUANTILES)
    panel.bars(low, high, y, color=MODEL, linewidth=1)
    panel.bars(box, end, y, color=MODEL, linewidth=8)
    panel.dots(middle, y, "|", 8, color=PAPER, markeredgewidth=1.6)
    panel.dots(known["error_mean"], y, "D", 4, color=INK, markerfacecolor=PAPER)
