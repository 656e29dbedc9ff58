"""Test boards: one per condition, best first, with places as intervals."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy

from cardiobench.leaderboard import heat, table
from cardiobench.leaderboard.boards import condition_of, conditions, row_standings
from cardiobench.leaderboard.choice import Choice
from cardiobench.leaderboard.state import replaced, settle
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.cost import Cost
from cardiobench.results.score_result import EXTERNAL
from cardiobench.scoring.pairs import Place
from cardiobench.scoring.unpaired import decide_unpaired, mean_scores, standard_error
from tests.hub.results import consistent, regression

COST = Cost(768, 3072.0, "fp32", 20_000_000, 4e9)
TASK, OTHER = "tmed2/as", "tmed2/view"


def entry(model, value, task=TASK, se=0.01, **more):
    result = consistent(task=task, value=value, model={"name": model, "revision": "r1"}, **more)
    estimate = replace(result.score, se=se, n_patients=100)
    return ResultEntry(Path(model), replace(result, overall={**result.overall, result.metric: estimate}))


def collected(*entries):
    return Collection(tuple(entries))


def test_indistinguishable_models_share_places():
    """Check that differences of 0.01 (standard error 0.014) are noise, and those of 0.2 are not."""
    found = table.scores(collected(entry("b/b", 0.8), entry("c/c", 0.6), entry("a/a", 0.79)), TASK)
    assert found.texts("place") == ["1–2", "1–2", "3"]
    assert found.texts("model") == ["a/a", "b/b", "c/c"]


def test_overview_counts_tasks_that_distinguish_two_rows():
    """Check that x beats y on one task and ties on the other; z is worse than both on its only task."""
    entries = [
        entry("y/y", 0.6), entry("y/y", 0.71, OTHER), entry("x/x", 0.8), entry("x/x", 0.7, OTHER), entry("z/z", 0.3)
    ]  # fmt: skip
    kinds = table.kinds(collected(*entries))
    _, rows = row_standings([replace(one, result=one.result) for one in entries], kinds[0])
    assert [(one.row.model, one.place.text) for one in rows] == [("x/x", "1"), ("y/y", "2"), ("z/z", "3")]
    tied = [one for one in entries if one.result.task == OTHER]
    _, rows = row_standings(tied, table.kinds(collected(*tied))[0])
    assert [(one.row.model, one.place.text) for one in rows] == [("x/x", "1–2"), ("y/y", "1–2")]


@pytest.mark.parametrize("tasks", [(TASK,), (TASK, OTHER), (TASK, OTHER, "hmc_qu/view")], ids=len)
def test_another_model_changes_other_pairs_by_the_correction_only(tasks):
    """Add a model with fewer, equal or more tasks than two others."""
    rng = np.random.default_rng(len(tasks))
    names = ["a/a", "b/b", "c/c"]
    for gap in (0.0, 0.04, 0.05, 0.3):
        values = {name: 0.6 + gap * place + 0.01 * rng.normal() for place, name in enumerate(names[:2])}
        rows = [{task: entry(name, values[name], task).result for task in (TASK, OTHER)} for name in names[:2]]
        new = {task: entry("c/c", float(rng.uniform(0.3, 0.9)), task).result for task in tasks}
        before, after = decide_unpaired(names[:2], rows), decide_unpaired(names, [*rows, new])
        kept = after.differences[0]
        for field in ("difference", "se", "freedom", "answers_only"):
            was, now = (getattr(one, field)[0, 1] for one in (before.differences[0], kept))
            assert was == pytest.approx(now, nan_ok=True)
        assert before.pairs == 1 < after.pairs == 3
        p_value = before.p_values[0, 0, 1]
        assert p_value <= after.p_values[0, 0, 1] <= min(1, 3 * p_value)
        assert before.sentence("a/a", "b/b").partition(" (")[0] == after.sentence("a/a", "b/b").partition(" (")[0] or (
            p_value < 0.05 <= after.p_values[0, 0, 1]
        )
        assert "all 3 pairs corrected together" in after.sentence("a/a", "b/b")


def test_result_of_older_rules_beside_new_ones_has_no_place():
    old = entry("a/a", 0.9)
    old = replace(old, result=replace(old.result, rules=old.result.rules - 1))
    found = table.scores(collected(old, entry("b/b", 0.5), entry("c/c", 0.8)), TASK)
    assert dict(zip(found.texts("model"), found.texts("place"), strict=True)) == {"c/c": "1", "b/b": "2", "a/a": ""}


def test_other_conditions_are_references_and_not_ranked():
    scratch = entry("org/net", 0.95, protocol=EXTERNAL, variant="from_scratch")
    view = collected(entry("a/a", 0.8), entry("b/b", 0.5), scratch)
    assert (
        conditions(view) == ["frozen", condition_of(scratch)] == ["frozen", "predictions from elsewhere, from_scratch"]
    )
    found = table.scores(view, TASK, Choice(condition="frozen"))
    assert found.texts("place") == ["1", "2", table.REFERENCE] and "org/net" in found.texts("model")[2]
    (kind,) = table.kinds(view)
    overview = table.overview(view, kind, Choice(condition="frozen"))
    assert overview.texts("place") == ["1", "2", table.REFERENCE] and "from" in overview.texts(table.MODEL)[2]
    (only,) = table.scores(view, TASK, Choice(condition=condition_of(scratch))).texts("place")[:1]
    assert only == "1", "alone on its board"


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (Choice(), ["dinov3", "constant", "some"]),
        (Choice(licence="Apache-2.0"), ["constant"]),
        (Choice(licence="not stated"), ["some"]),
        (Choice(size="10 M to 100 M"), ["dinov3", "some"]),
        (Choice(unseen=True), ["dinov3", "constant"]),
        (Choice(modality="ecg"), []),
        (Choice("SOME"), ["some"]),
    ],
)
def test_filters_hide_rows_and_change_no_place(choice, left):
    view = collected(
        entry("facebook/dinov3-vitb16-pretrain-lvd1689m", 0.8), entry("cardiobench/constant", 0.6), entry("some/net", 0.4, seen_in_pretraining=True, cost=COST)
    )  # fmt: skip
    found = table.scores(view, TASK, choice)
    names = [next(name for name in ("dinov3", "constant", "some") if name in text) for text in found.texts("model")]
    assert names == left
    assert all(
        place == str(1 + ["dinov3", "constant", "some"].index(name))
        for place, name in zip(found.texts("place"), names, strict=True)
    )
    assert [text.endswith(table.BASELINE) for text in found.texts("model")] == [name == "constant" for name in names]


def test_invalid_state_is_replaced_by_the_first_valid_one():
    view = collected(entry("a/a", 0.8), entry("a/a", 0.7, OTHER))
    state, options = settle(
        {"": view}, {"board": "<script>", "task": OTHER, "above": "true", "size": "huge", "odd": "x"}
    )
    assert (state.board, state.task, state.above, state.size) == ("frozen", OTHER, True, "")
    assert [value for _, value in options["task"]] == [TASK, OTHER]


def test_link_to_a_model_of_another_suite_says_so():
    views = {"one_v1": collected(entry("a/a", 0.8)), "two_v1": collected(entry("b/b", 0.7))}
    for asked, sentences in (
        ({"suite": "one_v1", "model": "b/b"}, ["There is no model 'b/b' in the suite one_v1; a/a is shown."]),
        ({"suite": "two_v1", "model": "b/b", "tab": "models"}, []),
        (
            {"suite": "x" * 500, "task": TASK},
            [f"There is no suite {'x' * 200!r} in the suite one_v1; one_v1 is shown."],
        ),
    ):
        assert replaced(asked, settle(views, asked)[0]) == sentences


def test_mean_of_one_task_is_its_score_with_its_interval():
    """Check with the interval of a t distribution, which a result has, so that the mean of one task adds nothing."""
    one = entry("a/a", 0.8, se=0.001).result
    (mean,) = mean_scores([one])
    half = (one.score.high - one.score.low) / 2
    assert (mean.value, mean.tasks) == (one.score.value, 1)
    assert (mean.low, mean.high) == (pytest.approx(0.8 - half), pytest.approx(0.8 + half))


def test_standard_errors_of_a_mean_add_up_within_a_dataset_only():
    """Check by hand: two tasks of one dataset and one of another, with standard errors a, b and c over 100 patients."""
    rows = [entry("a/a", value, task).result for value, task in ((0.5, TASK), (0.6, OTHER), (0.7, "hmc_qu/view"))]
    a, b, c = map(standard_error, rows)
    variances = np.array([((a + b) / 3) ** 2, (c / 3) ** 2])
    freedom = variances.sum() ** 2 / (variances**2 / 99).sum()
    (mean,) = mean_scores(rows)
    half = scipy.stats.t.ppf(0.975, freedom) * np.sqrt(variances.sum())
    assert mean.value == pytest.approx(0.6) and mean.tasks == 3
    assert (mean.low, mean.high) == (pytest.approx(0.6 - half), pytest.approx(0.6 + half))


def test_mean_agrees_with_the_comparison_of_two_models():
    """Check that the difference has the sum of both squared standard errors, as the ranking uses."""
    rows = [
        {
            task: entry(name, value + 0.1 * number, task).result
            for number, task in enumerate((TASK, OTHER, "hmc_qu/view"))
        }
        for name, value in (("a/a", 0.5), ("b/b", 0.6))
    ]
    found = decide_unpaired(["a/a", "b/b"], rows)
    means = [mean_scores(row.values())[0] for row in rows]
    difference = found.differences[0]
    assert difference.difference[0, 1] == pytest.approx(means[0].value - means[1].value)
    # All patients are as many, so both have the same degrees of freedom.
    (part,) = {round(float(difference.freedom[0, 1]), 6)}
    ends = [(mean.high - mean.low) / 2 for mean in means]
    half = scipy.stats.t.ppf(0.975, part / 2) * difference.se[0, 1]
    assert np.hypot(*ends) == pytest.approx(half)


def test_means_of_different_metrics_are_apart_and_within_their_range():
    error = regression("camus/ef", value=0.5)
    error = replace(error, overall={"mae": replace(error.score, low=0.0, high=9.0, n_patients=100)})
    found = mean_scores([entry("a/a", 0.8).result, entry("a/a", 0.6, OTHER).result, error])
    assert [(mean.example.metric, mean.value, mean.tasks) for mean in found] == [
        ("f1_macro", pytest.approx(0.7), 2), ("mae", 0.5, 1)
    ]  # fmt: skip
    assert found[1].low == 0.0 < 4.5 < found[1].high, "an error is not negative"


def test_overview_has_place_model_mean_cost_date_and_answered_tasks_before_the_tasks():
    stemi = "hmc_qu/stemi"
    more = dict(cost=COST, stamp={"date": "2026-03-04T05:06:07"})
    view = collected(
        entry("a/a", 0.8, **more), entry("a/a", 0.6, stemi, **more), entry("b/b", 0.5), entry("b/b", 0.5, stemi),
        entry("c/c", 0.9),
    )  # fmt: skip
    found = table.overview(view, table.kinds(view)[0])
    names = [column.name for column in found.columns]
    assert names[:3] == ["place", table.MODEL, "mean f1_macro % ↑"]
    assert names[3:] == ["groups", "parameters", "FLOPs", "date", "tasks", stemi, TASK]
    assert found.texts("mean f1_macro % ↑")[0].startswith("70.00 [")
    assert found.values("mean f1_macro % ↑") == [70.0, 50.0, None]
    assert [found.texts(name)[0] for name in names[3:8]] == ["a", "20 M", "4 G", "2026-03-04", "2/2"]
    assert found.texts("tasks")[2] == "1/2, no place"
    assert found.values(TASK) == [80.0, 50.0, 90.0] and found.texts(TASK)[0].startswith("80.00 ▲ [")
    assert not any("%" in cell.text for row in found.rows for cell in row), "positions are in the heat map only"


def test_overview_shows_overlapping_groups_and_says_who_is_placed_by_answers():
    """Check that b cannot be told apart from a nor c, which differ, and that 12 groups are cut to six letters."""
    view = collected(entry("a/a", 0.8), entry("b/b", 0.74), entry("c/c", 0.68))
    (kind,) = table.kinds(view)
    found = table.overview(view, kind)
    assert (found.texts("place"), found.texts("groups")) == (["1–2", "1–3", "2–3"], ["a", "a b", "b"])
    assert found.note.startswith("a/a · probe, c/c · probe are placed by their answers, because refits on other")
    assert table.overview(collected(entry("a/a", 0.8), entry("b/b", 0.8)), kind).note == ""
    place = Place("a/a", 0.8, 1, 12, "bcdefghijklma2")
    assert table._groups(place).text == "b c d e f g +7" and table._groups(None).text == ""


def test_generated_recordings_have_a_mean_and_no_place():
    view = collected(*(entry("a/a", 0.8, task) for task in ("phantom_ecg/cd", "phantom_ecg/af")))
    view = collected(*(replace(one, result=replace(one.result, generated=True)) for one in view.entries))
    (kind,) = table.kinds(view)
    found = table.overview(view, kind)
    assert (found.texts("place"), found.values("mean f1_macro % ↑")) == ([""], [80.0])


def test_heat_map_has_the_positions_of_the_overview_and_escapes_names():
    view = collected(entry("<img src=x>/a", 0.8), entry("b/b", 0.5), entry("c/c", 0.4))
    (kind,) = table.kinds(view)
    html = heat.heat_map(view, kind)
    cells = re.findall(r"<td style=[^>]*>([^<]*)</td>", html)
    rows = table.scores(view, TASK)
    # The floor is 50 %, so 80 % is 60 % of the way to a perfect score, and 40 % is 20 % below the floor.
    assert cells == ["60", "0", "−20"] and rows.texts("floor to perfect") == ["+60 %", "0 %", "−20 %"]
    assert re.findall(r"<tr><td>([^<]*)</td>", html) == rows.texts("place")
    assert "<img" not in html and "&lt;img src=x&gt;/a · probe" in html
    assert heat.MEANING in html and "floor (0)" in heat.MEANING
    assert heat.heat_map(view, kind, Choice("nobody")) == ""


def test_counts_of_a_board_are_one_line():
    first, second = entry("a/a (run by x)", 0.8), entry("a/a (run by y)", 0.7)
    view = collected(
        replace(first, pushed_by="x", committed="2026-05-06T01:02:03"), replace(second, pushed_by="y"),
        entry("b/b", 0.5, OTHER),
    )  # fmt: skip
    assert table.counts(view) == "2 models · 2 tasks · 3 submissions · last update 2026-05-06"
    assert table.counts(collected()) == "0 models · 0 tasks · 0 submissions"
