"""Test boards: one per condition, best first, with places as intervals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cardiobench.leaderboard import table
from cardiobench.leaderboard.boards import condition_of, conditions, row_standings
from cardiobench.leaderboard.choice import Choice
from cardiobench.leaderboard.state import replaced, settle
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.cost import Cost
from cardiobench.results.score_result import EXTERNAL
from cardiobench.scoring.unpaired import decide_unpaired
from tests.hub.results import consistent

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
