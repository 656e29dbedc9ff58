"""Compare the solver of the sub-cell head with scikit-learn and finite differences, and count its steps."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cardiobench.extensions.dense import head as module
from cardiobench.extensions.dense.head import prior_head
from cardiobench.extensions.dense.solver import Objective, fit_path

RNG = np.random.default_rng(0)


def problem(n=40, grid=(2, 2), width=5, s=1, k=3):
    tokens = RNG.normal(size=(n, *grid, width)).astype(np.float16)
    truth = RNG.normal(size=(width, s * s * k))
    logits = tokens.astype(float).reshape(n, -1, width) @ truth + RNG.normal(size=(grid[0] * grid[1], s * s * k))
    labels = logits.reshape(n, -1, s * s, k).argmax(axis=-1)
    return tokens, np.eye(k, dtype=np.float32)[labels]


def test_against_scikit_learn():
    """Test one position and cell: logistic regression without an intercept, on the same standardised tokens and offset."""
    tokens, targets = problem(n=200, grid=(1, 1), k=2)
    targets[:, :, :, 0], targets[:, :, :, 1] = 0.5, 0.5  # The prior has no preference.
    start = prior_head(tokens, targets, (1, 1))
    labels = (tokens[:, 0, 0, 0] + 0.3 * RNG.normal(size=200) > 0).astype(int)
    hard = np.eye(2, dtype=np.float32)[labels].reshape(200, 1, 1, 2)
    ((_, fitted),) = fit_path(start, tokens, hard, [0.01])
    rows = (tokens[:, 0, 0].astype(float) - start.centre[0]) / start.scale
    # Two weight vectors w and -w with penalty p each equal one vector 2 w with penalty p / 2.
    theirs = LogisticRegression(C=1 / (200 * 0.005), fit_intercept=False, tol=1e-8, max_iter=1000).fit(rows, labels)
    np.testing.assert_allclose(fitted.predict(tokens)[:, 0, 0], theirs.predict_proba(rows), atol=2e-3)


@pytest.mark.parametrize("over", ["classes", "places"])
def test_gradient(over):
    tokens, targets = problem(n=6, s=2)
    if over == "places":
        targets = targets / targets.sum(axis=(1, 2), keepdims=True)
        targets[0, :, :, 1] = 0  # One frame does not show the point.
    objective = Objective(prior_head(tokens, targets, (2, 2), over), tokens, targets)
    weights = RNG.normal(size=(5, 12)) * 0.3
    _, gradient = objective(weights, 0.1)
    for place in ((0, 0), (1, 5), (4, 11)):
        step = np.zeros_like(weights)
        step[place] = 1e-2
        numeric = (objective(weights + step, 0.1)[0] - objective(weights - step, 0.1)[0]) / 2e-2
        assert gradient[place] == pytest.approx(numeric, abs=2e-4)


def test_blocks_do_not_matter(monkeypatch):
    tokens, targets = problem(n=11, s=2)
    whole = [head.weights for _, head in fit_path(prior_head(tokens, targets, (2, 2)), tokens, targets, [0.1, 1.0])]
    monkeypatch.setattr(module, "BLOCK", 2 * 48)
    parts = [head.weights for _, head in fit_path(prior_head(tokens, targets, (2, 2)), tokens, targets, [0.1, 1.0])]
    np.testing.assert_allclose(parts, whole, atol=1e-4)


def test_uninformed_head_is_the_mean():
    tokens, targets = problem(n=30)
    head = prior_head(tokens, targets, (2, 2))
    np.testing.assert_allclose(head.predict(tokens)[0].reshape(4, 3), targets.mean(axis=0)[:, 0].clip(1e-3), atol=1e-3)
    ((_, strict),) = fit_path(head, tokens, targets, [1e6])
    np.testing.assert_allclose(strict.predict(tokens), head.predict(tokens), atol=1e-4)


def test_correlated_tokens_cost_few_evaluations(monkeypatch):
    """Test tokens that hardly vary in most directions; with a single step size, the smallest penalty needs over 100 steps."""
    tokens, targets = problem(n=60, width=24, s=2)
    turned, _ = np.linalg.qr(RNG.normal(size=(24, 24)))
    tokens = (tokens.astype(float) @ np.diag(np.geomspace(1, 1e-3, 24)) @ turned).astype(np.float32)
    start = prior_head(tokens, targets, (2, 2))
    objective, penalties, evaluations = Objective(start, tokens, targets), [1e-2, 1e-4, 1e-6], []

    def counted(self, weights, penalty, call=Objective.__call__):
        evaluations.append(penalty)
        return call(self, weights, penalty)

    monkeypatch.setattr(Objective, "__call__", counted)
    fitted = dict(fit_path(start, tokens, targets, penalties))
    assert max(evaluations.count(penalty) for penalty in penalties) < 60
    for penalty, head in fitted.items():
        slope = objective(head.weights.astype(float), penalty)[1]
        assert np.abs(slope).max() < 2e-4, "the minimum is reached"
