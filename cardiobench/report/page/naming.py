"""Format results for the page as table rows, tooltips and identifiers."""

import json
import math
from collections.abc import Sequence
from typing import Any

from cardiobench.core.io import with_digest
from cardiobench.metrics.number import Number
from cardiobench.report.overview import MARKS, ScoreCell, marks
from cardiobench.results import formatting as tables
from cardiobench.results.anchors import PublishedScore
from cardiobench.results.collect import ResultEntry
from cardiobench.results.score_result import Breakdown, Estimate, Gap, ScoreResult
from cardiobench.stats.variability import BOTH, SEEDS

COVERS = {name: f" ({name})" for name in (BOTH, SEEDS)}
"""Mapping from source of variation to its note; the usual source is explained once on the page."""
OWN_METHOD = "by the source's method"
CEILING_COLUMNS = ("metric", "people", "n", "setting", "source")
GAP_COLUMNS = {"gap": "value", "expected": "expected", "excess": "excess"}
LONG = 60  # Maximum number of characters of a name; the model's section has the full name.


def anchor(kind: str, name: str) -> str:
    """Return a readable, safe and unique identifier for a page section and its files."""
    return f"{kind}-{with_digest(name)}"


def skill_text(value: float) -> str:
    """Return the position between the floor and a perfect score in percent, with sign."""
    if math.isnan(value):
        return "undefined"
    return "0 %" if round(100 * value) == 0 else f"{100 * value:+.0f} %".replace("-", "−")


def tooltip(cell: ScoreCell) -> str:
    """Describe an overview cell in full sentences, without row and column names."""
    result = cell.entry.result
    score, verdict = result.score, result.verdict
    sentences = [
        f"{tables.metric_name(result)}: {tables.number(score.value, result)}, 95 % CI {tables.interval(score, result)}"
        f" (n = {score.n}, {score.n_patients} patients).",
        f"Floor {tables.floor(result)}. Difference {_difference(result)} (positive is better).",
        f"Verdict: {tables.verdict(result)}; {verdict.sentence}.",
        tables.bounds(result),
        *(f"{MARKS[mark][0]} {mark}." for mark in cell.marks[1:]),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _difference(result: ScoreResult) -> str:
    found = result.verdict
    return tables.difference_with_ends(found.difference, found.low, found.high, result)


def score_row(entry: ResultEntry) -> dict[str, Any]:
    """Return a result as a row of its task's table."""
    result = entry.result
    return {
        "model": result.model["name"],
        "protocol": result.label,
        "score": tables.number(result.score.value, result),
        "sort": result.score.value,
        "interval": tables.interval(result.score, result) + COVERS.get(result.score.covers, ""),
        "floor": tables.floor(result),
        "gain": _difference(result),
        "verdict": tables.verdict(result),
        "word": result.verdict.word,
        "note": tables.OLDER_RULES if result.outdated else "exploratory" if result.verdict.exploratory else "",
        "sentence": result.verdict.sentence,
        "sign": result.verdict.word.sign,
        "p": tables.p_value(result.verdict.p_adjusted),
        "n": result.score.n,
        "patients": result.score.n_patients,
        "coverage": tables.coverage(result),
        "bounds": tables.bounds(result),
        "marks": [
            (MARKS[mark][0], f"computed by {result.computed_by}" if mark == tables.REUSED else mark)
            for mark in marks(result)[1:]
        ],
    }


def published_row(row: PublishedScore, like: ScoreResult) -> dict[str, Any]:
    """Return a published score as a row of its task's table; `like` is a result with its metric."""
    return {
        "model": row.model,
        "protocol": row.protocol,
        "score": tables.number(row.value, like),
        "sort": row.value,
        "interval": "–" if math.isnan(row.low) else f"{tables.ends(row.low, row.high, like)} ({OWN_METHOD})",
        "source": "; ".join(filter(None, (row.source, row.condition))),
    }


def metric_table(results: Sequence[ScoreResult]) -> dict[str, Any]:
    """Return metric names with units, reasons for missing intervals, and one row of values and intervals per result."""
    names = list(dict.fromkeys(name for result in results for name in result.overall))
    units = {name: one.number(name).shown_unit(one.unit) for one in reversed(results) for name in one.overall}
    return {
        "names": [f"{name} {units[name]}".strip() for name in names],
        "notes": list(
            dict.fromkeys(
                f"{name.replace('_', ' ')}: {estimate.reason}"
                for result in results
                for name, estimate in result.overall.items()
                if estimate.reason
            )
        ),
        "rows": [
            {
                "model": result.model["name"],
                "protocol": result.label,
                "point": operating_point(result),
                "cells": [metric_text(name, result.overall.get(name), result) for name in names],
            }
            for result in results
        ],
    }


def further_table(results: Sequence[ScoreResult]) -> dict[str, Any]:
    """Return the numbers stored without intervals: names, and one row per result."""
    names = list(dict.fromkeys(name for result in results for name in result.further))
    return {
        "names": names,
        "rows": [(one.model["name"], one.label, [_further(one, name) for name in names]) for one in results],
    }


def _further(result: ScoreResult, name: str) -> str:
    number = result.number(name)
    value = result.further.get(name, math.nan)
    return number.with_unit(value, result.unit, number.decimals(result.unit))


def metric_text(name: str, estimate: Estimate | None, result: ScoreResult) -> tuple[str, str]:
    """Return the texts of a metric's value and interval, or the reason why it is undefined."""
    if estimate is None:
        return "–", "not computed"

    number = result.number(name)

    def text(value: float) -> str:
        return number.text(value, number.decimals(result.unit))

    if math.isnan(estimate.value):
        return "undefined", estimate.reason
    interval = "" if math.isnan(estimate.low) else f"{text(estimate.low)} – {text(estimate.high)}"
    return text(estimate.value), interval


def operating_point(result: ScoreResult) -> str:
    """Return the source of the decision threshold for binary tasks; empty for other tasks."""
    if "sensitivity" not in result.overall:
        return ""
    if "threshold" in result.options:
        samples = result.options.get("calibrated_on")
        return f"log odds {result.options['threshold']:.2f}, fixed on {samples} training and validation samples"
    return "classes as the protocol predicts them"


def group_rows(results: Sequence[ScoreResult]) -> list[dict[str, Any]]:
    """Return one row per result and breakdown with at least two groups: scores, gap and expected gap."""
    return [
        {
            "model": result.model["name"],
            "protocol": result.label,
            "task": result.task,
            "name": name,
            "groups": "; ".join(
                f"{label}: {tables.number(estimate.value, result)} [{tables.interval(estimate, result)}], n={estimate.n}"
                for label, estimate in breakdown.values.items()
            ),
            **{key: tables.number(getattr(breakdown.gap, source), result) for key, source in GAP_COLUMNS.items()},
            "p": tables.p_value(breakdown.gap.p_adjusted),
            "difference": difference_text(breakdown, result),
            "others": "; ".join(
                _other_gap(other, gap, result) for other, gap in breakdown.others.items() if not math.isnan(gap.value)
            ),
            "sure": breakdown.gap.shown,
            "worst": tables.worst_group(breakdown, result) or "–",
        }
        for result in tables.ordered(list(results))
        for name, breakdown in result.groups.items()
        if not math.isnan(breakdown.gap.value)
    ]


def _other_gap(name: str, gap: Gap, result: ScoreResult) -> str:
    """Return the gap of another number than the score: one of the result, or a share such as the false negative rate."""
    number = result.number(name) if name in result.overall else Number(name, None, unit="fraction")
    p = f"p = {tables.p_value(gap.p_adjusted)}".replace("= <", "<")
    return f"{name}: {number.difference(gap.value, result.unit)}, {number.text(gap.expected)} expected, {p}"


def difference_text(breakdown: Breakdown, result: ScoreResult) -> str:
    """Return the signed difference of two groups with its interval; empty for more groups."""
    gap = breakdown.gap
    if math.isnan(gap.low):
        return ""
    first, second = breakdown.values
    return f"{first} minus {second}: {tables.difference_with_ends(gap.difference, gap.low, gap.high, result)}"


def indented_json(tree: Any) -> str:
    """Return nested facts as indented JSON."""
    return json.dumps(tree, indent=2, ensure_ascii=False, default=str)


def stamp_rows(results: Sequence[ScoreResult]) -> list[tuple[str, str]]:
    """Return distinct versions, commits, revisions, digests, seeds and devices of the results by key."""
    values: dict[str, list[str]] = {}
    for result in results:
        data = result.dataset
        facts = {
            "model revision": result.model.get("revision"),
            "loaded by": result.model.get("loaded_by"),
            f"data of {data.get('name')}": f"version {data.get('version')}, digest {str(data.get('digest'))[:16]}",
            **{key: value for key, value in result.stamp.items() if key not in ("key", "seconds", "date")},
        }
        for key, value in facts.items():
            values.setdefault(key, []).append(str(value))
    dates = sorted(str(result.stamp.get("date", "")) for result in results)
    values["scored"] = [dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"]
    return [(key, ", ".join(dict.fromkeys(texts))) for key, texts in values.items()]
