"""Plot scores of all models on one task with intervals, floor lines and published scores."""

import math
from collections.abc import Sequence

import pandas as pd

from cardiobench.report.plots.figure import ReportFigure, range_text
from cardiobench.report.plots.intervals import LABEL, interval_figure, place
from cardiobench.report.plots.style import FLOOR, LINES, fit, shorten, text_width
from cardiobench.results import formatting as tables
from cardiobench.results.anchors import Ceiling, PublishedScore, anchors
from cardiobench.results.score_result import ScoreResult

PEOPLE, ELSEWHERE = LINES[2], LINES[4]
MAX_LINES = 4
"""Above this count, external predictions are drawn as rows instead of lines."""
MAX_ROWS = 40  # Above this count, draw only each model's best result.


def score_table(results: Sequence[ScoreResult], published: Sequence[PublishedScore]) -> pd.DataFrame:
    """Return the values of the figure, best first, followed by published scores.

    Returns:
        Table with the columns model, protocol, value, low, high, collapsed, n, n_patients, published and source.
    """
    ours = [
        {
            "model": result.model["name"],
            "protocol": result.label,
            **{name: getattr(result.score, name) for name in ("value", "low", "high", "n", "n_patients")},
            "collapsed": result.collapsed,
            "published": False,
            "source": "",
        }
        for result in tables.ordered(list(results))
    ]
    others = [
        {name: getattr(row, name) for name in ("model", "protocol", "value", "low", "high", "source")}
        | {"published": True}
        for row in sorted(published, key=lambda row: row.value, reverse=results[0].higher_is_better)
    ]
    return pd.DataFrame(ours + others).astype({"published": bool})


def scores_figure(results: Sequence[ScoreResult]) -> ReportFigure:
    """Draw one row per result: filled if predictions vary, hollow if collapsed, a diamond if published."""
    first = results[0]
    others = anchors(first.task)
    published = [row for row in others.published if row.metric == first.metric]
    full = score_table(results, published)
    shown, note = full, ""
    if len(full) > MAX_ROWS:
        shown = full[full["published"] | ~full.duplicated("model")]
        note = " Each model is drawn with its best protocol; the table has all protocols."
    factor = first.number().factor
    ends = [
        f" · {'published' if published else protocol}"
        for published, protocol in zip(shown["published"], shown["protocol"], strict=True)
    ]
    labels = [fit(model, LABEL - text_width([end])) + end for model, end in zip(shown["model"], ends, strict=True)]
    hollow = shown["published"] | shown["collapsed"].eq(True)
    rows = (shown[["value", "low", "high"]] * factor).assign(label=labels, hollow=hollow, published=shown["published"])
    figure, (axes,) = interval_figure(rows)
    for name, line, text in (("best_uninformed", "--", "floor"), ("best_constant", ":", "best constant")):
        floor = first.floors.get(name)
        if floor is not None and not math.isnan(floor.value):
            value = factor * floor.value
            axes.axvline(value, color=FLOOR, linestyle=line, label=f"{text} {value:.2f}", zorder=1)
    known = () if first.generated else others.ceilings
    ceilings = [one for one in known if one.metric == first.metric]
    for ceiling in ceilings:
        low, high = factor * ceiling.low, factor * ceiling.high
        text = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
        axes.axvspan(low, high, color=PEOPLE, alpha=0.35, linewidth=1.5, label=f"people {text}", zorder=0)
    lines = _reference_lines(results)
    for result in lines:
        text = " ".join((shorten(str(result.model["name"]), 32), tables.number(result.score.value, result)))
        axes.axvline(factor * result.score.value, color=ELSEWHERE, linestyle="-.", label=text, zorder=1)
    axes.set_xlabel(f"{tables.metric_name(first)} ({'higher' if first.higher_is_better else 'lower'} is better)")
    place(figure, rows)
    caption = (
        f"Scores on {first.task} with 95 % intervals over patients, n = {range_text(full['n'])} "
        f"({range_text(full['n_patients'])} patients); hollow circles: collapsed"
        f"{'; diamonds: published by others, on their own runs, with intervals by their own methods' if published else ''}"
        f"{'; dash-dotted lines: predictions from elsewhere, as references' if lines else ''}.{note}"
        + (
            f" Green: agreement of people in other studies and settings ({'; '.join(dict.fromkeys(c.n for c in ceilings))})."
            if ceilings
            else ""
        )
        + _other_measures([one for one in known if one.metric != first.metric])
    )
    return ReportFigure("scores", caption, figure, {"scores": full})


def _reference_lines(results: Sequence[ScoreResult]) -> list[ScoreResult]:
    """Return external predictions to draw as reference lines; empty if there are no models."""
    elsewhere = [one for one in tables.ordered(list(results)) if one.external and not math.isnan(one.score.value)]
    return elsewhere if len(elsewhere) <= MAX_LINES and not all(one.external for one in results) else []


def _other_measures(ceilings: Sequence[Ceiling]) -> str:
    """Return a sentence on human agreement that the figure's axis cannot show."""
    values = "; ".join(f"{one.metric} {one.text} ({one.n})" for one in ceilings)
    return f" Human agreement in other metrics: {values}." if values else ""
