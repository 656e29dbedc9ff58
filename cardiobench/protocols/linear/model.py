"""A fitted linear layer on frozen features: what a probe has learned, to be asked of any recordings."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.linear.logistic import TOLERANCE, logistic_path
from cardiobench.protocols.linear.ridge import ridge_path, row_axes


@dataclass(frozen=True)
class LinearModel:
    """A layer in the units of the features.

    Attributes:
        coefficients: (d, outputs); one output for numbers and for two classes.
        intercepts: (outputs,).
        classes: 0 for numbers.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: int

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Numbers (n,), or class probabilities (n, classes), of features (n, d)."""
        outputs = features @ self.coefficients + self.intercepts
        if not self.classes:
            return outputs[:, 0]
        if self.classes == 2:
            return np.concatenate([expit(-outputs), expit(outputs)], axis=1)
        return softmax(outputs, axis=1)


def linear_models(
    features: np.ndarray,
    labels: np.ndarray,
    penalties: np.ndarray,
    *,
    classes: int = 0,
    class_weight: str | None = None,
    scale: tuple[np.ndarray, np.ndarray] | None = None,
    tolerance: float = TOLERANCE,
) -> list[LinearModel]:
    """Ridge regression, or logistic regression, on standardised features for each penalty.

    Args:
        features: (n, d).
        labels: numbers or class indices (n,).
        penalties: on the squared coefficients of the standardised features.
        classes: 0 for numbers.
        class_weight: "balanced" or None.
        scale: mean and deviation (d,) of each feature; by default those of `features`.
        tolerance: of `logistic_path`.

    Returns:
        One model a penalty.
    """
    mean, deviation = mean_and_std(features) if scale is None else scale
    known = (features - mean) / deviation
    axes = row_axes(known)
    if axes is not None:
        known = known @ axes
    penalties = np.asarray(penalties, dtype=np.float64)
    if classes:
        path = logistic_path(
            known,
            labels,
            penalties,
            class_weight=class_weight,
            classes=classes,
            standardise=False,
            tolerance=tolerance,
        )
        coefficients, intercepts = path.coefficients[0].swapaxes(1, 2), path.intercepts[0]
    else:
        found, constants = ridge_path(known, labels, penalties)
        coefficients, intercepts = found.T[:, :, None], constants[:, None]
    made = []
    for weights, constant in zip(coefficients, intercepts, strict=True):
        weights = (weights if axes is None else axes @ weights) / deviation[:, None]
        made.append(LinearModel(weights, constant - mean @ weights, classes))
    return made
