"""Logistic regression on many folds and penalties at once, equal to scikit-learn's in a fraction of the time.

For a grid over folds, where rows are few and fits are many. The probe reads many rows in blocks instead (`streamed.py`).

All folds share most of their lines, so they share the costly things: the matrix products with the features, and the
curvature of the loss (its Hessian), taken at the folds' mean and used to precondition conjugate gradients of each.
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
ROUNDS = 40  # Maximum of such rounds.
SHARED_ROUNDS = 2  # First uses the curvature of the folds' mean, then each unfinished fold uses its own.


@dataclass(frozen=True)
class LogisticPath:
    """The fitted classifiers of every fold and penalty, in the units of the features given.

    Attributes:
        coefficients: (folds, penalties, outputs, d); one output for two classes (the logit of the second), one for
            each class otherwise.
        intercepts: (folds, penalties, outputs); minus infinity for a class that the fold does not have.
        classes: Number of classes.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: int

    def logits(self, features: np.ndarray) -> np.ndarray:
        """Return the logits of rows (n, d): (folds, penalties, n, outputs)."""
        folds, penalties, outputs, width = self.coefficients.shape
        flat = features @ self.coefficients.reshape(-1, width).T
        shaped = flat.reshape(len(features), folds, penalties, outputs).transpose(1, 2, 0, 3)
        return shaped + self.intercepts[:, :, None, :]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Return the probabilities of rows (n, d): (folds, penalties, n, classes)."""
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

    Minimises the sum over the fold's rows of weight x log loss plus penalty / 2 x squared coefficients; intercepts
    carry no penalty. Multinomial for three classes or more. Held-out rows are given, and named by `folds`: their
    predictions come from `probabilities` of the result, and the fit of a fold never looks at them.

    Args:
        features: (n, d), any scale.
        labels: Class indices (n,).
        penalties: (k,), positive: the inverse of scikit-learn's C.
        folds: (f, n), how often each fold learns from each row, 0 for held-out rows; None means one fold of all.
        class_weight: "balanced" gives the classes of a fold equal weight in sum; None leaves rows as they are.
        classes: Number of classes; by default the largest label plus one.
        standardise: Bring the features to mean 0 and deviation 1 over the rows that a fold learns from; False
            penalises the coefficients of the features as they are.
        tolerance: Maximum distance of the mean loss from its minimum.

    Returns:
        Coefficients and intercepts; `probabilities(features)` gives the held-out predictions of every fold at once.

    Raises:
        ValueError: a fold that has rows of one class only, or shapes that do not fit.

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
            f"features {features.shape}, labels {labels.shape}, folds {counts.shape}, penalties {penalties}"
        )
    problem = _FoldProblems.of(
        np.asarray(features, dtype=np.float64), labels, counts, class_weight, classes, standardise
    )
    fitted = np.empty((len(penalties), *problem.shape))
    before, state = None, np.zeros(problem.shape)
    for place in np.argsort(
        -penalties
    ):  # Start with the largest penalty: the change between two solutions predicts the next one.
        start = state if before is None else 2 * state - before
        before, state = state, _solve(problem, start, penalties[place], tolerance)
        fitted[place] = state
    return problem.in_given_units(fitted)


@dataclass(frozen=True)
class _FoldProblems:
    """The folds on one standardised matrix. A state is (d + 1, folds, outputs), the intercept last, in each fold's own scale.

    Attributes:
        design: (n, d + 1), standardised over all rows, a column of ones last.
        target: (n, 1, outputs), 1 where the row is of the output's class.
        weights: (n, folds, 1).
        present: (folds, outputs), whether the fold has the class; two classes have one output, which is always there.
        mean: (d, folds, 1) of the fold in the standardised matrix.
        deviation: (d, folds, 1) likewise.
        centre: (d,) of the given features.
        scale: (d,) likewise.
        products: (n, n) of the rows' features with each other, where there are fewer rows than features.
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
        # All rows together only give the common matrix its scale; each fold's own scale comes on top of it.
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
        """Return the probability of each output's class; a class that a fold does not have gets none."""
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
        """Convert states (penalties, d + 1, folds, outputs) to coefficients of the features as they were given."""
        coefficients = fitted[:, :-1] / self.deviation
        intercepts = fitted[:, -1] - (self.mean * coefficients).sum(axis=1)
        coefficients = coefficients / self.scale[:, None, None]
        intercepts = intercepts - np.einsum("pdfo,d->pfo", coefficients, self.centre)
        intercepts = np.where(self.present, intercepts, -np.inf)
        return LogisticPath(coefficients.transpose(2, 0, 3, 1), intercepts.transpose(1, 0, 2), self.classes)


def _solve(problem: _FoldProblems, start: np.ndarray, penalty: float, tolerance: float) -> np.ndarray:
    """Return the state of least loss, found first with the curvature of the folds' mean for all, then with its own for each that needs it."""
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
    """Take steps of conjugate gradients (Polak and Ribiere); return the new state, and which folds are done."""
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
    """Return the inner product of two states for each fold, (folds,)."""
    return np.einsum("dfo,dfo->f", one, other)


@dataclass
class _FoldLines:
    """The losses of the folds along their directions: `Lines` of a line search, and the probabilities at its end."""

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
        """Return the first derivatives, (folds,)."""
        self.probabilities = self.problem.probabilities(self.logits + lengths[None, :, None] * self.along)
        inner = np.einsum("nfo,nfo->f", self.weighted, self.probabilities - self.problem.target)
        return inner + self.lean + lengths * self.bend

    def curvatures(self) -> np.ndarray:
        """Return the second derivatives where the slopes were asked for last, (folds,)."""
        if self.problem.classes == 2:
            variance = self.probabilities * (1 - self.probabilities)
            return np.einsum("nfo,nfo,nfo->f", self.weighted, self.along, variance) + self.bend
        mean = (self.probabilities * self.along).sum(axis=-1, keepdims=True)
        return np.einsum("nfo,nfo,nfo->f", self.weighted, self.along - mean, self.probabilities) + self.bend


def _preconditioner(
    problem: _FoldProblems, probabilities: np.ndarray, penalty: float, shared: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the inverse curvature, one block per output, at the folds' mean or for each fold, as a function of states."""
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
    """Return a solver of (X' D X + penalty) for columns, in the smaller of the numbers of features and rows."""
    # Rows without curvature say nothing here; far from the boundary between the classes most are such.
    kept = curvature > 1e-4 * curvature.max()
    # The intercept has no penalty; a little keeps the matrix invertible where a class has almost no curvature left.
    ridge = np.full(problem.design.shape[1], penalty)
    ridge[-1] = max(1e-6 * curvature[kept].sum(), 1e-12)
    if problem.products is None:
        scaled = np.sqrt(curvature[kept])[:, None] * problem.design[kept]
        matrix = scaled.T @ scaled
        matrix[np.diag_indices(len(matrix))] += ridge
        factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        return lambda columns: cho_solve(factor, columns, check_finite=False)
    # Woodbury: the same inverse through a matrix of rows x rows, whose products are there for every penalty.
    root = np.sqrt(np.where(kept, curvature, 0))[:, None]
    matrix = root * (problem.products / penalty + 1 / ridge[-1]) * root.T
    matrix[np.diag_indices(len(matrix))] += 1
    factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)

    def solve(columns: np.ndarray) -> np.ndarray:
        straight = columns / ridge[:, None]
        inner = root * cho_solve(factor, root * (problem.design @ straight), check_finite=False)
        return straight - (inner.T @ problem.design).T / ridge[:, None]

    return solve
