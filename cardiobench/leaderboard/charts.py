"""Draw charts of a task as HTML with text of fixed size: scores with intervals, and scores against FLOPs.

Gradio plots have no intervals, and Vega plots in gradio neither fit their box nor follow the dark theme.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import compress

import numpy as np

from cardiobench.leaderboard import table
from cardiobench.leaderboard.boards import Standing
from cardiobench.leaderboard.choice import EVERYTHING, Choice, is_baseline
from cardiobench.report.plots.style import shorten
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Collection
from cardiobench.results.cost import short
from cardiobench.stats.fronts import pareto_front

NAME_LENGTH = 48
MARGIN = 0.04
"""Margin beyond the outermost values, as a fraction of the axis."""
TICKS = 5
KINDS = {"model": "model", "baseline": "baseline", "other": "best of another condition"}
"""Mapping from CSS class of a point to its name in the legend."""


@dataclass(frozen=True)
class Point:
    """Result in a chart, with the same numbers as in the tables.

    Attributes:
        name: Model and protocol.
        kind: One of `KINDS`.
        place: Place, or a substitute text.
        score: Score in the units of the table.
        interval: Interval; empty if unknown.
        floor: Floor; NaN if unknown.
        flops: FLOPs per recording; NaN if unknown.
        gain: Score oriented so that larger is better.
    """

    name: str
    kind: str
    place: str
    score: float
    interval: tuple[float, ...]
    floor: float
    flops: float
    gain: float

    @property
    def text(self) -> str:
        """Description of the point."""
        bounds = f" [{self.interval[0]:g}, {self.interval[1]:g}]" if self.interval else ""
        return f"{self.name}: {self.score:g}{bounds}, floor {self.floor:g}, {short(self.flops)} FLOPs"


@dataclass(frozen=True)
class Axis:
    """Linear axis.

    Attributes:
        low: Value at 0 %.
        high: Value at 100 %.
    """

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the position of a value in percent."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def ticks(self) -> list[float]:
        """Return about `TICKS` round values with steps of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


def axis_of(values: Iterable[float]) -> Axis:
    """Return an axis that contains all values except NaN, with a margin."""
    known = [value for value in values if not math.isnan(value)]
    low, high = min(known), max(known)
    margin = MARGIN * ((high - low) or abs(high) or 1)
    return Axis(low - margin, high + margin)


def points_of(collection: Collection, task: str, choice: Choice = EVERYTHING) -> list[Point]:
    """Return the scored results of a task by place, followed by the best of every other condition."""
    ranked = [_point(one) for one in table.board(collection, task, choice)]
    others = [_point(one, reference=True) for one in table.references(collection, task, choice)]
    return [point for point in ranked + others if not math.isnan(point.score)]


def _point(one: Standing, *, reference: bool = False) -> Point:
    result = one.entry.result
    score, cost = result.score, result.cost

    def shown(value: float) -> float:
        return math.nan if math.isnan(value) else float(tables.number(value, result))

    flops = math.nan if cost is None or cost.flops is None or not cost.flops > 0 else cost.flops
    name = f"{shorten(str(result.model['name']), NAME_LENGTH)}, {result.label}"
    return Point(
        f"{name} ({one.condition})" if reference else name,
        "other" if reference else "baseline" if is_baseline(result) else "model",
        table.REFERENCE if reference else one.text or "–",
        shown(score.value),
        () if math.isnan(score.low) else (shown(score.low), shown(score.high)),
        shown(result.floor.value),
        flops,
        score.value if result.higher_is_better else -score.value,
    )


def front(points: Sequence[Point]) -> list[Point]:
    """Return the Pareto front of scores against FLOPs, in ascending order of FLOPs."""
    on_it = pareto_front(np.array([one.flops for one in points]), np.array([one.gain for one in points]))
    return sorted(compress(points, on_it), key=lambda one: one.flops)


def intervals(points: Sequence[Point], title: str) -> str:
    """Return a chart of scores with intervals and floors as HTML, one row per result."""
    if not points:
        return ""
    axis = _score_axis(points)
    rows = [
        f'<div class="cb-row"><div class="cb-name"><span>{escape(one.place)}</span> {escape(one.name)}</div>'
        f'<div class="cb-track" title="{escape(one.text)}">{_across(one, axis)}</div></div>'
        for one in points
    ]
    ticks = "".join(f'<span style="left:{axis.at(tick)}%">{tick:g}</span>' for tick in axis.ticks())
    rows.append(f'<div class="cb-row cb-axis"><div class="cb-name"></div><div class="cb-track">{ticks}</div></div>')
    return _figure("".join(rows), points, f"{title}; line: 95 % interval")


def _across(one: Point, axis: Axis) -> str:
    parts = []
    if not math.isnan(one.floor):
        parts.append(f'<i class="cb-floor" style="left:{axis.at(one.floor)}%"></i>')
    if one.interval:
        low, high = map(axis.at, one.interval)
        parts.append(f'<i class="cb-line cb-{one.kind}" style="left:{low}%;width:{high - low:.2f}%"></i>')
    parts.append(f'<b class="cb-dot cb-{one.kind}" style="left:{axis.at(one.score)}%"></b>')
    return "".join(parts)


def against_flops(points: Sequence[Point], title: str) -> str:
    """Return a chart of scores against FLOPs as HTML, with a line through the best score up to each cost."""
    known = [one for one in points if not math.isnan(one.flops)]
    if not known:
        return "<p>No model in this table has known FLOPs.</p>"
    up, across = _score_axis(known), axis_of(math.log10(one.flops) for one in known)
    best = front(known)
    parts = [
        f'<i class="cb-level" style="bottom:{up.at(floor)}%"></i>'
        for floor in {one.floor for one in known}
        if floor == floor
    ]
    parts += [f'<span class="cb-up" style="bottom:{up.at(tick)}%">{tick:g}</span>' for tick in up.ticks()]
    powers = range(math.ceil(across.low), math.floor(across.high) + 1)
    parts += [
        f'<span class="cb-right" style="left:{across.at(power)}%">{short(10.0**power)}</span>' for power in powers
    ]
    steps = _steps([(across.at(math.log10(one.flops)), 100 - up.at(one.score)) for one in best])
    parts.append(
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true"><polyline points="{steps}"/></svg>'
    )
    for one in known:
        left, bottom = across.at(math.log10(one.flops)), up.at(one.score)
        if one.interval:
            low, high = map(up.at, one.interval)
            parts.append(
                f'<i class="cb-up-line cb-{one.kind}" style="left:{left}%;bottom:{low}%;height:{high - low:.2f}%"></i>'
            )
        parts.append(
            f'<b class="cb-dot cb-{one.kind}" style="left:{left}%;bottom:{bottom}%" title="{escape(one.text)}"></b>'
        )
        if one in best:
            side = "cb-before" if left > 50 else "cb-after"
            parts.append(
                f'<span class="cb-label {side}" style="left:{left}%;bottom:{bottom}%">{escape(one.name)}</span>'
            )
    absent = len(points) - len(known)
    note = f"; {absent} without known FLOPs left out" if absent else ""
    plot = f'<div class="cb-plot">{"".join(parts)}</div>'
    return _figure(plot, known, f"{title}, against FLOPs per recording; steps: best score up to that cost{note}")


def _steps(corners: Sequence[tuple[float, float]]) -> str:
    places = []
    for number, (x, y) in enumerate(corners):
        if number:
            places.append(f"{x},{corners[number - 1][1]:.2f}")
        places.append(f"{x},{y:.2f}")
    return " ".join([*places, f"100,{corners[-1][1]:.2f}"])


def _score_axis(points: Sequence[Point]) -> Axis:
    return axis_of(value for one in points for value in (one.score, *one.interval, one.floor))


def _figure(content: str, points: Sequence[Point], caption: str) -> str:
    kinds = {one.kind for one in points}
    legend = "".join(
        f'<span><b class="cb-key cb-{kind}"></b>{name}</span>' for kind, name in KINDS.items() if kind in kinds
    )
    legend += '<span><i class="cb-key cb-floor-key"></i>floor</span>'
    return f'<figure class="cb-chart"><figcaption>{escape(caption)}</figcaption><p class="cb-legend">{legend}</p>{content}</figure>'


def score_title(collection: Collection, task: str) -> str:
    """Return the name of the ranking metric with its unit and direction."""
    result = next(entry.result for entry in collection.entries if entry.result.task == task)
    return tables.metric_name(result)
