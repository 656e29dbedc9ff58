"""UMAP for the eye: the same records under several settings, and how far the pictures agree with each other and the data."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.spatial import procrustes
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

from cardiobench.core.errors import MissingExtra

SETTINGS = tuple((neighbours, distance) for neighbours in (15, 50) for distance in (0.1, 0.5))
"""(n_neighbors, min_dist); the first is the one that the figure of the paper is compared with."""
SEED = 42


def setting_name(neighbours: int, distance: float) -> str:
    """A setting in words."""
    return f"{neighbours} neighbours, distance {distance:g}"


def maps(vectors: np.ndarray, settings=SETTINGS, seed: int = SEED) -> dict[str, np.ndarray]:
    """Two coordinates of each vector under each setting, by Euclidean distance; the neighbours are found once for all.

    Args:
        vectors: (n, d), at a common scale.
        settings: (n_neighbors, min_dist).
        seed: of every layout.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of TensorFlow, which is not needed
            import umap
    except ImportError:
        raise MissingExtra("UMAP", "analysis", "umap-learn") from None
    most = min(max(neighbours for neighbours, _ in settings), len(vectors) - 1)
    distance, index = nearest(vectors, most)
    found = {}
    for neighbours, spread in settings:
        count = min(neighbours, most)
        with warnings.catch_warnings():
            # That new points cannot be placed, and that a seed means one thread: both are meant.
            warnings.filterwarnings("ignore", module="umap")
            model = umap.UMAP(
                n_neighbors=count,
                min_dist=spread,
                random_state=seed,
                n_jobs=1,
                precomputed_knn=(index[:, :count], distance[:, :count], None),
                force_approximation_algorithm=True,
            )
            found[setting_name(neighbours, spread)] = model.fit_transform(vectors.astype(np.float32)).astype(float)
    return found


def nearest(vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Distance and position of the nearest vectors, exactly; the first is the vector itself, at 0."""
    single = vectors.astype(np.float32)
    distance, index = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(single).kneighbors(single)
    # Of vectors that are the same one, each has itself first.
    own = np.arange(len(index))
    for line in np.flatnonzero(index[:, 0] != own):
        place = np.flatnonzero(index[line] == line)
        index[line, place[0] if len(place) else -1] = index[line, 0]
        index[line, 0] = line
    distance[:, 0] = 0.0
    return distance, index


def stability(vectors: np.ndarray, found: dict[str, np.ndarray], neighbours: int = 10) -> pd.DataFrame:
    """How far to believe the pictures: trustworthiness of each (1 = no false neighbour), Procrustes disparity of each pair (0 = same shape).

    Returns:
        measure, setting, other, value.
    """
    count = min(neighbours, (len(vectors) - 1) // 2)
    rows = [
        ("trustworthiness", name, "", trustworthiness(vectors, places, n_neighbors=count))
        for name, places in found.items()
    ]
    rows += [("procrustes", a, b, procrustes(found[a], found[b])[2]) for a, b in combinations(found, 2)]
    return pd.DataFrame(rows, columns=["measure", "setting", "other", "value"])
