"""Compare embeddings of the same records by linear CKA and canonical correlation."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.cross_decomposition import CCA
from sklearn.decomposition import PCA

from cardiobench.metrics.load import load_metric
from cardiobench.protocols.sample import BalancedSample

ALL = "all"
COLUMNS = ["model", "other", "dataset", "linear_cka", "canonical_correlation", "records"]
DIRECTIONS = 10
"""Number of principal components of each model that are correlated."""
RECORDS_PER_DIRECTION = 10
"""Minimum number of records for each direction; with fewer, unrelated vectors correlate, too."""


def similarity(samples: Sequence[tuple[str, BalancedSample]]) -> pd.DataFrame:
    """Return linear CKA and mean canonical correlation of all pairs of models on shared records, by dataset and overall.

    Args:
        samples: Pairs of model name and records.

    Returns:
        Table with the columns model, other, dataset (`all` for all datasets), linear_cka, canonical_correlation and
        records.
    """
    formula = load_metric("linear_cka").compute
    rows = []
    for (one, left), (other, right) in combinations(samples, 2):
        theirs = {part.name: part for part in right.parts}
        pairs = []
        for part in left.parts:
            if part.name in theirs:
                _, mine, yours = np.intersect1d(part.ids, theirs[part.name].ids, return_indices=True)
                pairs.append((part.name, part.features[mine], theirs[part.name].features[yours]))
        if len(pairs) > 1:
            pairs.append((ALL, np.concatenate([x for _, x, _ in pairs]), np.concatenate([y for *_, y in pairs])))
        rows += [
            (one, other, name, formula(x, y)["linear_cka"], canonical_correlation(x, y), len(x))
            for name, x, y in pairs
            if len(x) > 1
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def canonical_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean canonical correlation of the first principal components of two embeddings of the same records.

    In all dimensions, embeddings with fewer records than dimensions are perfectly correlated. The correlation is
    therefore that of 10 principal components, or fewer if there are fewer than 100 records (SVCCA, arXiv:1706.05806).

    Args:
        one: Vectors of a model, (n, d).
        other: Vectors of another model, (n, e).

    Returns:
        Number in [0, 1]; NaN for fewer than 10 records or for constant vectors.
    """
    ranks = (np.linalg.matrix_rank(part - part.mean(axis=0)) for part in (one, other))
    count = min(DIRECTIONS, len(one) // RECORDS_PER_DIRECTION, *map(int, ranks))
    if count < 1:
        return float("nan")
    left, right = (PCA(count, svd_solver="full").fit_transform(part.astype(np.float64)) for part in (one, other))
    pairs = zip(*(part.T for part in CCA(count, max_iter=5000).fit_transform(left, right)), strict=True)
    return float(np.mean([min(abs(np.corrcoef(x, y)[0, 1]), 1.0) for x, y in pairs]))
