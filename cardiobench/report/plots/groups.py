"""Plot subgroup scores with intervals, and box plots of errors for measurements (arXiv:2510.00520, Figure 3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cardiobench.data.spec import Task
from cardiobench.report.plots.figure import ReportFigure
from cardiobench.report.plots.intervals import interval_figure, place
from cardiobench.report.plots.style import FLOOR_LINE, INK, LINE_HEIGHT, LINES, MODEL, PAPER, WIDTH, shorten
from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult
from cardiobench.tasks.groups import intersection, split_rows

BOX = 0.17
"""Height of a box in inches, with its gap."""
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
        boxes_of_rows = drawn[["breakdown", "group"]].merge(quantiles, on=["breakdown", "group"], how="left")
        _draw_boxes(panels[0], boxes_of_rows, range(len(boxes_of_rows) - 1, -1, -1))
        panels[0].set_xlim(left=0)
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


def group_errors_figure(answers: Sequence[tuple[ScoreResult, pd.DataFrame]], task: Task) -> ReportFigure:
    """Draw the absolute errors of a measurement by group, one box for each model, as in Figure 3 of the paper.

    Args:
        answers: Results with groups, one per model, the best first, with their predictions.
        task: Task of the results.
    """
    names = [f"{shorten(result.model['name'], 40)}, {result.label}" for result, _ in answers]
    full = pd.concat(
        [
            error_quantiles(task, result, frame).assign(
                model=result.model["name"], protocol=result.label, number=number
            )
            for number, (result, frame) in enumerate(answers)
        ],
        ignore_index=True,
    )
    shown = full[full["number"] < len(LINES)]
    groups = list(dict.fromkeys(zip(shown["breakdown"], shown["group"], strict=True)))
    count = min(len(answers), len(LINES))
    step = count + 1.6  # Boxes of a group, and the line of its name.
    figure = Figure(figsize=(WIDTH, BOX * step * len(groups) + 0.7 + LINE_HEIGHT * count), layout="constrained")
    axes = figure.add_subplot()
    for number in range(count):
        own = shown[shown["number"] == number].set_index(["breakdown", "group"])
        places = [place for place, group in enumerate(groups) if group in own.index]
        heights = [step * (len(groups) - place) - number for place in places]
        _draw_boxes(axes, own.loc[[groups[place] for place in places]], heights, LINES[number])
        axes.plot([], [], "s", color=LINES[number], label=names[number])
    for row, (breakdown, group) in enumerate(groups):
        text = f"{breakdown.replace('_', ' ')}: {shorten(group, 24)}"
        axes.annotate(text, (0, step * (len(groups) - row) + 0.55), xycoords=("axes fraction", "data"), va="bottom")
    axes.set(ylim=(step - count, step * len(groups) + 2.1), yticks=[], xlabel=f"absolute error ({answers[0][0].unit})")
    axes.set_xlim(left=0)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside upper left")
    more = f" {len(answers) - count} further models are in the CSV." if len(answers) > count else ""
    caption = (
        f"Absolute errors by group of {len(answers)} models: quartiles, with the middle 90 % and the mean; "
        f"n = {answers[0][0].score.n} of {answers[0][0].model['name']}.{more}"
    )
    return ReportFigure("errors_by_group", caption, figure, {"errors_by_group": full.drop(columns="number")})


def _draw_boxes(axes: Axes, quantiles: pd.DataFrame, heights: Sequence[float], colour: str = MODEL) -> None:
    """Draw quartiles, median, mean and the central 90 % of each row's absolute errors at its height."""
    known = quantiles["mean"].notna()
    axes.bxp(
        quantiles.loc[known, ["mean", *QUANTILES]].to_dict("records"),
        positions=[height for height, one in zip(heights, known, strict=True) if one],
        orientation="horizontal",
        widths=0.5,
        showfliers=False,
        showmeans=True,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "edgecolor": colour},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        medianprops={"color": PAPER, "linewidth": 1.6},
        meanprops={"marker": "D", "markersize": 4, "markerfacecolor": PAPER, "markeredgecolor": INK},
    )
