"""Compare the five classifiers, which share work between the parameters of a grid, with separate library fits."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cardiobench.protocols.grid_search.classifiers import classifier, mlp
from cardiobench.protocols.grid_search.classifiers.feature_selection import select_features
from cardiobench.protocols.grid_search.grids import GRIDS, param_grid


@pytest.fixture(scope="module")
def data():
    features, labels = make_classification(
        n_samples=260, n_features=12, n_informative=6, class_sep=0.7, flip_y=0.1, random_state=0
    )
    order = np.random.default_rng(0).permutation(260)
    return features.astype(np.float32).astype(float), labels, (order[:180], order[180:])


def test_fewer_boosting_rounds_equal_a_prefix(data):
    xgboost = pytest.importorskip("xgboost")
    features, labels, (train, valid) = data
    grid = param_grid({"max_depth": (3, 6), "n_estimators": (10, 30)})
    found = classifier("xgboost").predict_proba_grid(features, labels, [(train, valid)], grid, 0)[0]
    for number, point in enumerate(grid):
        model = xgboost.XGBClassifier(
            **point, learning_rate=0.1, max_bin=64, tree_method="hist", n_jobs=1, random_state=0, base_score=None
        )
        expected = model.fit(features[train], labels[train]).predict_proba(features[valid])
        assert found[number] == pytest.approx(expected, abs=1e-6), point


def test_pruned_tree_equals_shallow_tree(data):
    features, labels, (train, valid) = data
    grid = param_grid(GRIDS["tree"])
    found = classifier("tree").predict_proba_grid(features, labels, [(train, valid)], grid, 0)[0]
    same = 0
    for number, point in enumerate(grid):
        model = DecisionTreeClassifier(**point, random_state=0).fit(features[train], labels[train])
        expected = model.predict_proba(features[valid])
        same += np.allclose(found[number], expected)
        # Elsewhere, equally good splits may be visited in another order.
        assert (found[number].argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.9
    assert same >= 14


@pytest.mark.slow
def test_fewer_trees_equal_a_forest_prefix(data):
    features, labels, (train, valid) = data
    grid = param_grid({"max_depth": (3, None), "n_estimators": (20, 60)})
    found = classifier("forest").predict_proba_grid(features, labels, [(train, valid)], grid, 0)[0]
    for number, point in enumerate(grid):
        model = RandomForestClassifier(**point, random_state=0).fit(features[train], labels[train])
        expected = model.predict_proba(features[valid])
        if point["max_depth"] is None:
            assert found[number] == pytest.approx(expected, abs=1e-12), point
        else:  # A forest grown to that depth with other random draws: equally good and similar.
            gap = roc_auc_score(labels[valid], found[number][:, 1]) - roc_auc_score(labels[valid], expected[:, 1])
            assert abs(gap) < 0.06
            assert np.corrcoef(found[number][:, 1], expected[:, 1])[0, 1] > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_equals_scikit_learn(classes):
    features, labels = make_classification(
        n_samples=150, n_features=10, n_informative=6, n_classes=classes, random_state=1
    )
    train, valid = np.arange(100), np.arange(100, 150)
    grid = param_grid({"C": (1e-2, 1.0)})
    found = classifier("logistic").predict_proba_grid(features, labels, [(train, valid)], grid, 0)[0]
    for number, point in enumerate(grid):
        model = make_pipeline(StandardScaler(), LogisticRegression(**point, tol=1e-10, max_iter=10_000))
        expected = model.fit(features[train], labels[train]).predict_proba(features[valid])
        assert found[number] == pytest.approx(expected, abs=5e-3), "precise enough to choose a penalty"
        final = classifier("logistic").predict_proba_grid(features, labels, [(train, valid)], [point], 0)[0][0]
        assert final == pytest.approx(expected, abs=5e-4)
    one = classifier("logistic").fit(features[train], labels[train], grid[1], 0)
    assert one.predict_proba(features[valid]) == pytest.approx(expected, abs=5e-4)
    # The coefficients are those of the logit in feature units.
    logit = features[valid] @ one.coefficients.T
    if classes == 2:
        expected = np.log(expected[:, 1] / expected[:, 0])
        assert np.ptp(logit[:, 0] - expected) < 0.02


def test_network_equals_a_scikit_learn_pipeline(data):
    """Compare float32 and float64 with the same initial weights and batches: after 20 epochs, they differ by rounding only."""
    features, labels, (train, valid) = data
    params = {"alpha": 1e-2, "learning_rate": 1e-3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(mlp.SETTINGS, "epochs", 20)
        network = mlp.fit(features[train], labels[train], params, 3)
    peer = MLPClassifier(64, alpha=1e-2, learning_rate_init=1e-3, batch_size=180, random_state=3, max_iter=20)
    model = make_pipeline(StandardScaler(), peer)
    with pytest.warns(ConvergenceWarning):
        model.fit(features[train].astype(np.float32), labels[train])
    # 20 steps of at most 1e-3 on weights of size 0.3: float32 has an error of 1e-7 per product of 12 and 64 terms.
    assert network.predict_proba(features[valid]) == pytest.approx(model.predict_proba(features[valid]), abs=1e-3)


def test_kept_features_have_the_largest_f():
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 30)
    features = rng.normal(size=(60, 200)) + labels[:, None] * np.linspace(0, 1, 200)
    features[:, 7] = 3.0
    kept = select_features(features, labels, max_features=20)
    expected = SelectKBest(f_classif, k=20).fit(np.delete(features, 7, axis=1), labels).get_support(indices=True)
    assert kept.tolist() == [number + (number >= 7) for number in expected]
    assert select_features(features, labels, max_features=200).tolist() == list(range(200))
    features[:, 3] = labels  # The spread within the classes is zero.
    assert 3 in select_features(features, labels, max_features=5)
