"""Logistic regression on many folds and penalties at once, equal to scikit-learn's but several times faster.

This is for grids over folds, with few rows and many fits. The probe reads many rows in blocks instead (`streamed.py`).

The folds share most of their rows, so they share the expensive parts: the matrix products with the features, and the
Hessian of the loss at the mean over folds, which preconditions the conjugate gradients of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, softmax

from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.linear.line_search import line_search
from cardiobench.protocols.linear.path import TOLERANCE

STEPS = 12  # Steps of conjugate gradients before the curvature is recomputed.
ROUNDS = 40  # Maximum number of times that the curvature is recomputed.
SHARED_ROUNDS = 2  # Uses the Hessian at the mean over folds first, then each unfinished fold's own.


@dataclass(frozen=True)
class LogisticPath:
    """Fitted classifiers of every fold and penalty, in the units of the given features.

    Attributes:
        coefficients: Shape (folds, penalties, outputs, d); one output for two classes (the logit of the second), one
            per class otherwise.
        intercepts: Shape (folds, penalties, outputs); minus infinity for classes absent from the fold.
        classes: Number of classes.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: int

    def logits(self, features: np.ndarray) -> np.ndarray:
        """Return the logits of rows (n, d). The shape is (folds, penalties, n, outputs)."""
        folds, penalties, outputs, width = self.coefficients.shape
        flat = features @ self.coefficients.reshape(-1, width).T
        shaped = flat.reshape(len(features), folds, penalties, outputs).transpose(1, 2, 0, 3)
        return shaped + self.intercepts[:, :, None, :]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Return the probabilities of rows (n, d). The shape is (folds, penalties, n, classes)."""
        logits = self.logits(features)
        if self.classes > 2:
            return softmax(logits, axis=-1)
        return np.concatenate([expit(-logits), expit(logits)], axis=-1)


def fold_logistic_path(
    features: np.ndarray,
    labels: np.ndarray,
    penalties: np.ndarray,
    *,
    folds: np.ndarray | None = None,
    class_weight: str | None = None,
    classes: int | None = None,
    standardise: bool = True,
    tolerance: float = TOLERANCE,
) -> LogisticPath:
    """Fit logistic regression for every fold and penalty: StandardScaler, then LogisticRegression(C=1/penalty), each.

    Minimises the sum over the fold's rows of weight x log loss plus penalty / 2 x squared coefficients; intercepts are
    not penalised. Multinomial for three classes or more. Held-out rows are part of `features`: `probabilities` of the
    result gives their predictions, but no fold is fitted to its held-out rows.

    Args:
        features: Features in any units, shape (n, d).
        labels: Class indices (n,).
        penalties: Positive penalties (k,), the inverse of scikit-learn's C.
        folds: Weight of each row in each fold (f, n), 0 for held-out rows; None means a single fold of all rows.
        class_weight: "balanced" gives the classes of a fold equal total weight; None leaves the weights unchanged.
        classes: Number of classes; by default the largest label plus one.
        standardise: Whether features are standardised by the training rows of each fold; False penalises the
            coefficients of the given features.
        tolerance: Maximum excess of the mean loss over its minimum.

    Returns:
        Coefficients and intercepts; `probabilities(features)` gives the held-out predictions of every fold at once.

    Raises:
        ValueError: A fold has rows of a single class, or shapes do not match.

    Example:
        >>> x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
        >>> fold_logistic_path(x, y, np.array([1.0])).probabilities(x).shape
        (1, 1, 4, 2)
    """
    labels, penalties = np.asarray(labels, dtype=np.int64), np.asarray(penalties, dtype=np.float64)
    counts = np.ones((1, len(labels))) if folds is None else np.asarray(folds, dtype=np.float64)
    classes = max(int(labels.max()) + 1, 2) if classes is None else classes
    if features.shape[0] != len(labels) or counts.shape[1:] != labels.shape or (penalties <= 0).any():
        raise ValueError(
            f"features have shape {features.shape}, labels {labels.shape} and folds {counts.shape}; give (n, d), (n,) and "
            f"(folds, n), and penalties above 0, not {penalties}."
        )
    problem = _FoldProblems.of(
        np.asarray(features, dtype=np.float64), labels, counts, class_weight, classes, standardise
    )
    fitted = np.empty((len(penalties), *problem.shape))
    before, state = None, np.zeros(problem.shape)
    for place in np.argsort(
        -penalties
    ):  # Start with the largest penalty; the change between two solutions predicts the next one.
        start = state if before is None else 2 * state - before
        before, state = state, _solve(problem, start, penalties[place], tolerance)
        fitted[place] = state
    return problem.in_given_units(fitted)


@dataclass(frozen=True)
class _FoldProblems:
    """Folds on one standardised matrix. A state is (d + 1, folds, outputs), with the intercept last, in each fold's own scale.

    Attributes:
        design: Features (n, d + 1), standardised over all rows, with a final column of ones.
        target: Shape (n, 1, outputs), 1 for rows of the output's class.
        weights: Row weights, shape (n, folds, 1).
        present: Whether the fold has the class, shape (folds, outputs); always True for the single output of two
            classes.
        mean: Mean of the fold in the standardised matrix, shape (d, folds, 1).
        deviation: Standard deviation of the fold in the standardised matrix, shape (d, folds, 1).
        centre: Mean of the given features, shape (d,).
        scale: Standard deviation of the given features, shape (d,).
        products: Inner products of the rows' features, (n, n), if there are fewer rows than features.
    """

    design: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    present: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    classes: int
    products: np.ndarray | None

    @classmethod
    def of(
        cls,
        features: np.ndarray,
        labels: np.ndarray,
        counts: np.ndarray,
        class_weight: str | None,
        classes: int,
        standardise: bool,
    ) -> "_FoldProblems":
        # The scale over all rows only conditions the common matrix; each fold's own scale is applied on top.
        centre, scale = mean_and_std(features[counts.any(axis=0)])
        if not standardise:
            scale = np.ones_like(scale)
        standard = (features - centre) / scale
        total = counts.sum(axis=1, keepdims=True)
        mean, deviation = np.zeros((len(counts), len(centre))), np.ones((len(counts), len(centre)))
        if standardise:
            mean = counts @ standard / total
            deviation = np.sqrt(np.maximum(counts @ standard**2 / total - mean**2, 0))
            deviation = np.where(deviation > 1e-6, deviation, 1.0)
        one_hot = (labels[:, None] == np.arange(classes)).astype(np.float64)
        per_class = counts @ one_hot
        if ((per_class > 0).sum(axis=1) < 2).any():
            raise ValueError(f"fold {int(np.argmin((per_class > 0).sum(axis=1)))} has rows of one class only")
        weights = counts
        if class_weight == "balanced":
            share = per_class * (per_class > 0).sum(axis=1, keepdims=True)
            factor = np.divide(total, share, out=np.zeros_like(per_class), where=per_class > 0)
            weights = counts * factor[:, labels]
        binary = classes == 2
        return cls(
            np.column_stack([standard, np.ones(len(labels))]),
            (one_hot[:, 1:] if binary else one_hot)[:, None, :],
            weights.T[:, :, None],
            np.ones((len(counts), 1), dtype=bool) if binary else per_class > 0,
            mean.T[:, :, None],
            deviation.T[:, :, None],
            centre,
            scale,
            classes,
            standard @ standard.T if standard.shape[1] >= len(standard) else None,
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.design.shape[1], *self.present.shape

    def logits(self, state: np.ndarray) -> np.ndarray:
        """Compute the logits (n, folds, outputs)."""
        coefficients = state[:-1] / self.deviation
        intercepts = state[-1:] - (self.mean * coefficients).sum(axis=0, keepdims=True)
        stacked = np.concatenate([coefficients, intercepts])
        return (self.design @ stacked.reshape(len(stacked), -1)).reshape(-1, *state.shape[1:])

    def take(self, folds: np.ndarray) -> "_FoldProblems":
        """Return the problem of some of the folds."""
        return replace(
            self,
            weights=self.weights[:, folds],
            present=self.present[folds],
            mean=self.mean[:, folds],
            deviation=self.deviation[:, folds],
        )

    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        """Return the probability of each output's class, in the shape of the logits; 0 for classes absent from a fold."""
        if self.classes == 2:
            return expit(logits)
        return softmax(np.where(self.present, logits, -np.inf), axis=-1)

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Return the gradient of the loss as a state, from weights x (probability - target)."""
        flat = (
            residual.reshape(len(residual), -1).T @ self.design
        ).T  # Takes a third of the time of design.T @ residual.
        flat = flat.reshape(-1, *residual.shape[1:])
        return np.concatenate([(flat[:-1] - self.mean * flat[-1:]) / self.deviation, flat[-1:]])

    def in_given_units(self, fitted: np.ndarray) -> LogisticPath:
        """Convert states (penalties, d + 1, folds, outputs) to coefficients of the given features."""
        coefficients = fitted[:, :-1] / self.deviation
        intercepts = fitted[:, -1] - (self.mean * coefficients).sum(axis=1)
        coefficients = coefficients / self.scale[:, None, None]
        intercepts = intercepts - np.einsum("pdfo,d->pfo", coefficients, self.centre)
        intercepts = np.where(self.present, intercepts, -np.inf)
        return LogisticPath(coefficients.transpose(2, 0, 3, 1), intercepts.transpose(1, 0, 2), self.classes)


def _solve(problem: _FoldProblems, start: np.ndarray, penalty: float, tolerance: float) -> np.ndarray:
    """Return the state with the lowest loss, using the Hessian at the mean over folds first, then its own for each unfinished fold.

    Takes and returns a state (d + 1, folds, outputs).
    """
    state = start.copy()
    decay = np.full((problem.shape[0], 1, 1), penalty)
    decay[-1] = 0
    left = np.arange(state.shape[1])
    for turn in range(ROUNDS):
        part = problem if len(left) == state.shape[1] else problem.take(left)
        state[:, left], done = _descend(part, state[:, left], decay, penalty, tolerance, shared=turn < SHARED_ROUNDS)
        left = left[~done]
        if not len(left):
            break
    return state


def _descend(
    problem: _FoldProblems, state: np.ndarray, decay: np.ndarray, penalty: float, tolerance: float, shared: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Take conjugate gradient steps (Polak and Ribiere); return the new state and which folds have converged.

    Takes a state (d + 1, folds, outputs) and the penalty of each of its rows, (d + 1, 1, 1), 0 for the intercept. Returns
    the state and bool (folds,).
    """
    limit = 2 * tolerance * problem.weights.sum(axis=0)[:, 0]
    logits = problem.logits(state)
    probabilities = problem.probabilities(logits)
    precondition = _preconditioner(problem, probabilities, penalty, shared)
    gradient = problem.gradient(problem.weights * (probabilities - problem.target)) + decay * state
    direction = previous = np.zeros_like(state)
    steepest = np.ones(state.shape[1])
    for step in range(STEPS + 1):
        ahead = precondition(gradient)
        decrement = _dot(gradient, ahead)
        done = decrement <= limit
        if done.all() or step == STEPS:
            break
        if step:
            turn = np.maximum(_dot(ahead, gradient - previous) / np.maximum(steepest, 1e-300), 0)
            direction = turn[None, :, None] * direction - ahead
            uphill = _dot(direction, gradient) >= 0
            direction = np.where(uphill[None, :, None], -ahead, direction)
        else:
            direction = -ahead
        previous, steepest = gradient, decrement
        along = problem.logits(direction)
        lines = _FoldLines(problem, state, logits, direction, along, decay)
        length, probabilities = line_search(lines, state.shape[1]), lines.probabilities
        state = state + length[None, :, None] * direction
        logits = logits + length[None, :, None] * along
        gradient = problem.gradient(problem.weights * (probabilities - problem.target)) + decay * state
    return state, done


def _dot(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the inner product of two states for each fold. The shape is (folds,)."""
    return np.einsum("dfo,dfo->f", one, other)


@dataclass
class _FoldLines:
    """Losses of the folds along their directions, for `line_search`, and the probabilities at the end."""

    problem: _FoldProblems
    state: np.ndarray
    logits: np.ndarray
    direction: np.ndarray
    along: np.ndarray
    decay: np.ndarray

    def __post_init__(self) -> None:
        self.bend = _dot(self.decay * self.direction, self.direction)
        self.lean = _dot(self.decay * self.direction, self.state)
        self.weighted = self.problem.weights * self.along

    def slopes(self, lengths: np.ndarray) -> np.ndarray:
        """Return the first derivatives. The shape is (folds,)."""
        self.probabilities = self.problem.probabilities(self.logits + lengths[None, :, None] * self.along)
        inner = np.einsum("nfo,nfo->f", self.weighted, self.probabilities - self.problem.target)
        return inner + self.lean + lengths * self.bend

    def curvatures(self) -> np.ndarray:
        """Return the second derivatives at the last evaluated lengths. The shape is (folds,)."""
        if self.problem.classes == 2:
            variance = self.probabilities * (1 - self.probabilities)
            return np.einsum("nfo,nfo,nfo->f", self.weighted, self.along, variance) + self.bend
        mean = (self.probabilities * self.along).sum(axis=-1, keepdims=True)
        return np.einsum("nfo,nfo,nfo->f", self.weighted, self.along - mean, self.probabilities) + self.bend


def _preconditioner(
    problem: _FoldProblems, probabilities: np.ndarray, penalty: float, shared: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the inverse Hessian, one block per output, at the mean over folds or for each fold, as a function of states.

    Takes probabilities (n, folds, outputs). The function takes and returns states (d + 1, folds, outputs).
    """
    curvature = problem.weights * probabilities * (1 - probabilities)  # (n, folds, outputs)
    if shared:
        curvature = curvature.mean(axis=1, keepdims=True)
    inverses = [[_inverse(problem, column, penalty) for column in fold.T] for fold in curvature.swapaxes(0, 1)]

    def apply(states: np.ndarray) -> np.ndarray:
        if shared:
            return np.stack([inverse(states[:, :, output]) for output, inverse in enumerate(inverses[0])], axis=2)
        return np.stack(
            [
                np.concatenate(
                    [inverse(states[:, fold, output, None]) for output, inverse in enumerate(of_fold)], axis=1
                )
                for fold, of_fold in enumerate(inverses)
            ],
            axis=1,
        )

    return apply


def _inverse(problem: _FoldProblems, curvature: np.ndarray, penalty: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a solver of (X' D X + penalty) for columns, in the smaller of the two dimensions.

    Takes the diagonal of D, (n,). The solver takes and returns columns (d + 1, m).
    """
    # Rows with negligible weight are dropped; most rows far from the decision boundary are such.
    kept = curvature > 1e-4 * curvature.max()
    # The intercept is not penalised; a small constant keeps the matrix invertible if a class has almost no curvature
    # left.
    ridge = np.full(problem.design.shape[1], penalty)
    ridge[-1] = max(1e-6 * curvature[kept].sum(), 1e-12)
    if problem.products is None:
        scaled = np.sqrt(curvature[kept])[:, None] * problem.design[kept]
        matrix = scaled.T @ scaled
        matrix[np.diag_indices(len(matrix))] += ridge
        factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        return lambda columns: cho_solve(factor, columns, check_finite=False)
    # Woodbury identity: the inverse through a matrix of rows x rows, whose products are shared by all penalties.
    root = np.sqrt(np.where(kept, curvature, 0))[:, None]
    matrix = root * (problem.products / penalty + 1 / ridge[-1]) * root.T
    matrix[np.diag_indices(len(matrix))] += 1
    factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)

    def solve(columns: np.ndarray) -> np.ndarray:
        straight = columns / ridge[:, None]
        inner = root * cho_solve(factor, root * (problem.design @ straight), check_finite=False)
        return straight - (inner.T @ problem.design).T / ridge[:, None]

    return solve
