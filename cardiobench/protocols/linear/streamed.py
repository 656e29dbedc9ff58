"""Logistic regression for many penalties from rows read in blocks, so that memory does not grow with their number.

Uses L-BFGS in coordinates in which the Hessian of the loss is nearly the identity. One eigendecomposition of the
features serves every penalty, and the number of passes through the rows hardly depends on correlations between
features. A grid over many small folds is fitted together instead (`logistic.py`).
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from cardiobench.protocols.linear.path import SEARCH_TOLERANCE, TOLERANCE, Path
from cardiobench.protocols.linear.rows import PrincipalRows, are_kept, sum_of_products

STEPS = 1000  # Maximum number of L-BFGS steps.
MEMORY = 20  # Number of steps remembered by L-BFGS.
FLATTER = 0.7  # Fraction of the expected curvature below which the scale is considered wrong.
ROUNDS = 20  # Maximum number of times that the scale is updated.


def logistic_path(
    features: np.ndarray,
    indices: np.ndarray,
    labels: np.ndarray,
    penalties: Sequence[float] | np.ndarray,
    *,
    classes: int,
    class_weight: str | None = None,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
    tolerance: float = TOLERANCE,
) -> Path:
    """Fit scikit-learn's StandardScaler and LogisticRegression(C=1/penalty) for many penalties.

    Minimises the sum of weight x log loss plus penalty / 2 x squared coefficients; intercepts are not penalised.
    Multinomial for three classes or more.

    Args:
        features: Feature matrix (N, d), any float type.
        indices: Indices of the training rows, shape (n,).
        labels: Class indices of these rows, (n,).
        penalties: Positive penalties.
        classes: Number of classes.
        class_weight: "balanced" gives the classes equal total weight; None leaves the weights unchanged.
        scale: Mean and deviation (d,) of each feature; by default those of these rows.
        tolerance: Maximum excess of the mean loss over its minimum; down to `SEARCH_TOLERANCE`, products of rows that
            are reread in every pass are computed in float32, whose rounding error is far smaller.

    Yields:
        Each penalty, strongest first, with coefficients (d, outputs) and intercepts (outputs,) in the units of the
        features. Two classes have one output, the logit of the second; more classes have one output each, and the
        intercept of a class without rows is minus infinity.

    Raises:
        ValueError: Rows have a single class, a penalty is not positive, or shapes do not match.
    """
    counts = np.bincount(labels, minlength=classes)
    present = np.flatnonzero(counts)
    if len(present) < 2 or min(penalties) <= 0 or len(labels) != len(indices):
        raise ValueError(f"{len(indices)} rows, {len(labels)} labels of classes {present}, penalties {penalties}")
    weights = np.ones(len(labels))
    if class_weight == "balanced":
        weights = (len(labels) / (len(present) * np.maximum(counts, 1)))[labels]
    kept = are_kept(len(indices), features.shape[1])
    rows = PrincipalRows(features, indices, weights, scale, np.float64 if kept else np.float32, exact_axes=False)
    outputs = np.array([1]) if classes == 2 else present
    losses = [_LogLoss(rows, np.searchsorted(present, labels), weights, len(outputs))]
    if not kept and tolerance < SEARCH_TOLERANCE:  # Most steps in float32, in half the time.
        losses.append(_LogLoss(rows.in_precision(np.float64), losses[0].codes, weights, len(outputs)))
    state = np.zeros((len(rows.values) + 1, len(outputs)))
    for penalty in sorted(
        penalties, reverse=True
    ):  # Start with the largest penalty; each solution is a good start for the next.
        for loss in losses:
            loss.curvature = losses[0].curvature
            state = _minimize(loss, state, penalty, tolerance if loss is losses[-1] else SEARCH_TOLERANCE)
        coefficients, intercepts = rows.in_feature_units(state)
        if classes > len(present):
            every = np.zeros((len(coefficients), classes)), np.full(classes, -np.inf)
            every[0][:, present], every[1][present] = coefficients, intercepts
            coefficients, intercepts = every
        yield penalty, (coefficients, intercepts)


class _LogLoss:
    """The weighted log loss of all rows as a function of a state.

    Attributes:
        total: Sum of the weights, (1,).
        curvature: Weighted mean of p (1 - p) per class at the last state, initially at zero, (1,).
    """

    def __init__(self, rows: PrincipalRows, codes: np.ndarray, weights: np.ndarray, outputs: int):
        self.rows, self.codes, self.weights, self.total = rows, codes, weights, weights.sum(keepdims=True)
        self.curvature = np.array([0.25 if outputs == 1 else 1 / outputs])

    def __call__(self, state: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient. The shape is (r + 1, outputs)."""
        value, curvature, sums = 0.0, 0.0, np.zeros((1, 1))
        coefficients, intercepts = self.rows.layer(state)
        for part, block in self.rows.blocks():
            weights = self.weights[part]
            losses, residuals, bends = _log_loss(block @ coefficients + intercepts, self.codes[part])
            value += float(weights @ losses)
            curvature += float(weights @ bends)
            sums = sums + sum_of_products(block, weights[:, None] * residuals)
        self.curvature = curvature / self.total
        return value, self.rows.to_gradient(sums)


def _log_loss(outputs: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log loss (n,), probability minus target (n, outputs) and mean curvature (n,) of each row."""
    if outputs.shape[1] == 1:
        logits, target = outputs[:, 0], codes == 1
        probability = expit(logits)
        losses = np.logaddexp(0, np.where(target, -logits, logits))
        return losses, (probability - target)[:, None], probability * (1 - probability)
    every = np.arange(len(codes))
    largest = outputs.max(axis=1, keepdims=True)
    powers = np.exp(outputs - largest)
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    # 1/K for K equal classes: the curvature for changes of the outputs with zero sum.
    curvature = (1 - (probabilities**2).sum(axis=1)) / (outputs.shape[1] - 1)
    # The largest outputs are added last, for precision, as in `scipy.special.logsumexp`, which takes three times as long.
    at_largest = outputs == largest
    count = at_largest.sum(axis=1, dtype=outputs.dtype)
    others = np.where(at_largest, 0, powers).sum(axis=1) / count
    losses = np.log1p(others) + np.log(count) + largest[:, 0] - outputs[every, codes]
    probabilities[every, codes] -= 1
    return losses, probabilities, curvature


def _minimize(loss: _LogLoss, start: np.ndarray, penalty: float, tolerance: float) -> np.ndarray:
    """Return the state with the lowest penalised loss. The shape is (r + 1, outputs), as that of `start`."""
    state, decay = start, np.append(np.full(len(start) - 1, penalty), 0.0)[:, None]
    total = float(loss.total.sum())
    for _ in range(ROUNDS):
        expected = loss.curvature
        sizes = np.concatenate([np.repeat(loss.rows.values[:, None], len(loss.total), axis=1), loss.total[None]])
        root = np.sqrt(expected * sizes + decay)

        def scaled_loss(flat: np.ndarray, root: np.ndarray = root) -> tuple[float, np.ndarray]:
            state = flat.reshape(start.shape) / root
            value, gradient = loss(state)
            value += 0.5 * float((decay * state**2).sum())
            return value / total, ((gradient + decay * state) / root).ravel() / total

        # With unit curvature, the excess loss is half the squared norm of its gradient.
        largest = np.sqrt(2 * tolerance / total / state.size)
        options = {"maxiter": STEPS, "maxfun": 2 * STEPS, "gtol": largest, "ftol": 0.0, "maxcor": MEMORY}
        fitted = minimize(scaled_loss, (state * root).ravel(), jac=True, method="L-BFGS-B", options=options)
        state = fitted.x.reshape(start.shape) / root
        if (loss.curvature > FLATTER * expected).all():
            break
    return state
