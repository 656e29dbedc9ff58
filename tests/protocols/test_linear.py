"""Compare ridge and logistic regression from blocks of rows with scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cardiobench.protocols import features as blocks
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.linear import rows
from cardiobench.protocols.linear.model import LinearModel, fit_linear_models, linear_path
from cardiobench.protocols.linear.rows import PrincipalRows

PENALTIES = (0.3, 100.0, 3.0)


@pytest.fixture(params=["kept", pytest.param("streamed", marks=pytest.mark.slow)], autouse=True)
def reading(request, monkeypatch):
    """Return rows in memory, and the same rows read in small blocks."""
    if request.param == "streamed":
        monkeypatch.setattr(rows, "KEPT_NUMBERS", 0)
        monkeypatch.setattr(blocks, "BLOCK_NUMBERS", 64)


def sample(n, d, classes, seed=0):
    """Return float32 features of scales from 0.1 to 10 with mean 5, and labels that partly depend on them."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.1, 10, d)
    features = 5 + rng.normal(size=(n, d)) * scales
    scores = (features - 5) / scales @ rng.normal(size=(d, classes)) / np.sqrt(d)
    return features.astype(np.float32), (scores + rng.gumbel(size=(n, classes))).argmax(axis=1)


def halves(n):
    order = np.random.default_rng(1).permutation(n)
    return np.sort(order[: n // 2]), order[n // 2 :]


@pytest.mark.parametrize("shape", [(120, 8), (40, 60)])
def test_ridge_equals_scikit_learn(shape):
    """Check equality within 1e-12: both solve a linear system in float64 with a condition number of at most 1e4 here."""
    features, _ = sample(*shape, 2)
    targets = features @ np.random.default_rng(2).normal(size=shape[1]) + 50
    train, held = halves(shape[0])
    models = fit_linear_models(features, train, targets[train], PENALTIES)
    for model, penalty in zip(models, PENALTIES, strict=True):
        exact = features.astype(np.float64)
        peer = make_pipeline(StandardScaler(), Ridge(alpha=penalty)).fit(exact[train], targets[train])
        np.testing.assert_allclose(model.predict(features, held), peer.predict(exact[held]), rtol=1e-10)


@pytest.mark.parametrize("n, d, classes", [(240, 6, 2), (80, 90, 2), (300, 5, 4), (60, 80, 3)])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_logistic_regression_equals_scikit_learn(n, d, classes, class_weight):
    """Bound the distance from the minimum by the gap of the mean loss.

    The total loss is strongly convex in the coefficients with the penalty as its constant, so coefficients are within
    sqrt(2 x gap x n / penalty) of the minimum: 1e-14 x 150 / 0.3 gives 3e-6, times features of length 10 at most 3e-5.
    """
    features, labels = sample(n, d, classes)
    train, held = halves(n)
    exact = features.astype(np.float64)
    models = fit_linear_models(
        features, train, labels[train], PENALTIES, classes=classes, class_weight=class_weight, tolerance=1e-14
    )
    for model, penalty in zip(models, PENALTIES, strict=True):
        peer = LogisticRegression(C=1 / penalty, class_weight=class_weight, tol=1e-10, max_iter=20000)
        peer = make_pipeline(StandardScaler(), peer).fit(exact[train], labels[train])
        np.testing.assert_allclose(model.predict(features, held), peer.predict_proba(exact[held]), atol=3e-5)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8])
def test_loss_is_within_tolerance_of_minimum(tolerance):
    """Test separable rows and small penalties too, for which the loss is far flatter than at zero."""
    features, labels = sample(120, 40, 2)
    every, penalties = np.arange(120), (1e-3, 1e-1, 10.0)
    mean, deviation = mean_and_std(features)

    def objective(model, penalty):
        of_truth = model.predict(features)[every, labels]
        return -np.log(of_truth).mean() + 0.5 * penalty * ((model.coefficients[:, 0] * deviation) ** 2).sum() / 120

    settings = {"classes": 2, "scale": (mean, deviation)}
    rough = fit_linear_models(features, every, labels, penalties, tolerance=tolerance, **settings)
    exact = fit_linear_models(features, every, labels, penalties, tolerance=1e-15, **settings)
    for penalty, one, other in zip(penalties, rough, exact, strict=True):
        assert objective(one, penalty) - objective(other, penalty) <= 3 * tolerance


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
def test_jointly_fitted_classes_are_within_tolerance(tolerance):
    """Compare each label with scikit-learn on its measured rows; one is rare, and separable with 40 features."""
    features, labels = sample(120, 40, 2)
    truth = np.stack([labels, sample(120, 40, 3)[1] == 1, np.arange(120) < 3], axis=1).astype(float)
    truth[np.random.default_rng(3).random(truth.shape) < 0.2] = np.nan
    every, penalties, scale = np.arange(120), (1e-3, 1e-1, 10.0), mean_and_std(features)
    standard = (features - scale[0]) / scale[1]

    def objective(coefficients, intercept, rows, positive, penalty):
        outputs = standard[rows] @ coefficients + intercept
        loss = np.logaddexp(0, np.where(positive, -outputs, outputs)).mean()
        return loss + 0.5 * penalty * (coefficients**2).sum() / len(rows)

    together = fit_linear_models(features, every, truth, penalties, classes=3, scale=scale, tolerance=tolerance)
    for penalty, model in zip(penalties, together, strict=True):
        for code in range(3):
            known = np.flatnonzero(~np.isnan(truth[:, code]))
            case = known, truth[known, code] == 1
            peer = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-10).fit(standard[known], case[1])
            coefficients = model.coefficients[:, code]
            intercept = model.intercepts[code] + scale[0] @ coefficients
            reached = objective(coefficients * scale[1], intercept, *case, penalty)
            assert reached - objective(peer.coef_[0], peer.intercept_[0], *case, penalty) <= 3 * tolerance


def test_absent_class_is_left_out_of_fit():
    """Check that the binary fit equals two opposite coefficient vectors with twice the C, which have half the penalty."""
    features, labels = sample(60, 5, 2)
    labels = labels * 2
    (model,) = fit_linear_models(features, np.arange(60), labels, [3.0], classes=3, tolerance=1e-14)
    exact = features.astype(np.float64)
    peer = make_pipeline(StandardScaler(), LogisticRegression(C=2 / 3.0, tol=1e-10, max_iter=20000)).fit(exact, labels)
    predicted = model.predict(features)
    np.testing.assert_allclose(predicted[:, [0, 2]], peer.predict_proba(exact), atol=3e-5)
    assert (predicted[:, 1] == 0).all()


def test_unused_rows_do_not_matter():
    features, labels = sample(80, 6, 2)
    train, held = halves(80)
    strange = features.copy()
    strange[held] *= 100
    one, other = (fit_linear_models(part, train, labels[train], [1.0], classes=2)[0] for part in (features, strange))
    np.testing.assert_array_equal(one.coefficients, other.coefficients)


def test_given_scale_is_used():
    """Check that half-sized features with a quarter of the penalty give the same fit."""
    features, labels = sample(80, 6, 2)
    mean, deviation = mean_and_std(features)
    every, settings = np.arange(80), {"classes": 2, "tolerance": 1e-14}
    (one,) = fit_linear_models(features, every, labels, [4.0], scale=(mean, deviation), **settings)
    (other,) = fit_linear_models(features, every, labels, [1.0], scale=(mean, 2 * deviation), **settings)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-5)


def test_constant_column_and_matrix_are_accepted():
    features, labels = sample(60, 4, 2)
    with_constant = np.column_stack([features, np.full(60, 7.0, np.float32)])
    settings = {"classes": 2, "tolerance": 1e-14}
    (one,) = fit_linear_models(features, np.arange(60), labels, [1.0], **settings)
    (other,) = fit_linear_models(with_constant, np.arange(60), labels, [1.0], **settings)
    np.testing.assert_allclose(one.predict(features), other.predict(with_constant), atol=1e-6)
    (flat,) = fit_linear_models(np.ones((60, 3), np.float32), np.arange(60), labels, [1.0], **settings)
    np.testing.assert_allclose(flat.predict(np.ones((1, 3)))[0, 1], labels.mean(), atol=1e-6)


@pytest.mark.parametrize("shape", [(50, 8), (12, 30)])
def test_principal_rows_diagonalise_the_weighted_products(shape):
    features, _ = sample(*shape, 2)
    weights = np.random.default_rng(0).uniform(0.5, 2, size=shape[0])
    found = PrincipalRows(features, np.arange(shape[0]), weights)
    exact = features.astype(np.float64)
    standard = (exact - weights @ exact / weights.sum()) / mean_and_std(features)[1]
    expected = np.linalg.eigvalsh(standard.T @ (weights[:, None] * standard))[::-1][: len(found.values)]
    np.testing.assert_allclose(np.sort(found.values)[::-1], expected, rtol=1e-9)
    assert len(found.values) == min(shape[0] - 1, shape[1])


@pytest.mark.parametrize(
    "labels, penalties, message",
    [([1, 1, 1], [1.0], r"labels of classes \[1\]"), ([0, 1, 1], [0.0], "penalties"), ([0, 1], [1.0], "2 labels")],
)
def test_invalid_fits_are_refused(labels, penalties, message):
    with pytest.raises(ValueError, match=message):
        fit_linear_models(np.eye(3, dtype=np.float32), np.arange(3), np.array(labels), penalties, classes=2)


@pytest.mark.parametrize("kind", ["numbers", "classes", "labels"])
def test_solvers_start_at_the_strongest_penalty(kind):
    features, codes = sample(60, 5, 3)
    labels = {"numbers": codes.astype(float), "classes": codes, "labels": np.eye(3)[codes]}[kind]
    settings = {"classes": 3} if kind == "classes" else {}
    path = linear_path(features, np.arange(60), labels, PENALTIES, **settings)
    penalty, model = next(path)
    assert penalty == 100.0 and model.predict(features).shape[0] == 60
    listed = fit_linear_models(features, np.arange(60), labels, (0.3, 100.0), **settings)
    np.testing.assert_array_equal(listed[1].coefficients, model.coefficients)
    assert abs(listed[0].coefficients).sum() > abs(model.coefficients).sum(), (
        "the smaller penalty gives larger coefficients"
    )


def test_predicting_in_blocks_changes_nothing():
    features, _ = sample(100, 5, 3)
    model = LinearModel(np.random.default_rng(0).normal(size=(5, 1)), np.array([2.0]), 0)
    expected = features.astype(np.float64) @ model.coefficients[:, 0] + 2
    np.testing.assert_allclose(model.predict(features), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(features, np.array([5, 3])), expected[[5, 3]], rtol=1e-12)


def test_search_is_within_stated_tolerance():
    """Check that the loss stays within tolerance for rows read in blocks, which are multiplied in float32."""
    features, labels = sample(400, 6, 2)
    every = np.arange(400)

    def loss(model, penalty):
        exact = features.astype(np.float64)
        predicted = model.predict(exact)[every, labels]
        deviation = mean_and_std(exact)[1]
        return (-np.log(predicted).sum() + penalty / 2 * ((model.coefficients[:, 0] * deviation) ** 2).sum()) / 400

    found = fit_linear_models(features, every, labels, PENALTIES, classes=2, tolerance=1e-6)
    least = fit_linear_models(features, every, labels, PENALTIES, classes=2, tolerance=1e-14)
    for model, minimum, penalty in zip(found, least, PENALTIES, strict=True):
        assert -1e-12 < loss(model, penalty) - loss(minimum, penalty) < 1e-6
