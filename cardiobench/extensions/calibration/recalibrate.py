"""Fit recalibrations on validation answers."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cardiobench.core.errors import BadPredictions
from cardiobench.extensions.calibration.glm import fit_logistic, log_odds

Map = Callable[[np.ndarray], npt.NDArray[np.float64]]
"""Function of probabilities, (n,), that returns recalibrated ones."""


def platt(truth: np.ndarray, probability: np.ndarray) -> Map:
    """Fit a logistic regression of the truth on the log odds (Platt 1999; logistic recalibration, Cox 1958).

    Args:
        truth: Whether each validation row has the class, bool (n,).
        probability: Probability of the class, (n,).

    Raises:
        BadPredictions: One class is missing, the probabilities are all equal, or they separate the classes.
    """
    odds = log_odds(probability)
    found = fit_logistic(np.column_stack([np.ones(len(odds)), odds]), truth)
    if found is None:
        raise BadPredictions(
            "no recalibration: the validation answers have one class, equal probabilities, or classes without overlap."
        )
    intercept, slope = map(float, found.params)
    return lambda given: np.asarray(1 / (1 + np.exp(-(intercept + slope * log_odds(given)))))


def isotonic(truth: np.ndarray, probability: np.ndarray) -> Map:
    """Fit an isotonic regression of the truth on the probabilities (Zadrozny and Elkan, KDD 2002).

    The fitted values lie between 1 / (n + 2) and 1 minus it, so that their log odds are finite. Arguments and errors as
    in `platt`.
    """
    from sklearn.isotonic import IsotonicRegression

    if truth.all() or not truth.any() or np.ptp(probability) == 0:
        raise BadPredictions("no recalibration: the validation answers have one class or equal probabilities.")
    edge = 1 / (len(truth) + 2)
    found = IsotonicRegression(y_min=edge, y_max=1 - edge, out_of_bounds="clip").fit(probability, truth.astype(float))
    return lambda given: np.asarray(found.predict(given), dtype=np.float64)


METHODS = {"Platt": platt, "isotonic": isotonic}
