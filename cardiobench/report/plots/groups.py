"""Plot subgroup scores with intervals, and box plots of errors for measurements (arXiv:2510.00520, Figure 3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from cardiobench.data.spec import Task
from cardiobench.report.plots.figure import ReportFigure
from cardiobench.report.plots.intervals import interval_figure, place
from cardiobench.report.plots.style import FLOOR_LINE, INK, MODEL, PAPER, shorten
from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult
from cardiobench.tasks.groups import intersection, split_rows

QUANTILES = {"whislo": 0.05, "q1": 0.25, "med": 0.5, "q3": 0.75, "whishi": 0.95}
"""Mapping from box part in matplotlib's `bxp` to quantile of a group's absolute errors."""


def group_table(results: Sequence[ScoreResult]) -> pd.DataFrame:
    """Return one row per result, breakdown and group in the order of the scores.

    Returns:
        Table with the columns model, protocol, breakdown, group, value, low, high, n, n_patients, worst and gap.
    """
    return pd.DataFrame(
        [
            {
                "model": result.model["name"],
                "protocol": result.label,
                "breakdown": name,
                "group": group,
                **{key: getattr(estimate, key) for key in ("value", "low", "high", "n", "n_patients")},
                "worst": group == tables.worst_group(breakdown, result),
                "gap": breakdown.gap.value,
            }
            for result in tables.ordered(list(results))
            for name, breakdown in result.groups.items()
            for group, estimate in breakdown.values.items()
        ]
    )


def error_quantiles(task: Task, result: ScoreResult, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and quantiles of absolute errors for each group of a measurement, in the label's unit.

    Args:
        task: Task that defines the groups.
        result: Result with the breakdowns.
        frame: Predictions of the result with group columns.

    Returns:
        Table with the columns breakdown, group, mean and the keys of `QUANTILES`, one row per scored group.
    """
    errors = np.abs(frame["y_pred"].to_numpy(np.float64) - frame["y_true"].to_numpy(np.float64))
    splits = {group.name: split_rows(group, frame) for group in task.groups}
    by_name = {group.name: group for group in task.groups}
    for name in result.groups:
        first, _, second = name.partition(" x ")
        if second:
            splits[name] = intersection(by_name[first], by_name[second], frame)
    rows = [
        {
            "breakdown": name,
            "group": label,
            "mean": errors[chosen].mean(),
            **dict(zip(QUANTILES, np.quantile(errors[chosen], list(QUANTILES.values())), strict=True)),
        }
        for name in result.groups
        for label, chosen in splits[name].rows.items()
    ]
    return pd.DataFrame(rows, columns=["breakdown", "group", "mean", *QUANTILES])


def groups_figure(
    results: Sequence[ScoreResult], best: ScoreResult, task: Task | None, frame: pd.DataFrame
) -> ReportFigure:
    """Draw one row per group of one result, with a hollow marker for the worst group of a breakdown.

    Args:
        results: All results of the task with groups, which are included in the table.
        best: Result to draw.
        task: Task of the results; None if unknown to this version.
        frame: Predictions of the drawn result.
    """
    full = group_table(results)
    drawn = full[(full["model"] == best.model["name"]) & (full["protocol"] == best.label)]
    factor = best.number().factor
    labels = [f"{r.breakdown.replace('_', ' ')}: {shorten(r.group, 24)} (n={r.n})" for r in drawn.itertuples()]
    rows = (drawn[["value", "low", "high"]] * factor).assign(label=labels, hollow=drawn["worst"], published=False)
    boxes = task is not None and not (task.dense or task.classes)
    figure, (axes, *panels) = interval_figure(rows, panels=1 + boxes)
    axes.axvline(
        factor * best.score.value, label=f"all together {factor * best.score.value:.2f}", zorder=1, **FLOOR_LINE
    )
    axes.set_xlabel(tables.metric_name(best))
    if task is not None and boxes:
        quantiles = error_quantiles(task, best, frame)
        full = full.merge(
            quantiles.assign(model=best.model["name"], protocol=best.label),
            on=["model", "protocol", "breakdown", "group"],
            how="left",
        )
        _draw_boxes(panels[0], drawn[["breakdown", "group"]].merge(quantiles, on=["breakdown", "group"], how="left"))
        panels[0].set_xlabel(f"absolute error ({best.unit})")
    place(figure, rows)
    gaps = "; ".join(f"{name.replace('_', ' ')}: {tables.gap_text(one, best)}" for name, one in best.groups.items())
    caption = (
        f"{best.model['name']}, {best.label}, by group with 95 % intervals over patients; hollow: the worst "
        f"group of its breakdown; n = {best.score.n} ({best.score.n_patients} patients). Best to worst group: {gaps}."
        + (" Boxes: quartiles of the absolute errors, with the middle 90 % and the mean." if boxes else "")
        + " The CSV has every model."
    )
    return ReportFigure("groups", caption, figure, {"groups": full})


def _draw_boxes(axes: Axes, quantiles: pd.DataFrame) -> None:
    """Draw quartiles, median, mean and the central 90 % of each row's absolute errors."""
    known = quantiles["mean"].notna()
    axes.bxp(
        quantiles.loc[known, ["mean", *QUANTILES]].to_dict("records"),
        positions=(len(quantiles) - 1 - np.flatnonzero(known)).tolist(),
        orientation="horizontal",
        widths=0.5,
        showfliers=False,
        showmeans=True,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": MODEL, "edgecolor": MODEL},
        whiskerprops={"color": MODEL},
        capprops={"color": MODEL},
        medianprops={"color": PAPER, "linewidth": 1.6},
        meanprops={"marker": "D", "markersize": 4, "markerfacecolor": PAPER, "markeredgecolor": INK},
    )
    axes.set_xlim(left=0)
