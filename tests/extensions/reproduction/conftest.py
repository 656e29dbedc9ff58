"""Invented inputs in the layout of the published evaluation."""

import shutil

import pytest

from benchmarks.reference_inputs import write_inputs

SMALL = {
    "dynamic": 40, "pediatric": 60, "camus": 24, "lvh": 30, "asd": 14, "pah": 20, "hmc": 16, "studies": 20,
    "images": 90, "wall": 14,
}  # fmt: skip


@pytest.fixture(scope="session")
def invented(tmp_path_factory):
    """All eight datasets, small; not to be changed."""
    return write_inputs(tmp_path_factory.mktemp("inputs"), SMALL, seed=3)


@pytest.fixture
def inputs(invented, tmp_path):
    """A copy of them to spoil."""
    return shutil.copytree(invented, tmp_path / "inputs")
