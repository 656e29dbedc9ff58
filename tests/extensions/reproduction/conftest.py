"""Synthetic inputs in the layout of the published evaluation."""

import shutil

import pytest

from benchmarks.reference_inputs import write_inputs

SMALL = {
    "dynamic": 40, "pediatric": 60, "camus": 24, "lvh": 30, "asd": 14, "pah": 20, "hmc": 16, "studies": 20,
    "images": 90, "wall": 14,
}  # fmt: skip


@pytest.fixture(scope="session")
def invented(tmp_path_factory):
    """Return small versions of all eight datasets, which tests must not change."""
    return write_inputs(tmp_path_factory.mktemp("inputs"), SMALL, seed=3)


@pytest.fixture
def inputs(invented, tmp_path):
    """Return a copy of the inputs that tests may change."""
    return shutil.copytree(invented, tmp_path / "inputs")
