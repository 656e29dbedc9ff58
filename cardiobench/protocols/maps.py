"""Compute UMAP maps of the same vectors with several settings, and their agreement with each other and the data."""

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from scipy.spatial import procrustes
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

from cardiobench.core.errors import MissingExtra

SETTINGS = tuple((neighbours, distance) for neighbours in (15, 50) for distance in (0.1, 0.5))
"""(n_neighbors, min_dist); the first setting is compared with the figure of the paper."""
ECHO_PAPER = (30, 0.12)
"""Setting of the maps of views and ejection fractions of arXiv:2510.00520, with cosine distance."""
ECHO_PATHOLOGY = (30, 0.1)
"""Setting of the maps of pathologies (Figure 18)."""
SEED = 42
FEWEST = 4
"""Minimum number of vectors of a map."""
Metric = Literal["euclidean", "cosine"]


def setting_name(neighbours: int, distance: float) -> str:
    """Return a setting as text."""
    return f"{neighbours} neighbours, distance {distance:g}"


def umap_maps(
    vectors: np.ndarray,
    settings: Sequence[tuple[int, float]] = SETTINGS,
    seed: int = SEED,
    metric: Metric = "euclidean",
) -> dict[str, np.ndarray]:
    """Return two coordinates of each vector for each setting; neighbours are computed once.

    Args:
        vectors: Vectors (n, d) on a common scale, with n at least `FEWEST`.
        settings: (n_neighbors, min_dist).
        seed: Seed of every layout.
        metric: Distance between vectors.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Suppress warnings of TensorFlow, which is not needed.
            import umap
    except ImportError:
        raise MissingExtra("UMAP", "analysis", "umap-learn") from None
    n_neighbours = min(max(neighbours for neighbours, _ in settings), len(vectors) - 1)
    distance, index = nearest_neighbours(vectors, n_neighbours, metric)
    coordinates = {}
    for neighbours, spread in settings:
        count = min(neighbours, n_neighbours)
        with warnings.catch_warnings():
            # UMAP warns that new points cannot be transformed and that a seed implies one thread; both are intended.
            warnings.filterwarnings("ignore", module="umap")
            model = umap.UMAP(
                n_neighbors=count,
                min_dist=spread,
                metric=metric,
                random_state=seed,
                n_jobs=1,
                precomputed_knn=(index[:, :count], distance[:, :count], None),
                force_approximation_algorithm=True,
            )
            coordinates[setting_name(neighbours, spread)] = model.fit_transform(vectors.astype(np.float32)).astype(
                float
            )
    return coordinates


def nearest_neighbours(vectors: np.ndarray, count: int, metric: Metric = "euclidean") -> tuple[np.ndarray, np.ndarray]:
    """Return distances and indices of the nearest vectors, (n, count), exact; the first is the vector itself, at 0."""
    single = vectors.astype(np.float32)
    distance, index = (
        NearestNeighbors(n_neighbors=count, algorithm="brute", metric=metric).fit(single).kneighbors(single)
    )
    # Identical vectors may be listed before the vector itself.
    for row in np.flatnonzero(index[:, 0] != np.arange(len(index))):
        position = np.flatnonzero(index[row] == row)
        index[row, position[0] if len(position) else -1] = index[row, 0]
        index[row, 0] = row
    distance[:, 0] = 0.0
    return distance, index


def stability(
    vectors: np.ndarray, coordinates: dict[str, np.ndarray], neighbours: int = 10, metric: Metric = "euclidean"
) -> pd.DataFrame:
    """Return the trustworthiness of each map (1 = no false neighbour) and the Procrustes disparity of each pair (0 = same shape).

    Returns:
        measure, setting, other, value.
    """
    count = min(neighbours, (len(vectors) - 1) // 2)
    rows = [
        ("trustworthiness", name, "", trustworthiness(vectors, places, n_neighbors=count, metric=metric))
        for name, places in coordinates.items()
    ]
    rows += [
        ("procrustes", a, b, procrustes(coordinates[a], coordinates[b])[2]) for a, b in combinations(coordinates, 2)
    ]
    return pd.DataFrame(rows, columns=["measure", "setting", "other", "value"])
