"""Test maps of vectors: exact neighbours, cosine distance that ignores length, reproducibility."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

from cardiobench.protocols import maps


def test_neighbours_are_exact_and_start_with_the_vector():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 5))
    vectors[1] = vectors[0]
    distance, index = maps.nearest_neighbours(vectors, 12)
    assert index[:, 0].tolist() == list(range(80)) and not distance[:, 0].any()
    theirs = NearestNeighbors(n_neighbors=12).fit(vectors).kneighbors(return_distance=True, X=vectors)[0]
    assert distance == pytest.approx(theirs, abs=1e-5)
    assert {0, 1} <= set(index[0]) and {0, 1} <= set(index[1])


@pytest.mark.slow
def test_echo_maps_use_cosine_as_in_the_paper():
    vectors = np.random.default_rng(0).normal(size=(40, 5)) * np.arange(1, 41)[:, None]
    _, by_cosine = maps.nearest_neighbours(vectors, 3, "cosine")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert by_cosine.tolist() == np.argsort(-(unit @ unit.T), axis=1, kind="stable")[:, :3].tolist()
    (coordinates,) = maps.umap_maps(vectors, (maps.ECHO_PAPER,), metric="cosine").values()
    # Scaled vectors have the same position, because only the direction counts.
    (scaled,) = maps.umap_maps(2 * vectors, (maps.ECHO_PAPER,), metric="cosine").values()
    assert coordinates == pytest.approx(scaled)


@pytest.mark.slow
def test_maps_repeat_and_stability_follows_definition():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(size=(40, 6)), rng.normal(size=(40, 6)) + 8])
    settings = ((10, 0.1), (20, 0.5))
    one, two = maps.umap_maps(vectors, settings), maps.umap_maps(vectors, settings)
    for name, places in one.items():
        assert places.shape == (80, 2) and np.array_equal(places, two[name])
        # Two clusters 8 apart do not overlap in the map.
        gap = np.linalg.norm(places[:40].mean(axis=0) - places[40:].mean(axis=0))
        assert gap > 2 * max(np.linalg.norm(part - part.mean(axis=0), axis=1).mean() for part in np.split(places, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    pictures = {"a": vectors[:, :2], "b": 3 * vectors[:, :2] @ turn + 7, "c": rng.normal(size=(80, 2))}
    table = maps.stability(vectors[:, :2], pictures).set_index(["measure", "setting", "other"])["value"]
    assert table["procrustes", "a", "b"] == pytest.approx(0, abs=1e-12), "rotated, scaled and moved: the same shape"
    assert table["procrustes", "a", "c"] > 0.5
    assert table["trustworthiness", "b", ""] == 1.0
    assert table["trustworthiness", "c", ""] == pytest.approx(
        trustworthiness(vectors[:, :2], pictures["c"], n_neighbors=10)
    )
