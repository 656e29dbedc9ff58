"""A fitted linear layer on frozen features."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from cardiobench.protocols.features import row_blocks
from cardiobench.protocols.linear.one_vs_rest import one_vs_rest_path
from cardiobench.protocols.linear.path import TOLERANCE, Path
from cardiobench.protocols.linear.rows import PrincipalRows
from cardiobench.protocols.linear.streamed import logistic_path


@dataclass(frozen=True)
class LinearModel:
    """Linear layer in the units of the features.

    Attributes:
        coefficients: Shape (d, outputs); one output for regression and for two classes.
        intercepts: Shape (outputs,).
        classes: Number of classes; 0 for regression.
        multilabel: Whether a recording can have several classes; then there is one output per class.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: int
    multilabel: bool = False

    def predict(self, features: np.ndarray, indices: np.ndarray | None = None) -> np.ndarray:
        """Return numbers (n,), or class probabilities (n, classes).

        Args:
            features: Feature matrix (N, d), any float type; read in blocks.
            indices: Indices of the rows to predict, shape (n,); None for all.
        """
        return predict_all([self], features, indices)[0]

    def from_outputs(self, outputs: np.ndarray) -> np.ndarray:
        """Return the numbers (n,), or class probabilities (n, classes), of the layer's outputs (n, outputs)."""
        if not self.classes:
            return outputs[:, 0]
        if self.multilabel:
            return expit(outputs)
        if self.classes == 2:
            return np.concatenate([expit(-outputs), expit(outputs)], axis=1)
        return softmax(outputs, axis=1)


def predict_all(
    models: Sequence[LinearModel], features: np.ndarray, indices: np.ndarray | None = None
) -> list[np.ndarray]:
    """Return the predictions of each model for rows (n,), as `LinearModel.predict` does, reading the features once."""
    count = len(features) if indices is None else len(indices)
    outputs = [np.empty((count, model.coefficients.shape[1])) for model in models]
    for rows, block in row_blocks(features, indices):
        for model, filled in zip(models, outputs, strict=True):
            filled[rows] = block @ model.coefficients + model.intercepts
    return [model.from_outputs(filled) for model, filled in zip(models, outputs, strict=True)]


def linear_path(
    features: np.ndarray,
    indices: np.ndarray,
    labels: np.ndarray,
    penalties: Sequence[float],
    *,
    classes: int = 0,
    class_weight: str | None = None,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
    tolerance: float = TOLERANCE,
) -> Iterator[tuple[float, LinearModel]]:
    """Fit ridge or logistic regression on standardised features for each penalty.

    Args:
        features: Feature matrix (N, d), any float type; read in blocks, never copied as a whole.
        indices: Indices of the training rows, (n,).
        labels: Numbers or class indices of these rows, (n,), or 0, 1 and NaN for each class of a multilabel task, (n, K).
        penalties: Positive factors of the squared coefficients of the standardised features.
        classes: Number of classes; 0 for regression.
        class_weight: "balanced" or None; ignored for multilabel tasks.
        scale: Mean and deviation (d,) of each feature; by default those of these rows.
        tolerance: Maximum excess of the mean log loss over its minimum.

    Yields:
        Each penalty and its model, strongest first, fitted on demand.
    """
    rows = features, indices, labels, penalties
    if labels.ndim == 2:
        path, classes = one_vs_rest_path(*rows, scale=scale, tolerance=tolerance), labels.shape[1]
    elif classes:
        path = logistic_path(*rows, classes=classes, class_weight=class_weight, scale=scale, tolerance=tolerance)
    else:
        path = ridge_path(*rows, scale=scale)
    for penalty, layer in path:
        yield penalty, LinearModel(*layer, classes, labels.ndim == 2)


def fit_linear_models(
    features: np.ndarray, indices: np.ndarray, labels: np.ndarray, penalties: Sequence[float], **settings: Any
) -> list[LinearModel]:
    """Return the models of `linear_path`, in the order of the penalties."""
    found = dict(linear_path(features, indices, labels, penalties, **settings))
    return [found[penalty] for penalty in penalties]


def ridge_path(
    features: np.ndarray,
    indices: np.ndarray,
    targets: np.ndarray,
    penalties: Sequence[float] | np.ndarray,
    *,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
) -> Path:
    """Fit ridge regression on standardised features for many penalties from one eigendecomposition.

    Args:
        features: Feature matrix, shape (N, d).
        indices: Indices of the training rows, shape (n,).
        targets: Numbers of these rows, (n,).
        penalties: Positive penalties on the squared coefficients.
        scale: Mean and deviation (d,) of each feature; by default those of these rows.

    Yields:
        Each penalty, strongest first, with coefficients (d, 1) and intercepts (1,) in the units of the features.
    """
    rows = PrincipalRows(features, indices, np.ones(len(indices)), scale)
    mean = targets.mean()
    products = rows.gradient((targets - mean)[:, None])[:-1]
    for penalty in sorted(penalties, reverse=True):
        yield penalty, rows.in_feature_units(np.concatenate([products / (rows.values[:, None] + penalty), [[mean]]]))
