"""Test memory and time of few_shot on many recordings."""

import pytest

from cardiobench.extensions.few_shot.protocol import FewShot
from cardiobench.protocols.analysis import collapse_warnings
from tests.full_size import check_memory, check_time, linux, load
from tests.protocols.analyses import study_of


def stage(store, rows):
    analysis = study_of(load(store, rows)[0], resamples=10)
    return FewShot(sizes=(1, 8), draws=2).analyze(analysis, None), collapse_warnings(analysis)


@linux
@pytest.mark.slow
def test_peak_memory_is_a_small_multiple_of_the_embeddings(tmp_path):
    check_memory(stage, tmp_path)


@pytest.mark.slow
def test_twice_the_recordings_take_about_twice_the_time(tmp_path):
    check_time(stage, tmp_path)
