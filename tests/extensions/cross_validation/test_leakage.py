"""Check that no fold learns from held-out patients, and that each best classifier is that of scikit-learn's grid search."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cardiobench.extensions.cross_validation.best import choose_by_inner_folds
from cardiobench.extensions.cross_validation.protocol import CrossValidation, summary
from cardiobench.protocols.grid_search.folds import balanced_folds

GRIDS = {
    "xgboost": {"max_depth": (2,), "n_estimators": (5, 10)},
    "tree": {"max_depth": (2, 4), "min_samples_leaf": (5, 1)},
    "forest": {"max_depth": (3,), "n_estimators": (2,)},
    "logistic": {"C": (1e-3, 1e-1, 10.0)},
    "mlp": {"alpha": (1.0,), "learning_rate": (1e-2,)},
}


def records(patients=36, each=2, dims=6):
    """Return records of patients whose first dimension is weakly related to the label."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.tile([1, 0, 0], patients // 3), each)
    features = rng.normal(size=(len(labels), dims)) + 0.7 * labels[:, None] * np.eye(dims)[0]
    return features, labels, np.repeat(np.arange(patients), each)


@pytest.mark.parametrize(
    "name", ["logistic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tree", "forest"))]
)
def test_folds_do_not_depend_on_held_out_records(name, monkeypatch):
    """Change all labels and half of the features in a held-out fold, and check that the other predictions stay the same.

    Trees and forests are compared bit by bit. The folds of logistic regression share the curvature for their step sizes, so
    their coefficients may differ within the tolerance of the solver.
    """
    features, labels, patients = records()
    protocol = CrossValidation(folds=4, inner=3, grids=GRIDS)
    folds = protocol.outer_folds(labels, patients)
    monkeypatch.setattr(CrossValidation, "outer_folds", lambda *_: folds)
    before = protocol.cross_validate(name, features, labels, patients)
    for number, (_, held) in enumerate(folds):
        other, turned = features.copy(), labels.copy()
        turned[held], other[held[::2]] = 1 - labels[held], 5 - 2 * features[held[::2]]
        after = protocol.cross_validate(name, other, turned, patients)
        left_alone = [one.probabilities[held[1::2]] for one in (before, after)]
        np.testing.assert_allclose(*left_alone, rtol=0, atol=1e-3 if name == "logistic" else 0)
        assert before.best_params[number] == after.best_params[number]
        assert before.f1_inner[number] == after.f1_inner[number]
        assert not np.array_equal(before.probabilities, after.probabilities), "other folds learn from these records"


@pytest.mark.slow
def test_best_classifier_per_fold_equals_scikit_learn():
    features, labels, patients = records()
    searched = {"soft": (1e-4, 1e-3), "hard": (1e-1, 10.0)}
    folds = CrossValidation(folds=4, inner=3, seed=3).outer_folds(labels, patients)
    options, expected = {}, {}
    for name, penalties in searched.items():
        protocol = CrossValidation(folds=4, inner=3, seed=3, grids={**GRIDS, "logistic": {"C": penalties}})
        options[name] = summary(protocol.cross_validate("logistic", features, labels, patients))
        expected[name] = []
        for train, _ in folds:
            inner = balanced_folds(labels[train], patients[train], 3, 3)
            model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=5000))
            peer = GridSearchCV(model, {"logisticregression__C": penalties}, cv=inner, scoring="f1")
            expected[name].append(peer.fit(features[train], labels[train]).best_score_)
    chosen, details = choose_by_inner_folds(options)
    best = np.array([expected["soft"], expected["hard"]])
    assert chosen.tolist() == best.argmax(axis=0).tolist()
    assert details["f1_inner_folds"] == pytest.approx(best.max(axis=0))
