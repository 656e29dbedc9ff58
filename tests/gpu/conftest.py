"""Leave the tests of a GPU out without one; CARDIOBENCH_TEST_DEVICE=cpu runs them on the CPU."""

import os

import pytest
import torch

WANTED = os.environ.get("CARDIOBENCH_TEST_DEVICE", "cuda" if torch.cuda.is_available() else "")
collect_ignore_glob = [] if WANTED else ["test_*.py"]


@pytest.fixture(scope="session")
def device():
    return torch.device(WANTED)
