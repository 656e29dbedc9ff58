"""Test memory and time of transfer on many recordings."""

import pytest

from cardiobench.extensions.transfer.protocol import Transfer
from tests.full_size import across, check_memory, check_time, linux


def stage(store, rows):
    return Transfer().analyze(across(store, rows), None)


@linux
@pytest.mark.slow
def test_peak_memory_is_a_small_multiple_of_the_embeddings(tmp_path):
    check_memory(stage, tmp_path)


@pytest.mark.slow
def test_twice_the_recordings_take_about_twice_the_time(tmp_path):
    check_time(stage, tmp_path)
