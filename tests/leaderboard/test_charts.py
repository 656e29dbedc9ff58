"""Test chart positions against hand-worked values, the Pareto front and escaping of names."""

import math
import re
from dataclasses import replace

import pytest

from cardiobench.leaderboard import charts
from cardiobench.leaderboard.choice import Choice
from cardiobench.leaderboard.state import settle
from cardiobench.leaderboard.visitors import TABS, outputs
from cardiobench.results.score_result import EXTERNAL
from tests.leaderboard.test_boards import COST, TASK, collected, entry


def point(score, flops, name="m", **changes):
    fields = dict(kind="model", place="1", interval=(score - 5, score + 5), floor=50.0, flops=flops, gain=score)
    return charts.Point(name, score=score, **{**fields, **changes})


def test_axis_has_a_margin_and_round_ticks():
    axis = charts.axis_of([50.0, 100.0, math.nan])
    assert (axis.low, axis.high) == (48.0, 102.0) and axis.at(75) == 50 and axis.ticks() == [60.0, 80.0, 100.0]
    assert charts.axis_of([3.0]).at(3.0) == 50, "a single value is in the middle"


def test_front_has_the_best_score_up_to_each_cost():
    found = [point(60, 1e6), point(70, 1e8), point(65, 1e9), point(80, 1e9), point(90, math.nan)]
    assert [one.score for one in charts.front(found)] == [60, 70, 80]
    lower = [replace(one, gain=-one.score) for one in found]
    assert [one.score for one in charts.front(lower)] == [60], "for an error, the lowest is best"


def test_intervals_floors_and_scores_have_positions():
    html = charts.intervals([point(75.0, 1e6, interval=(50.0, 100.0))], "f1")
    assert re.findall(r"left:([\d.]+)%", html)[:3] == ["3.7", "3.7", "50.0"], "floor, interval and score"
    assert "width:92.60%" in html


def test_points_show_board_and_best_of_other_conditions():
    scratch = entry("org/net", 0.95, protocol=EXTERNAL, variant="from_scratch")
    view = collected(entry("a/a", 0.8, cost=COST), entry("cardiobench/constant", 0.5), scratch)
    found = charts.points_of(view, TASK, Choice(condition="frozen"))
    assert [(one.kind, one.score) for one in found] == [("model", 80.0), ("baseline", 50.0), ("other", 95.0)]
    html = charts.against_flops(found, "f1")
    assert "2 without known FLOPs left out" in html and html.count('class="cb-dot') == 1
    assert "known" in charts.against_flops(found[1:], "f1")


def test_hostile_names_are_escaped():
    hostile = point(70, 1e6, name='<img src=x onerror="window.hacked=1">')
    for html in (charts.intervals([hostile], "<b>"), charts.against_flops([hostile], "<b>")):
        assert "<img" not in html and "&lt;img" in html and 'title="&lt;img' in html


@pytest.mark.parametrize("tab", TABS)
def test_only_the_visible_tab_is_computed(tab):
    view = collected(entry("a/a", 0.8))
    state, _ = settle({"": view}, {})
    assert tuple(outputs(view, state, tab)) == TABS[tab]
    empty, _ = settle({"": collected()}, {})
    assert tuple(outputs(collected(), empty, tab)) == TABS[tab], "also without results"
