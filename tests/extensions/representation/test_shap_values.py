"""Compare SHAP values of every classifier with the `shap` package and with their definition."""

import numpy as np
import pytest

from cardiobench.extensions.representation.shap_values import importance, shap_values
from cardiobench.protocols.grid_search.classifiers import CLASSIFIERS, classifier

POINTS = {
    "xgboost": {"max_depth": 4, "n_estimators": 40},
    "tree": {"max_depth": 5, "min_samples_leaf": 3},
    "forest": {"max_depth": 4, "n_estimators": 20},
    "logistic": {"C": 0.1},
    "mlp": {"alpha": 0.1, "learning_rate": 1e-2},
}


@pytest.fixture(scope="module")
def shap():
    return pytest.importorskip("shap")


def data(n=240, d=30, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)).astype(np.float32).astype(float) * 2 + 1
    score = features[:, 0] - features[:, 1] + 0.5 * features[:, 2] * features[:, 3]
    return features, (score > np.median(score)).astype(int)


def fitted(name, **shape):
    features, labels = data(**shape)
    return classifier(name).fit(features, labels, POINTS[name], 0), features, labels


def test_boosted_trees_equal_shaps_tree_explainer(shap):
    model, features, _ = fitted("xgboost")
    expected = shap.TreeExplainer(model.booster).shap_values(features)
    found = shap_values(model, features, features)
    assert found.shape == (240, 30, 1)
    assert np.array_equal(found[:, :, 0], expected.astype(np.float64))


def test_logistic_regression_equals_shaps_linear_explainer(shap):
    model, features, _ = fitted("logistic")
    background = features[:150]
    masker = shap.maskers.Independent(background, max_samples=len(background))
    intercept = float(np.log(np.divide(*model.predict_proba(np.zeros((1, 30)))[0][::-1])))
    explainer = shap.LinearExplainer((model.coefficients[0], intercept), masker)
    found = shap_values(model, features[:20], background)[:, :, 0]
    assert found == pytest.approx(explainer.shap_values(features[:20]), abs=1e-12)


@pytest.mark.parametrize("name", ["tree", "forest"])
def test_trees_add_up_to_the_probability(name):
    model, features, _ = fitted(name)
    found = shap_values(model, features[:30], features)
    expected = model.predict_proba(features)[:30, 1]
    # The remainder is the same number for all records: the mean output over the training data of the trees.
    rest = expected - found[:, :, 0].sum(axis=1)
    assert found.shape == (30, 30, 1) and np.ptp(rest) < 1e-6


@pytest.mark.slow
def test_network_agrees_with_permutation_explainer(shap):
    model, features, _ = fitted("mlp", n=300, d=120)
    background = features[:100]
    masker = shap.maskers.Independent(background, max_samples=100)
    weights, biases = model.model.coefs_, model.model.intercepts_

    def logits(rows):
        hidden = np.maximum(model.standardise(rows) @ weights[0] + biases[0], 0)
        return (hidden @ weights[1] + biases[1])[:, 0]

    permuted = shap.explainers.Permutation(logits, masker, seed=0)
    truth = permuted(features[:3], max_evals=4 * (2 * 120 + 1)).values
    found = shap_values(model, features[:3], background)[:, :, 0]
    for row in range(3):
        assert np.corrcoef(truth[row], found[row])[0, 1] >= 0.99
    # SHAP values explain the distance of the logit from its mean over the background.
    away = logits(features[:3]) - logits(background).mean()
    assert found.sum(axis=1) == pytest.approx(away, rel=1e-2, abs=1e-2)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_no_classifier_uses_kernel_shap(shap, name, monkeypatch):
    def refuse(*_, **__):
        pytest.fail("KernelExplainer keeps ten features by default: its top 50 is noise")

    monkeypatch.setattr(shap, "KernelExplainer", refuse)
    monkeypatch.setattr(shap.explainers, "Kernel", refuse, raising=False)
    model, features, _ = fitted(name, n=120, d=110)
    found = importance(model, features[:10], features)
    assert found.shape == (10, 110) and (found >= 0).all()
    # The two features that determine the labels are among the first.
    assert {0, 1} <= set(np.argsort(-found.mean(axis=0))[:12])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_three_classes_have_an_output_each(name):
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1, 2], 30)
    features = rng.normal(size=(90, 5)) + 3 * np.eye(5)[labels]
    model = classifier(name).fit(features, labels, POINTS[name], 0)
    assert shap_values(model, features[:7], features).shape == (7, 5, 3)
    assert importance(model, features[:7], features).shape == (7, 5)


def test_unused_features_of_trees_have_no_share():
    features, labels = data(n=60, d=1100)
    model = classifier("xgboost").fit(features, labels, POINTS["xgboost"], 0)
    found = importance(model, features[:5], features)
    left_out = np.setdiff1d(np.arange(1100), model.selected)
    assert len(left_out) == 76 and not found[:, left_out].any()


def test_unsupported_classifiers_are_refused():
    with pytest.raises(TypeError, match="no SHAP values for a dict"):
        shap_values({}, np.zeros((1, 1)), np.zeros((1, 1)))
