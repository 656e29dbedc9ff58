"""Test studies on one and two real processes."""

import json

import pandas as pd
import pytest

from tests.runner.test_processes import results, run_here, run_two

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("processes")]


def test_two_processes_equal_one(tmp_path):
    """Check for bitwise equal results, including the floor and the chosen view."""
    folders = [tmp_path / name for name in ("one", "two")]
    more = ("--protocols", "study", "--option", "study.epochs=3", "study.seeds=2")
    (tmp_path / "cache").mkdir()
    for folder, run in zip(folders, (run_here, run_two), strict=True):
        folder.mkdir()
        (folder / "cache").symlink_to(tmp_path / "cache")
        run(folder, *more)
    assert results(folders[0]) == results(folders[1]) != {}
    records = sorted(folders[0].glob("results/*/*/study.*/*.json"))
    assert [path.parent.name for path in records] == ["study.attention", "study.best_view", "study.mean"]
    assert all("which views were recorded" in json.loads(path.read_text())["floors"] for path in records)
    for path in folders[0].glob("results/*/*/study.*/*.parquet"):
        other = pd.read_parquet(folders[1] / path.relative_to(folders[0]))
        pd.testing.assert_frame_equal(pd.read_parquet(path), other, check_exact=True)
