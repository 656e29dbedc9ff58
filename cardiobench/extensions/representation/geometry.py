"""Neighbours, centroids and clusters of groups in an embedding space, by the formulas of `hf_metrics/`."""

from collections.abc import Mapping

import numpy as np

from cardiobench.metrics.load import load_formula, load_metric
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.sample import BalancedSample

MEASURES = ("knn_agreement", "centroid_separation", "ari", "silhouette")
NEIGHBOURS = 10
CLUSTERING = {"covariance": "diag", "n_init": 10, "seed": 42}


def standardised(features: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and standard deviation 1; one that never varies becomes 0."""
    mean, deviation = mean_and_std(features)
    return (features - mean) / deviation


def geometry(vectors: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """Return the agreement of 10 neighbours and its chance level, centroid separation, ARI of mixture clusters, silhouette.

    Args:
        vectors: (n, d), at a common scale.
        groups: Code of each vector, (n,).
    """
    scores = load_metric("knn_agreement").compute(groups, vectors, k=min(NEIGHBOURS, len(groups) - 1))
    return {
        **scores,
        **separations(vectors, groups),
        **load_metric("ari").compute(groups, vectors, **CLUSTERING),
        **load_metric("silhouette").compute(groups, vectors),
    }


def separations(vectors: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """Return centroid separation, and under names of their own the other quantities that papers may mean by it."""
    compute, variants = load_metric("centroid_separation").compute, load_formula("centroid_separation").VARIANTS
    values = {variant: compute(groups, vectors, variant)["centroid_separation"] for variant in variants}
    named = {f"centroid_separation_{variant}": value for variant, value in values.items() if variant != variants[0]}
    return {"centroid_separation": values[variants[0]], **named}


def levels(sample: BalancedSample) -> Mapping[str, Mapping[str, float]]:
    """Return the geometry of all records by label (`label`) and, with two datasets or more, by dataset (`dataset`).

    With two or more, also the label's geometry inside each dataset, at that dataset's own scale: `label in <name>`.
    """
    features, labels, datasets = sample.concatenate()
    vectors = standardised(features)
    measured = {"label": geometry(vectors, labels)}
    if len(sample.parts) > 1:
        measured["dataset"] = geometry(vectors, datasets)
        for part in sample.parts:
            measured[f"label in {part.name}"] = geometry(standardised(part.features), part.labels)
    return measured
