"""Test memory and time at a size where copies matter: peak memory relative to embeddings, and growth of time with size."""

from importlib import import_module
from pathlib import Path

import pytest

from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from tests.full_size import Stage, check_memory, check_time, linux, load

PLACE = Path(__file__).with_name("extensions")


def probe(store, rows):
    return LinearProbe().predict(load(store, rows)[0], None, "")


def knn(store, rows):
    """Make 4 of the 20 refits, each of which takes as long as the prediction; a copy kept by each would exceed the limit."""
    return NearestNeighbours(max_queries=2000, comparison_refits=4).predict(load(store, rows)[0], None, "")


STAGES = {
    "load": Stage(load),
    "probe": Stage(probe, count=20_000),
    # Every test recording is compared with every training recording.
    "knn": Stage(knn, most=4, count=20_000),
}
# Extension -> its stage, in the file `full_size.py` of its tests.
STAGES |= {
    file.parent.name: import_module(f"tests.extensions.{file.parent.name}.full_size").STAGE
    for file in sorted(PLACE.glob("*/full_size.py"))
}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_peak_memory_is_a_small_multiple_of_the_embeddings(tmp_path, name):
    check_memory(STAGES[name].run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, stage in STAGES.items() if stage.most])
def test_twice_the_recordings_take_about_twice_the_time(tmp_path, name):
    check_time(STAGES[name], tmp_path)
