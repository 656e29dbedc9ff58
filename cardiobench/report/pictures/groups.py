"""Scores of every subgroup with their intervals, best and worst group of each breakdown."""

from collections.abc import Sequence

import pandas as pd

from cardiobench.report import tables
from cardiobench.report.pictures.ink import FLOOR, IntervalRow, Picture, interval_rows, new_figure, short
from cardiobench.report.result import Result


def table(results: Sequence[Result]) -> pd.DataFrame:
    """A row a result, breakdown and group, in the order of the scores: model, protocol, breakdown, group, value, low, high, n, worst, gap."""
    return pd.DataFrame(
        [
            {
                "model": result.model["name"],
                "protocol": tables.protocol_name(result),
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


def groups(results: Sequence[Result]) -> Picture:
    """The best result that has not collapsed, a row a group; the worst group of a breakdown is hollow."""
    best = next((result for result in tables.ordered(list(results)) if not result.collapsed and result.groups), None)
    best = best or next(result for result in tables.ordered(list(results)) if result.groups)
    factor = 100.0 if best.metric in tables.FRACTIONS else 1.0
    rows = [
        IntervalRow(
            f"{name.replace('_', ' ')}: {short(label, 24)} (n={found.n})",
            factor * found.value,
            factor * found.low,
            factor * found.high,
            hollow=label == breakdown.worst,
        )
        for name, breakdown in best.groups.items()
        for label, found in breakdown.values.items()
    ]
    figure, (axes,) = new_figure(7.6, 0.95 + 0.22 * len(rows), left=2.6, top=0.25, bottom=0.6, right=0.6)
    axes.axvline(factor * best.score.value, color=FLOOR, linestyle="--", linewidth=1.2, label="all together", zorder=0)
    interval_rows(axes, rows)
    axes.set_xlabel(tables.metric_name(best))
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.1)
    caption = (
        f"{best.model['name']}, {tables.protocol_name(best)}, by group with 95 % intervals over patients; hollow: the worst "
        f"group of its breakdown; n = {best.score.n} ({best.score.n_patients} patients). The CSV has every model."
    )
    return Picture("groups", caption, figure, table(results))
