"""Compare metrics with scikit-learn, scipy and hand-worked values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from cardiobench.metrics.load import load_metric

MAE, F1, ARI = (load_metric(name).compute for name in ("mae", "f1_macro", "ari"))


def labels(kind: str, seed: int = 0):
    """Yield references and predictions that are typical sources of errors in formulas."""
    rng = np.random.default_rng(seed)
    n = {"tiny": 2, "large": 20_000}.get(kind, 60)
    truth = rng.integers(0, 4, n)
    guess = np.where(rng.random(n) < 0.5, truth, rng.integers(0, 5, n))
    if kind == "one class":
        truth = np.zeros(n, dtype=int)
    if kind == "constant":
        guess = np.ones(n, dtype=int)
    if kind == "unseen":
        guess = guess + 10
    return truth, guess


KINDS = ["ordinary", "one class", "constant", "unseen", "tiny", "large"]


@pytest.mark.parametrize("kind", ["ordinary", "tied", "constant", "tiny", "large", "huge values"])
def test_mae_against_scikit_learn(kind):
    rng = np.random.default_rng(1)
    n = {"tiny": 1, "large": 200_000}.get(kind, 50)
    truth = rng.normal(55, 10, n) * (1e12 if kind == "huge values" else 1)
    truth = np.round(truth, -1) if kind == "tied" else truth
    guess = np.full(n, 50.0) if kind == "constant" else truth + rng.normal(0, 5, n)
    assert MAE(truth, guess)["mae"] == pytest.approx(sk.mean_absolute_error(truth, guess), rel=1e-12)


def test_mae_by_hand():
    assert MAE([55, 62, 38], [50, 64, 38.5]) == {"mae": 2.5}


@pytest.mark.parametrize("kind", KINDS)
def test_f1_macro_against_scikit_learn(kind):
    truth, guess = labels(kind)
    expected = sk.f1_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0)
    assert F1(truth, guess)["f1_macro"] == pytest.approx(expected, abs=1e-12)
    names = np.array(["A2C", "A3C", "A4C", "PLAX", "PSAX", *"fghijklmnop"])
    assert F1(names[truth].tolist(), names[guess].tolist())["f1_macro"] == pytest.approx(expected, abs=1e-12)


def test_f1_macro_by_hand():
    # Class 0: 2 TP, 1 FP, 1 FN gives 4/6; class 1: 1 TP, 0 FP, 2 FN gives 2/4; class 2 is predicted once and never true.
    assert F1([0, 0, 0, 1, 1, 1], [0, 0, 2, 0, 1, 2])["f1_macro"] == pytest.approx((4 / 6 + 2 / 4) / 2)


@pytest.mark.parametrize(("neg", "pos", "percent"), [(25, 94, 44.13), (31, 75, 41.44), (24, 26, 34.21)])
def test_f1_macro_of_published_constants(neg, pos, percent):
    assert round(100 * F1([0] * neg + [1] * pos, [1] * (neg + pos))["f1_macro"], 2) == percent


def test_text_and_numbers_are_not_the_same_class():
    with pytest.raises(ValueError, match="differently"):
        F1([0, 1], ["0", "1"])
    with pytest.raises(ValueError, match="1 of 2 references are not labels"):
        F1(["a", np.nan], ["a", "a"])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "tiny"])
def test_ari_against_scikit_learn(kind):
    truth, guess = labels(kind)
    assert ARI(truth, guess)["ari"] == pytest.approx(sk.adjusted_rand_score(truth, guess), abs=1e-12)


@pytest.mark.parametrize(
    ("truth", "clusters"),
    [([0, 0, 0], [1, 1, 1]), ([0, 1, 2], [2, 0, 1]), ([0, 0, 0], [0, 1, 2]), ([0, 0, 1, 1], [0, 1, 0, 1])],
)
def test_ari_of_trivial_partitions(truth, clusters):
    assert ARI(truth, clusters)["ari"] == pytest.approx(sk.adjusted_rand_score(truth, clusters))


def test_ari_is_exact_for_many_pairs():
    one = np.zeros(200_001, dtype=int)
    assert ARI(one, one) == {"ari": 1.0}
    assert np.isnan(ARI([1], [1])["ari"])


def test_ari_finds_clusters_in_embeddings():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 150)
    apart = rng.normal(size=(150, 8)) + 12 * np.eye(8)[truth]
    apart[:, 7] = 4.0  # A dimension without spread.
    assert ARI(truth, apart) == {"ari": 1.0}
    assert ARI(truth, apart * 1e6 + 3)["ari"] == 1.0  # After z-scoring, the scale does not matter.
    assert abs(ARI(truth, rng.normal(size=(150, 8)))["ari"]) < 0.1
    assert ARI(truth, apart, components=2)["ari"] < 1
    with pytest.raises(ValueError, match="1 of 1200 embedding values are not finite"):
        ARI(truth, np.where(np.arange(1200).reshape(150, 8) == 77, np.nan, apart))
    with pytest.raises(ValueError, match="151 components for 150 embeddings"):
        ARI(truth, apart, components=151)


numbers = st.one_of(st.floats(), st.integers(-5, 5), st.just(-(10**400)), st.none(), st.text(max_size=2), st.booleans())


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    references=st.lists(numbers, max_size=6),
    predictions=st.lists(numbers, max_size=6),
    name=st.sampled_from(["mae", "f1_macro", "ari"]),
)
def test_any_lists_are_scored_or_refused(references, predictions, name):
    """Check for a number for each row or a ValueError, never another error or a NaN for a valid row."""
    try:
        value = load_metric(name).compute(references, predictions)[name]
    except ValueError as error:
        assert str(error)
    else:
        assert len(references) == len(predictions) > 0
        assert np.isfinite(value) or (name == "ari" and len(references) == 1) or (name == "mae" and value == np.inf)
