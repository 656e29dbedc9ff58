"""Measure neighbours, centroids and clusters of groups in an embedding space, with formulas from `hf_metrics/`."""

from collections.abc import Mapping

import numpy as np

from cardiobench.metrics.load import load_formula, load_metric
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.sample import BalancedSample

MEASURES = ("knn_agreement", "centroid_separation", "ari", "silhouette")
NEIGHBOURS = 10
CLUSTERING = {"covariance": "diag", "n_init": 10, "seed": 42}


def standardised(features: np.ndarray) -> np.ndarray:
    """Standardise columns of (n, d) to mean 0 and standard deviation 1; constant columns become 0."""
    mean, deviation = mean_and_std(features)
    return (features - mean) / deviation


def geometry(vectors: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """Return neighbour agreement with its chance level, centroid separation, cluster ARI and silhouette.

    Args:
        vectors: Standardised vectors, (n, d).
        groups: Group code of each vector, (n,).
    """
    scores = load_metric("knn_agreement").compute(groups, vectors, k=min(NEIGHBOURS, len(groups) - 1))
    return {
        **scores,
        **separations(vectors, groups),
        **load_metric("ari").compute(groups, vectors, **CLUSTERING),
        **load_metric("silhouette").compute(groups, vectors),
    }


def separations(vectors: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """Return centroid separation and alternative definitions under separate names."""
    compute, variants = load_metric("centroid_separation").compute, load_formula("centroid_separation").VARIANTS
    values = {variant: compute(groups, vectors, variant)["centroid_separation"] for variant in variants}
    named = {f"centroid_separation_{variant}": value for variant, value in values.items() if variant != variants[0]}
    return {"centroid_separation": values[variants[0]], **named}


def levels(sample: BalancedSample) -> Mapping[str, Mapping[str, float]]:
    """Return the geometry of all records by `label` and, with at least two datasets, by `dataset`.

    With at least two datasets, also return the geometry by label within each standardised dataset, as `label in
    <name>`.
    """
    features, labels, datasets = sample.concatenate()
    vectors = standardised(features)
    measured = {"label": geometry(vectors, labels)}
    if len(sample.parts) > 1:
        measured["dataset"] = geometry(vectors, datasets)
        for part in sample.parts:
            measured[f"label in {part.name}"] = geometry(standardised(part.features), part.labels)
    return measured
