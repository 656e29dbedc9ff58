"""Compare batched logistic regression with scikit-learn for each fold and penalty."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cardiobench.protocols.linear.logistic import fold_logistic_path
from cardiobench.protocols.linear.streamed import _log_loss


def sample(n, d, classes, seed=0):
    rng = np.random.default_rng(seed)
    features = 5 + rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d)
    scores = (features - 5) / np.geomspace(0.1, 10, d) @ rng.normal(size=(d, classes)) / np.sqrt(d)
    return features, (scores + rng.gumbel(size=(n, classes))).argmax(axis=1)


def fold_weights(n, folds):
    held = np.arange(n) % folds
    return (held[None] != np.arange(folds)[:, None]).astype(float)


@pytest.mark.parametrize("n, d, classes", [(120, 6, 2), (40, 90, 2), (150, 5, 4)])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_every_fold_and_penalty_equals_scikit_learn(n, d, classes, class_weight):
    features, labels = sample(n, d, classes)
    penalties, folds = np.array([0.3, 100.0, 3.0]), fold_weights(n, 3)
    path = fold_logistic_path(features, labels, penalties, folds=folds, class_weight=class_weight, tolerance=1e-13)
    found = path.probabilities(features)
    assert found.shape == (3, 3, n, classes)
    for fold, weights in enumerate(folds):
        for place, penalty in enumerate(penalties):
            model = LogisticRegression(C=1 / penalty, class_weight=class_weight, tol=1e-10, max_iter=20000)
            peer = make_pipeline(StandardScaler(), model).fit(features[weights > 0], labels[weights > 0])
            np.testing.assert_allclose(found[fold, place], peer.predict_proba(features), atol=2e-5)


def test_gradient_vanishes_at_the_solution():
    """Check the first-order condition: the penalty times the coefficients balances the residuals."""
    features, labels = sample(200, 4, 2)
    path = fold_logistic_path(features, labels, np.array([2.0]), standardise=False, tolerance=1e-14)
    residual = path.probabilities(features)[0, 0, :, 1] - labels
    np.testing.assert_allclose(features.T @ residual + 2.0 * path.coefficients[0, 0, 0], 0, atol=2e-4)
    assert residual.sum() == pytest.approx(0, abs=1e-5), "the intercept has no penalty"


def test_default_tolerance_changes_at_most_a_thousandth():
    features, labels = sample(300, 40, 2)
    penalties = 10.0 ** np.arange(-3, 5)
    rough = fold_logistic_path(features, labels, penalties, folds=fold_weights(300, 5)).probabilities(features)
    exact = fold_logistic_path(features, labels, penalties, folds=fold_weights(300, 5), tolerance=1e-14)
    np.testing.assert_allclose(rough, exact.probabilities(features), atol=1e-3)


def test_held_out_lines_do_not_touch_a_fold():
    features, labels = sample(60, 8, 2)
    folds = fold_weights(60, 3)
    before = fold_logistic_path(features, labels, np.array([1.0]), folds=folds, tolerance=1e-13)
    out = folds[0] == 0
    strange, swapped = features.copy(), labels.copy()
    strange[out] *= 3
    swapped[out] = 1 - swapped[out]
    after = fold_logistic_path(strange, swapped, np.array([1.0]), folds=folds, tolerance=1e-13)
    np.testing.assert_allclose(before.coefficients[0], after.coefficients[0], atol=1e-5)


def test_class_absent_in_fold_has_no_probability():
    features, labels = sample(90, 4, 3)
    folds = np.stack([labels != 2, np.ones(90)]).astype(float)
    found = fold_logistic_path(features, labels, np.array([1.0]), folds=folds).probabilities(features)
    assert (found[0, 0, :, 2] == 0).all() and (found[1, 0, :, 2] > 0).all()
    np.testing.assert_allclose(found.sum(axis=-1), 1)


def test_constant_column_and_separation_are_accepted():
    features = np.column_stack([np.linspace(-1, 1, 40), np.full(40, 7.0)])
    labels = (features[:, 0] > 0).astype(int)
    path = fold_logistic_path(features, labels, np.array([1e-3]))
    assert np.isfinite(path.coefficients).all() and (path.probabilities(features)[0, 0].argmax(axis=1) == labels).all()


def test_separable_classes_are_fitted_for_every_penalty():
    """Check that the binary fit equals two opposite coefficient vectors with twice the C, which have half the penalty."""
    rng = np.random.default_rng(3)
    features, labels = rng.normal(size=(22, 300)), np.repeat([0, 2], 11)
    penalties = 10.0 ** np.arange(-3, 7)
    with np.errstate(all="raise", under="ignore"):
        path = fold_logistic_path(features, labels, penalties, classes=3, standardise=False, tolerance=1e-12)
        found = path.probabilities(features)[0]
    for place, penalty in enumerate(penalties):
        peer = LogisticRegression(C=2 / penalty, tol=1e-10, max_iter=20000).fit(features, labels)
        np.testing.assert_allclose(found[place][:, [0, 2]], peer.predict_proba(features), atol=1e-4)


def test_fold_of_one_class_and_wrong_shapes_are_refused():
    features, labels = sample(20, 3, 2)
    with pytest.raises(ValueError, match="fold 1 has rows of one class only"):
        fold_logistic_path(features, labels, np.array([1.0]), folds=np.stack([np.ones(20), labels]))
    with pytest.raises(ValueError, match="penalties"):
        fold_logistic_path(features, labels, np.array([0.0]))
    with pytest.raises(ValueError, match="features"):
        fold_logistic_path(features[:-1], labels, np.array([1.0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_loss_of_several_classes_equals_scipy(dtype):
    rng, every, close = np.random.default_rng(0), np.arange(50), {"rtol": 4 * np.finfo(dtype).eps}
    for classes, scale in ((3, 1e-3), (5, 1.0), (71, 300.0)):
        outputs, codes = (rng.normal(size=(50, classes)) * scale).astype(dtype), rng.integers(0, classes, 50)
        outputs[::7] = outputs[::7].round()  # Rows with several largest outputs.
        losses, residuals, _ = _log_loss(outputs, codes)
        assert losses.dtype == residuals.dtype == dtype
        # The tolerance of a loss is that of its two terms.
        np.testing.assert_allclose(losses + outputs[every, codes], logsumexp(outputs, axis=1), **close)
        residuals[every, codes] += 1
        np.testing.assert_allclose(residuals, softmax(outputs, axis=1), atol=np.finfo(dtype).eps, **close)
