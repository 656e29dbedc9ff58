"""Fit logistic regressions with statsmodels."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from cardiobench.core.errors import MissingExtra
from cardiobench.stats.bootstrap import LEVEL
from cardiobench.stats.clusters import Clusters

MOST_CONDITION = 1e10
"""Condition number beyond which patients do not determine the coefficients."""
LARGEST = 1e3
"""Coefficient beyond which the classes count as separated."""
SMALLEST = 1e-6
"""Bound of probabilities before their log odds are taken, as in the metric `calibration_report`."""


def log_odds(probability: np.ndarray) -> npt.NDArray[np.float64]:
    """Return the log odds of probabilities, (n,), clipped to `SMALLEST` and 1 minus it."""
    share = np.clip(np.asarray(probability, dtype=np.float64), SMALLEST, 1 - SMALLEST)
    return np.asarray(np.log(share / (1 - share)))


def fit_logistic(columns: np.ndarray, truth: np.ndarray, offset: np.ndarray | None = None) -> Any | None:
    """Fit a logistic regression without penalty.

    Args:
        columns: Design matrix, (n, k).
        truth: Whether each row has the class, bool (n,).
        offset: Part of the log odds with coefficient 1, (n,).

    Returns:
        Fitted model of statsmodels, or None if the columns separate the classes or depend on each other.

    Raises:
        MissingExtra: The package statsmodels is not installed.
    """
    try:
        from statsmodels.genmod.families import Binomial
        from statsmodels.genmod.generalized_linear_model import GLM
    except ImportError:
        raise MissingExtra("calibration", "analysis", "statsmodels") from None
    if truth.all() or not truth.any() or np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # Separation and failed convergence are found below.
        found = GLM(truth.astype(np.float64), columns, family=Binomial(), offset=offset).fit(maxiter=100, tol=1e-10)
    fitted = np.asarray(found.params)
    stable = found.converged and np.isfinite(fitted).all() and np.abs(columns @ fitted).max() < LARGEST
    separated = bool((np.abs(found.fittedvalues - truth) < SMALLEST).all()) if stable else True
    return None if separated else found


def covariance(
    found: Any, columns: np.ndarray, truth: np.ndarray, clusters: Clusters
) -> npt.NDArray[np.float64] | None:
    """Compute the covariance of the coefficients over patients, (k, k), by leaving out each patient in one Newton step.

    It exceeds the covariance of statsmodels for clusters, which is too small if a few patients have much influence
    (Bell and McCaffrey, Survey Methodology 28, 2002, the estimator called CR3).

    Args:
        found: Fitted model.
        columns: Its design matrix, (n, k).
        truth: Whether each row has the class, bool (n,).
        clusters: Patients of the rows.

    Returns:
        Covariance, or None if all patients but one do not determine the coefficients.
    """
    mean = np.asarray(found.fittedvalues)
    weighted = columns * (mean * (1 - mean))[:, None]
    products = (weighted[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)
    of_patient = clusters.sum(products).reshape(clusters.count, columns.shape[1], -1)
    scores = clusters.sum(columns * (truth - mean)[:, None])
    others = of_patient.sum(axis=0) - of_patient
    if (np.linalg.cond(others) > MOST_CONDITION).any():
        return None
    moved = np.linalg.solve(others, scores[..., None])[..., 0]
    centred = moved - moved.mean(axis=0)
    return np.asarray((clusters.count - 1) / clusters.count * centred.T @ centred)


def quantile(clusters: Clusters) -> float:
    """Return the quantile of Student's t for a 95 % interval, with the effective number of patients minus 1."""
    return float(scipy.stats.t.ppf((1 + LEVEL) / 2, max(clusters.effective - 1, 1)))
