"""Plot scores of every class of a multilabel task with intervals and numbers of positives."""

from collections.abc import Sequence

import pandas as pd

from cardiobench.report.plots.figure import ReportFigure
from cardiobench.report.plots.intervals import interval_figure, place
from cardiobench.report.plots.style import FLOOR, shorten
from cardiobench.results import formatting as tables
from cardiobench.results.score_result import ScoreResult


def class_table(results: Sequence[ScoreResult]) -> pd.DataFrame:
    """Return one row per result and class in the order of the scores.

    Returns:
        Table with the columns model, protocol, class, n, positives, patients (with the class), auroc, low, high and
        auprc.
    """
    return pd.DataFrame(
        [
            {
                "model": result.model["name"],
                "protocol": result.label,
                "class": name,
                **{key: getattr(score, key) for key in ("n", "positives", "patients")},
                "auroc": score.auroc.value,
                "low": score.auroc.low,
                "high": score.auroc.high,
                "auprc": score.auprc,
            }
            for result in tables.ordered(list(results))
            for name, score in result.per_class.items()
        ]
    )


def classes_figure(results: Sequence[ScoreResult], best: ScoreResult) -> ReportFigure:
    """Draw the AUROC of each class for one result, the most frequent class first.

    Args:
        results: All results of the task, which are included in the table.
        best: Result to draw.
    """
    full = class_table(results)
    drawn = full[(full["model"] == best.model["name"]) & (full["protocol"] == best.label)]
    drawn = drawn.sort_values("positives", ascending=False, kind="stable")
    rows = pd.DataFrame(
        {
            "label": [
                f"{shorten(str(name), 24)} ({count})"
                for name, count in zip(drawn["class"], drawn["positives"], strict=True)
            ],
            "value": 100 * drawn["auroc"],
            "low": 100 * drawn["low"],
            "high": 100 * drawn["high"],
            "hollow": False,
            "published": False,
        }
    )
    figure, (axes,) = interval_figure(rows)
    axes.axvline(50.0, color=FLOOR, linestyle="--", label="floor 50.00", zorder=1)
    axes.set_xlabel("AUROC % (higher is better)")
    place(figure, rows)
    caption = (
        f"{best.model['name']}, {best.label}: AUROC of each class against its absence, with 95 % intervals over patients; in "
        f"brackets the recordings that have it, of n = {best.score.n} ({best.score.n_patients} patients). The CSV has every "
        "model, and average precision."
    )
    return ReportFigure("classes", caption, figure, {"classes": full})
