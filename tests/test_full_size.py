"""Test memory and time at a size where copies matter: peak memory relative to embeddings, and growth of time with size."""

import pytest

from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from tests.full_size import BUFFERS, check_memory, check_time, extra_memory, linux, load, stored


def probe(store, rows):
    return LinearProbe().predict(load(store, rows)[0], None, "")


def knn(store, rows):
    """Make 4 of the 20 refits, each of which takes as long as the prediction; a copy kept by each would exceed the limit."""
    return NearestNeighbours(max_queries=2000, comparison_refits=4).predict(load(store, rows)[0], None, "")


@pytest.mark.slow
@linux
def test_probing_makes_no_copies_of_the_embeddings(tmp_path):
    store, rows = stored(tmp_path, 8000, 512)
    assert extra_memory(probe, store, rows) <= 2.5 * 8000 * 512 * 4 / 1e6 + BUFFERS


@linux
@pytest.mark.slow
@pytest.mark.parametrize("stage", [load, probe, knn])
def test_peak_memory_is_a_small_multiple_of_the_embeddings(tmp_path, stage):
    check_memory(stage, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("stage, most", [(load, 2.5), (probe, 2.5), (knn, 4)])
def test_twice_the_recordings_take_about_twice_the_time(tmp_path, stage, most):
    """Allow neighbours four times as long, because every test recording is compared with every training recording."""
    check_time(stage, tmp_path, most)
