"""Test pairs of models: equivalence, and the effect of the correction for a family."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.scoring.families import Family
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranks import compare_all, enough_resamples
from cardiobench.stats.holm import holm

from .factories import VALUE, references, test_rows


def models(**errors):
    """Return predictions with the given mean absolute error; names are sorted as given."""
    table = references(VALUE, n_test=120)
    truth = test_rows(table)
    rng = np.random.default_rng(0)
    return {
        name: Predictions.join(
            table, truth[["id"]].assign(y_pred=truth["y_true"] + size * rng.choice([-1, 1], len(truth))), VALUE
        )
        for name, size in errors.items()
    }


def test_scores_and_differences_equal_errors():
    pairs = compare_all({("toy/ef", "probe"): models(a=3.0, b=5.0, c=9.0)})
    assert {(pair.a, pair.b): round(pair.comparison.difference, 9) for pair in pairs} == {
        ("a", "b"): -2.0,
        ("a", "c"): -6.0,
        ("b", "c"): -4.0,
    }


def test_same_model_twice_is_equivalent_to_itself():
    given = models(a=3.0)
    (pair,) = compare_all({("toy/ef", "knn"): {"a": given["a"], "copy": given["a"]}})
    assert pair.better == "equivalent" and pair.adjusted == 1.0


def test_enough_resamples_for_a_family():
    """With 1000 resamples, the smallest p-value is 0.002, which 30 members would raise to 0.06."""
    assert 30 * 2 / 1001 > 0.05 > 30 * 2 / (enough_resamples(30) + 1)


def test_correction_depends_on_the_family_and_the_pairs_of_the_task():
    """Check that other tasks do not change the correction; with Holm's rule over them, y and z would lower the factor of x to 1."""
    table = references(VALUE, n_test=120)
    truth, rng = test_rows(table), np.random.default_rng(0)
    close = {
        name: Predictions.join(
            table, truth[["id"]].assign(y_pred=truth["y_true"] + size * rng.normal(size=len(truth))), VALUE
        )
        for name, size in (("a", 3.0), ("b", 4.0))
    }
    family = Family("suite", ("x", "y", "z"))
    of = {"family": lambda contest: family if contest[0] in family.tasks else None}
    (alone,) = compare_all({("x", "probe"): close}, **of)
    p = alone.comparison.p_value
    assert 0 < 3 * p < 0.5 and alone.adjusted == pytest.approx(3 * p), "y and z were not run"
    other = {(name, "probe"): models(a=1.0, b=50.0) for name in ("y", "z", "exploratory")}
    more = compare_all({("x", "probe"): close | models(c=4.0), **other}, **of)
    assert all(pair.comparison.p_value < p for pair in more if pair.contest[0] != "x")
    pairs = {(pair.a, pair.b): pair for pair in more if pair.contest[0] == "x"}
    same, others = pairs["a", "b"], [pairs["a", "c"].comparison.p_value, pairs["b", "c"].comparison.p_value]
    assert replace(same.comparison, p_adjusted=0.0) == replace(alone.comparison, p_adjusted=0.0) and same.together == 3
    assert same.adjusted == pytest.approx(min(1, 3 * holm([p, *others])[0]))
    fewer = compare_all({("x", "probe"): close, **other}, **of)
    assert next(pair for pair in fewer if pair.contest[0] == "x") == alone
    assert all(pair.adjusted == pair.comparison.p_value for pair in more if not pair.family)
