"""Means of precomputed unit scores, with intervals over patients."""

import numpy as np
import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import Estimate
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric


def mean_metric(number: Number, worst: float = np.nan) -> Metric:
    """Return the metric whose value is the mean of precomputed scores, one per unit.

    Its sample has the scores as answers and 0 as the truth.

    Args:
        number: Definition of the number.
        worst: Worst possible score of a patient (`Metric.worst`); NaN if unknown.
    """
    key = number.key

    def compute(references: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
        return {key: float(predictions.mean())}

    def compute_resamples(
        references: np.ndarray, predictions: np.ndarray, weights: np.ndarray
    ) -> dict[str, np.ndarray]:
        return {key: weights @ predictions / weights.sum(axis=1)}

    def influence(references: np.ndarray, predictions: np.ndarray) -> dict[str, np.ndarray]:
        return {key: (predictions - predictions.mean()) / len(predictions)}

    def as_wrong_as_can_be(references: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
        return {} if np.isnan(worst) else {key: worst}

    return Metric(
        key,
        compute,
        {key: number},
        compute_resamples=compute_resamples,
        influence=influence,
        support=lambda references, predictions: {},
        worst=as_wrong_as_can_be,
    )


def mean_sampler(values: pd.Series, patients: pd.Series, seed: int = 0) -> Sampler:
    """Return the sample of the units that have a value, with their patients."""
    known = values.dropna()
    numbers = known.to_numpy(np.float64)
    clusters = Clusters.of(patients[known.index].to_numpy())
    return Sampler(ScoringInput(np.zeros(len(numbers)), numbers), clusters, np.zeros(0, dtype=bool), RESAMPLES, seed)


def estimate_mean(number: Number, values: pd.Series, patients: pd.Series, worst: float = np.nan) -> Estimate:
    """Return the mean of per-unit scores with its interval over patients; units without a value are left out.

    Args:
        number: Definition of the number.
        values: Score of each unit.
        patients: Patient of each unit.
        worst: Worst value, as in `mean_metric`.
    """
    sampler = mean_sampler(values, patients)
    if not len(sampler.sample):
        return Estimate(np.nan, np.nan, np.nan, 0, 0, "this number is undefined for all units")
    return estimate_metric(mean_metric(number, worst), sampler)[number.key]
