"""Permutation test of out-of-fold predictions: labels are permuted between patients and all folds are refitted.

Out-of-fold answers must not be permuted themselves. The answers of a fold were learned from the labels of the others,
so the test would reject too often for pure noise, above all at small p-values.
"""

from collections.abc import Iterator

import numpy as np
import scipy

from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import (
    DRAWS,
    MOST_PATIENTS,
    NOTHING_PERMUTED,
    Information,
    PatientPermutations,
    p_value,
    tails_of,
)

BLOCK = 200
"""Number of permutations that are fitted together."""
LARGE = 0.2
"""p-value above which no further block is drawn, far above the level of any verdict."""
PENALTY = 1.0
"""Ridge penalty for standardised features, per feature."""


def refitted_test(
    features: np.ndarray,
    labels: np.ndarray,
    folds: np.ndarray,
    clusters: Clusters,
    draws: int = DRAWS,
    seed: int = 0,
) -> Information:
    """Test whether embeddings carry information about a binary label, by out-of-fold ridge regression.

    Labels are permuted within each fold, which keeps the class balance of the folds. One decomposition per fold serves
    all permutations. Permutations are drawn in blocks and stop early if p is clearly large.

    Args:
        features: Embeddings, (n, d).
        labels: Labels, 0 or 1, (n,).
        folds: Fold that holds out each row, (n,); all rows of a patient are in the same fold.
        clusters: Patients of the rows.
        draws: Maximum number of permutations.
        seed: Seed of the permutations, and of the selection of patients if there are more than `MOST_PATIENTS`.

    Returns:
        The outcome for the AUROC over all rows; p is 1 if all rows have the same label.
    """
    rng = np.random.default_rng(seed)
    if clusters.count > MOST_PATIENTS:
        rows = np.flatnonzero(np.isin(clusters.of_row, rng.permutation(clusters.count)[:MOST_PATIENTS]))
        features, labels, folds, clusters = features[rows], labels[rows], folds[rows], clusters.take(rows)
    if np.ptp(labels) == 0:
        return Information.of(NOTHING_PERMUTED, "auroc", clusters.count)
    of_patient = np.empty(clusters.count, dtype=np.int64)
    of_patient[clusters.of_row] = folds
    permutations = PatientPermutations(clusters, rng, of_patient)
    labels = labels[permutations.rows].astype(np.float64)
    ridge = FoldRidge(features[permutations.rows], folds[permutations.rows])
    observed = float(areas(labels[:, None], ridge.scores(labels[:, None]))[0])
    permuted = np.empty(0)
    for block in _blocks(permutations, labels, draws):
        permuted = np.concatenate([permuted, areas(block, ridge.scores(block))])
        if p_value(observed, permuted) >= LARGE:
            break
    tails = tails_of(observed, permuted)
    test = f"{len(permuted):,} refits on permuted labels"
    return Information.of(tails._replace(test=test), "auroc", clusters.count)._replace(refitted=True)


def _blocks(permutations: PatientPermutations, labels: np.ndarray, draws: int) -> Iterator[np.ndarray]:
    """Yield permuted labels (n, b), up to `draws` permutations in total."""
    for first in range(0, draws, BLOCK):
        sources = list(permutations.draw(min(BLOCK, draws - first)))
        yield labels[np.concatenate(sources).T]


class FoldRidge:
    """Ridge regressions of all folds for fixed features and varying labels."""

    def __init__(self, features: np.ndarray, folds: np.ndarray) -> None:
        """Decompose the training rows of each fold.

        Args:
            features: Embeddings, (n, d).
            folds: Fold that holds out each row, (n,).
        """
        rows = features - features.mean(axis=0)
        spread = rows.std(axis=0)
        rows /= np.where(spread > 0, spread, 1)
        penalty = PENALTY * rows.shape[1]
        if len(rows) < rows.shape[1]:  # The rotation leaves at most as many columns as there are rows.
            values, vectors = np.linalg.eigh(rows @ rows.T)
            rows = vectors * np.sqrt(np.maximum(values, 0))
        self._parts = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
        self._rows = rows
        whole, total = rows.T @ rows, rows.sum(axis=0)
        self._solved = []
        for part in self._parts:
            held, n = rows[part], len(rows) - len(part)
            mean = (total - held.sum(axis=0)) / n
            products = whole - held.T @ held - n * np.outer(mean, mean)
            products[np.diag_indices_from(products)] += penalty
            # Held-out rows are projected once, so that each permutation needs only a matrix product.
            self._solved.append((scipy.linalg.solve(products, (held - mean).T, assume_a="pos").T, mean))

    def scores(self, labels: np.ndarray) -> np.ndarray:
        """Return the out-of-fold score of each row, (n, b), for labels (n, b)."""
        found = np.empty_like(labels)
        products, total = self._rows.T @ labels, labels.sum(axis=0)
        for part, (solved, mean) in zip(self._parts, self._solved, strict=True):
            held = labels[part]
            learned = products - self._rows[part].T @ held - np.outer(mean, total - held.sum(axis=0))
            found[part] = solved @ learned
        return found


def areas(labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the AUROC of each column, (b,), for binary labels (n, b) and scores (n, b)."""
    ranks = scipy.stats.rankdata(scores, axis=0)
    positives = labels.sum(axis=0)
    return ((ranks * labels).sum(axis=0) / positives - (positives + 1) / 2) / (len(labels) - positives)
