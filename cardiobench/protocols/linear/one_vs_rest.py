"""One-vs-rest logistic regression for many classes with shared matrix products.

Uses L-BFGS in coordinates in which the Hessian of the loss is nearly the identity. The classes share only the passes
through the rows: each has its own steps, memory and convergence, and converged classes leave the products. Minimising
the sum of their losses would take ten times the work, because the curvatures of all classes would share one memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import expit, logit

from cardiobench.protocols.linear.line_search import line_search
from cardiobench.protocols.linear.path import SEARCH_TOLERANCE, TOLERANCE, Path
from cardiobench.protocols.linear.rows import PrincipalRows

STEPS = 1000  # Maximum number of steps.
MEMORY = 10  # Number of remembered steps.
FLATTER = (
    # Minimum ratio of the curvature along a direction to the mean curvature; smaller ratios occur if rows are
    # separable.
    10
)


def one_vs_rest_path(
    features: np.ndarray,
    indices: np.ndarray,
    labels: np.ndarray,
    penalties: Sequence[float] | np.ndarray,
    *,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
    tolerance: float = TOLERANCE,
) -> Path:
    """Fit scikit-learn's StandardScaler and LogisticRegression(C=1/penalty) for each class separately.

    A penalty is fitted on demand, so that a search can stop early: the smallest penalties take most of the time.

    Args:
        features: Feature matrix (N, d), any float type.
        indices: Indices of the training rows, shape (n,).
        labels: Labels of these rows, shape (n, K): 1 if present, 0 if absent, NaN if unmeasured; unmeasured ones are
            ignored.
        penalties: Positive penalties.
        scale: Mean and deviation (d,) of each feature; by default those of these rows.
        tolerance: Maximum excess of a class's mean loss over its minimum; from `SEARCH_TOLERANCE` on, products are
            computed in float32, whose rounding error is far smaller.

    Yields:
        Each penalty, strongest first, with coefficients (d, K) and intercepts (K,) in the units of the features. The
        intercept is infinity for a class present in all rows, minus infinity for one absent from all, and 0 for one
        that was never measured.
    """
    known = ~np.isnan(labels)
    positive, measured = np.nansum(labels, axis=0), known.sum(axis=0)
    fitted = (positive > 0) & (positive < measured)
    dtype = np.float32 if tolerance >= SEARCH_TOLERANCE else np.float64
    rows = PrincipalRows(features, indices, np.ones(len(indices)), scale, dtype, exact_axes=False)
    targets, known = np.nan_to_num(labels[:, fitted]).astype(dtype), known[:, fitted].astype(dtype)
    state = np.zeros((len(rows.values) + 1, int(fitted.sum())))
    state[-1] = logit((positive / np.maximum(measured, 1))[fitted])
    coefficients, intercepts = np.zeros((features.shape[1], len(fitted))), np.zeros(len(fitted))
    intercepts[(positive == 0) & (measured > 0)] = -np.inf
    intercepts[(positive == measured) & (measured > 0)] = np.inf
    for penalty in sorted(penalties, reverse=True):  # Each solution is a good start for the next.
        state = _minimize(rows, targets, known, state, penalty, tolerance)
        coefficients[:, fitted], intercepts[fitted] = rows.in_feature_units(state)
        yield penalty, (coefficients.copy(), intercepts.copy())


@dataclass(frozen=True)
class _Classes:
    """State of the classes that have not converged; the last axis of all arrays is the class.

    Attributes:
        number: Number of rows of each class, shape (k,).
        targets: Targets, shape (n, k).
        known: 1 if the class was measured, (n, k).
        state: Coefficients of the coordinates, then the intercept, (r + 1, k).
        outputs: Outputs of the rows at the state, shape (n, k).
        steps: Changes of the state, the oldest first, (m, r + 1, k).
        bends: Corresponding changes of the gradient, (m, r + 1, k).
    """

    number: np.ndarray
    targets: np.ndarray
    known: np.ndarray
    state: np.ndarray
    outputs: np.ndarray
    gradient: np.ndarray
    steps: np.ndarray
    bends: np.ndarray

    def take(self, kept: np.ndarray) -> "_Classes":
        """Select some of the classes."""
        return replace(self, **{field.name: getattr(self, field.name)[..., kept] for field in fields(self)})

    def direction(self, inverse: np.ndarray) -> np.ndarray:
        """Return the inverse Hessian times the gradient, downhill, (r + 1, k): the two loops of L-BFGS.

        Args:
            inverse: Initial inverse Hessian, shape (r + 1, k).
        """
        ahead, shares = self.gradient.copy(), []
        products = np.einsum("mdk,mdk->mk", self.steps, self.bends)
        inner = np.divide(1, products, out=np.zeros_like(products), where=products > 0)
        for step, bend, weight in zip(self.steps[::-1], self.bends[::-1], inner[::-1], strict=True):
            shares.append(weight * _dot(step, ahead))
            ahead -= shares[-1] * bend
        ahead *= inverse
        for step, bend, weight, share in zip(self.steps, self.bends, inner, shares[::-1], strict=True):
            ahead += (share - weight * _dot(bend, ahead)) * step
        return -ahead


class _ClassLines:
    """Losses of the classes along their directions, for `line_search`."""

    def __init__(self, classes: _Classes, direction: np.ndarray, along: np.ndarray, decay: np.ndarray):
        """Prepare the search, given the change `along` (n, k) of the outputs along the direction."""
        self._classes, self._along, self._weighted = classes, along, classes.known * along
        self._bend, self._lean = _dot(decay * direction, direction), _dot(decay * direction, classes.state)

    def slopes(self, lengths: np.ndarray) -> np.ndarray:
        """Return the first derivatives. The shape is (k,)."""
        self._probabilities = expit(self._classes.outputs + lengths.astype(self._along.dtype) * self._along)
        inner = _dot(self._weighted, self._probabilities - self._classes.targets)
        return inner + self._lean + lengths * self._bend

    def curvatures(self) -> np.ndarray:
        """Return the second derivatives at the last evaluated lengths. The shape is (k,)."""
        return _dot(self._weighted * self._along, self._probabilities * (1 - self._probabilities)) + self._bend


def _minimize(
    rows: PrincipalRows, targets: np.ndarray, known: np.ndarray, start: np.ndarray, penalty: float, tolerance: float
) -> np.ndarray:
    """Return the state with the lowest penalised loss of each class. The shape is (r + 1, k)."""
    fitted = start.copy()
    decay = np.append(np.full(len(start) - 1, penalty), 0.0)[:, None]
    sizes = np.append(rows.values, rows.count)[:, None]
    outputs, none = rows.outputs(start), np.empty((0, *start.shape))
    gradient = rows.gradient(known * (expit(outputs) - targets)) + decay * start
    left = _Classes(np.arange(start.shape[1]), targets, known, start, outputs, gradient, none, none)
    for _ in range(STEPS):
        probabilities = expit(left.outputs)
        curvature = _dot(left.known * probabilities, 1 - probabilities) / rows.count
        inverse = 1 / (curvature * sizes + decay)
        # With the right curvature, the excess loss is half the squared norm of its gradient in that metric.
        above = _dot(left.gradient * inverse, left.gradient) / 2
        unfinished = FLATTER * above > tolerance * left.known.sum(axis=0)
        fitted[:, left.number] = left.state
        if not unfinished.any():
            break
        if not unfinished.all():
            left, inverse = left.take(unfinished), inverse[:, unfinished]
        left = _step(rows, left, left.direction(inverse), decay)
    return fitted


def _step(rows: PrincipalRows, classes: _Classes, direction: np.ndarray, decay: np.ndarray) -> _Classes:
    """Return the classes after a step along their directions (r + 1, k).

    `decay` is the penalty of each row of the state, (r + 1, 1).
    """
    along = rows.outputs(direction)
    lengths = line_search(_ClassLines(classes, direction, along, decay), len(classes.number))
    step = lengths * direction
    state, outputs = classes.state + step, classes.outputs + lengths.astype(along.dtype) * along
    gradient = rows.gradient(classes.known * (expit(outputs) - classes.targets)) + decay * state
    steps = np.concatenate([classes.steps[-MEMORY + 1 :], step[None]])
    bends = np.concatenate([classes.bends[-MEMORY + 1 :], (gradient - classes.gradient)[None]])
    return replace(classes, state=state, outputs=outputs, gradient=gradient, steps=steps, bends=bends)


def _dot(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the inner product of the columns of two matrices, in float64. The shape is (k,)."""
    return np.einsum("dk,dk->k", one, other, dtype=np.float64)
