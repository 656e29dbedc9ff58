"""Test decisions between models: groups, tables of tasks, and that an additional model changes no other comparison."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiobench.scoring.pairs import decide_pairs, group_letters, table_tasks
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranking import rank_models
from cardiobench.scoring.ranks import compare_all
from cardiobench.stats.paired import MeanDifferences

from .factories import VALUE, references, test_rows

TASKS = ("x/a", "x/b", "y/a", "z/a")
MODELS = "abcde"


def differences(gaps, errors, freedom=50.0):
    gaps = np.asarray(gaps, dtype=float)
    scores = np.subtract.outer(gaps, gaps)
    return MeanDifferences(
        scores, np.full(scores.shape, errors), np.full(scores.shape, freedom), np.zeros(scores.shape, dtype=bool)
    )


@given(st.integers(1, 7), st.data())
@settings(max_examples=60, deadline=None)
def test_letters_are_the_maximal_groups(count, data):
    """Compare with all sets of models no two of which can be told apart."""
    apart = np.zeros((count, count), dtype=bool)
    for pair in combinations(range(count), 2):
        apart[pair] = apart[pair[::-1]] = data.draw(st.booleans())
    letters = group_letters(apart)
    sets = [frozenset(some) for size in range(1, count + 1) for some in combinations(range(count), size)]
    alike = [one for one in sets if not any(apart[pair] for pair in combinations(sorted(one), 2))]
    groups = {frozenset(m for m in range(count) if letter in letters[m]) for letter in set("".join(letters))}
    assert groups == {one for one in alike if not any(one < other for other in alike)}


def test_overlapping_groups_share_a_model():
    """Check that the middle of three models is in both groups: it cannot be told from either of the others."""
    found = decide_pairs(["low", "mid", "high"], np.zeros(3), [differences([0.0, 0.05, 0.1], 0.026)], [True])
    assert {one.model: (one.text, one.letters) for one in found.places} == {
        "high": ("1–2", "a"), "mid": ("1–3", "ab"), "low": ("2–3", "b"),
    }  # fmt: skip
    assert found.best == ["high", "mid"]
    assert found.sentence("low", "high").startswith("high is better than low (all 3 pairs")
    assert "cannot be told apart" in found.sentence("mid", "low")


def test_metrics_are_corrected_together_and_opposite_results_are_no_decision():
    up, down = differences([0.0, 0.1], 0.02), differences([5.0, 1.0], 1.0)
    both = decide_pairs(["a", "b"], np.zeros(2), [up, down], [True, False])
    assert both.best == ["b"] and both.pairs == 2
    assert both.p_values[:, 0, 1].max() == pytest.approx(down.p_values()[0, 1])
    against = decide_pairs(["a", "b"], np.zeros(2), [up, down], [True, True])
    assert against.best == ["a", "b"], "better by one metric and worse by the other"


def test_answers_without_refits_are_called_answers():
    found = replace_answers(differences([0.0, 0.1], 0.02))
    standings = decide_pairs(["a", "b"], np.zeros(2), [found], [True])
    text = standings.sentence("a", "b")
    assert standings.placed_by_answers() == ["b", "a"]
    equal = replace_answers(differences([0.0, 0.0], 0.02))
    assert decide_pairs(["a", "b"], np.zeros(2), [equal], [True]).placed_by_answers() == []
    assert text.startswith("the answers of b and of a differ") and "is better" not in text


def replace_answers(found):
    return found._replace(answers_only=np.ones(found.se.shape, dtype=bool))


@pytest.mark.parametrize("count", [0, 1])
def test_models_without_a_score_have_no_pair(count):
    found = decide_pairs(list("ab")[:count], np.full(count, np.nan), [differences(np.zeros(count), 0.1)], [True])
    assert [one.text for one in found.places] == ["1"] * count and found.pairs == 0
    unknown = decide_pairs(["a", "b"], np.full(2, np.nan), [differences([np.nan, np.nan], np.nan)], [True])
    assert [one.text for one in unknown.places] == ["1–2", "1–2"] and unknown.pairs == 0


def test_tables_of_a_folder():
    every, one = frozenset("klmnopqrstuvwx"), frozenset("k")
    complete = {name: every for name in "abcd"}
    assert table_tasks(complete) == [tuple(sorted(every))]
    assert table_tasks(complete | {"e": one}) == [tuple(sorted(every)), ("k",)]
    nearly = every - {"k"}
    assert table_tasks(complete | {"e": nearly}) == [tuple(sorted(every))], "13 of 14 tasks are enough for a place"
    assert table_tasks({"a": frozenset("klm"), "b": frozenset("kln")}) == [("k", "l")]
    assert table_tasks({"a": frozenset("k"), "b": frozenset("l")}) == []
    assert table_tasks(complete, [every | {"y", "z"}]) == [tuple(sorted(every | {"y", "z"})), tuple(sorted(every))]
    assert table_tasks({"a": every}) == []


@cache
def answers(model, task):
    table = references(VALUE, n_test=24)
    truth, rng = test_rows(table), np.random.default_rng([MODELS.index(model), TASKS.index(task)])
    size = 2.0 + 2.0 * MODELS.index(model)
    made = truth[["id"]].assign(y_pred=truth["y_true"] + size * rng.normal(size=len(truth)))
    return Predictions.join(table, made, replace(VALUE, name=task), source=model)


def folder(answered):
    return {
        (task, "probe"): {model: answers(model, task) for model, tasks in answered.items() if task in tasks}
        for task in TASKS
    }


def statements(rankings, names):
    """Return {tasks: {pair: (difference, se, freedom, p before correction, decision, corrected together)}}."""
    found = {}
    for one in rankings:
        p = one.differences.p_values()
        for pair in combinations([name for name in one.names if name in names], 2):
            at = tuple(map(one.names.index, pair))
            numbers = tuple(float(values[at]) for values in (*one.differences[:3], p))
            decided = bool(one.standings.better[at]), bool(one.standings.better[at[::-1]])
            found.setdefault(pair, {})[one.tasks] = (numbers, decided, one.standings.pairs)
    return found


@given(st.lists(st.sets(st.sampled_from(TASKS), min_size=1), min_size=2, max_size=4), st.sets(st.sampled_from(TASKS)))
@settings(max_examples=25, deadline=None)
def test_another_model_changes_other_comparisons_by_the_correction_only(sets, of_new):
    """Add a model with fewer, equal or more tasks; each pair keeps its difference, and its decision unless more pairs are corrected."""
    answered = dict(zip(MODELS, sets, strict=False))
    before, after = (
        statements(rank_models(folder(one)), answered) for one in (answered, answered | {MODELS[4]: of_new})
    )
    assert before.keys() == {pair for pair in combinations(answered, 2) if answered[pair[0]] & answered[pair[1]]}
    for pair, tables in before.items():
        for numbers, decided, pairs in tables.values():
            # The tasks that both answered decide, whatever the table.
            same = [found for found in after[pair].values() if found[0] == pytest.approx(numbers, nan_ok=True)]
            assert same
            assert any(found[1] == decided or (found[2] != pairs and not any(found[1])) for found in same)
    pairs = {(one.contest, one.a, one.b): one for one in compare_all(folder(answered), resamples=10)}
    more = {
        (one.contest, one.a, one.b): one for one in compare_all(folder(answered | {MODELS[4]: of_new}), resamples=10)
    }
    for key, pair in pairs.items():
        assert replace(more[key].comparison, p_adjusted=0.0) == replace(pair.comparison, p_adjusted=0.0)
        assert more[key].better == pair.better or more[key].together > pair.together


def test_model_beside_itself_and_older_copy():
    """Check that equal answers are not told apart, and that a copy does not change the comparison with another model."""
    one, other = answers("a", "x/a"), answers("e", "x/a")
    (ranking,) = rank_models({("x/a", "probe"): {"a": one, "copy": one, "e": other}})
    assert {place.model: place.text for place in ranking.places} == {"a": "1–2", "copy": "1–2", "e": "3"}
    (alone,) = rank_models({("x/a", "probe"): {"a": one, "e": other}})
    assert alone.error("a", "e") == ranking.error("a", "e")
    assert rank_models({("x/a", "probe"): {"a": one}}) == []
