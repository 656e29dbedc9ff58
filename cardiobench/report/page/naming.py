"""Results as the page writes them: rows of its tables, tooltips, identifiers."""

import json
import math
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from cardiobench.report.overview import MARKS, ScoreCell, marks
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Entry
from cardiobench.results.published import PublishedScore
from cardiobench.results.score_result import ScoreResult

LONG = 60  # characters of a name that are shown; the whole one is in the model's part


def anchor(kind: str, name: str) -> str:
    """Return the identifier of a part of the page and of its files: readable, safe, different for different names."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:40]
    return f"{kind}-{readable}-{sha256(name.encode('utf-8', 'replace')).hexdigest()[:6]}"


def skill_text(value: float) -> str:
    """Return the share of the way from the floor to a perfect score, in percent with its sign."""
    if math.isnan(value):
        return "undefined"
    return "0 %" if round(100 * value) == 0 else f"{100 * value:+.0f} %".replace("-", "−")


def tooltip(cell: ScoreCell) -> str:
    """Return a cell of the overview in full sentences."""
    result = cell.entry.result
    score, beats = result.score, result.verdict
    low, high = (tables.number(value, result) for value in (beats.low, beats.high))
    lines = [
        f"{result.model['name']}, {result.label}, on {result.task}.",
        f"{tables.metric_name(result)}: {tables.number(score.value, result)}, 95 % CI {tables.interval(score, result)}"
        f" (n = {score.n}, {score.n_patients} patients).",
        f"Floor: {tables.floor(result)}; {tables.verdict(result)}: {beats.sentence}; difference "
        f"{tables.number(beats.difference, result)} [{low}, {high}], positive is better: {skill_text(cell.skill)} of the way to a "
        "perfect score.",
        *(f"{MARKS[mark][0]} {mark}: {MARKS[mark][1]}." for mark in cell.marks),
    ]
    return " ".join(lines)


def score_row(entry: Entry) -> dict[str, Any]:
    """Return a result as a row of its task's table."""
    result = entry.result
    return {
        "model": result.model["name"],
        "protocol": result.label,
        "score": tables.number(result.score.value, result),
        "sort": result.score.value,
        "interval": tables.interval(result.score, result),
        "floor": tables.floor(result),
        "gain": tables.number(result.verdict.difference, result),
        "gain_sort": result.verdict.difference,
        "n": result.score.n,
        "patients": result.score.n_patients,
        "coverage": f"{result.coverage['scored']}/{result.coverage['expected']}",
        "marks": [(MARKS[mark][0], mark) for mark in marks(result)],
    }


def published_row(row: PublishedScore, like: ScoreResult) -> dict[str, Any]:
    """Return a published score as a row of its task's table; `like` is a result with its metric."""
    return {
        "model": row.model,
        "protocol": row.protocol,
        "score": tables.number(row.value, like),
        "sort": row.value,
        "source": row.source,
    }


def group_rows(results: Sequence[ScoreResult]) -> list[dict[str, Any]]:
    """Return one row per result and breakdown: scores of the groups and the gap."""
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
            "gap": tables.number(breakdown.gap.value, result),
            "gap_interval": tables.gap_text(breakdown, result),
            "worst": breakdown.worst or "–",
        }
        for result in tables.ordered(list(results))
        for name, breakdown in result.groups.items()
    ]


def indented_json(tree: Any) -> str:
    """Return a tree of facts as indented JSON."""
    return json.dumps(tree, indent=2, ensure_ascii=False, default=str)


def stamp_rows(results: Sequence[ScoreResult]) -> list[tuple[str, str]]:
    """Return versions, commits, revisions, digests, seeds and devices behind the results: key, the different values."""
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
