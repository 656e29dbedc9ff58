"""Test memory and time of drawing the sample for representation from many recordings."""

import pytest

from cardiobench.extensions.representation.protocol import Representation
from cardiobench.protocols.sample import draw
from tests.full_size import across, check_memory, check_time, linux


def stage(store, rows):
    """Draw the sample, with at most 2,499 records of each dataset."""
    return draw(across(store, rows), Representation().most)


@linux
@pytest.mark.slow
def test_peak_memory_is_a_small_multiple_of_the_embeddings(tmp_path):
    check_memory(stage, tmp_path)


@pytest.mark.slow
def test_twice_the_recordings_take_about_twice_the_time(tmp_path):
    check_time(stage, tmp_path)
