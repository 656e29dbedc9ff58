"""Test training from scratch on one and two real processes, and on the twin of PTB-XL."""

import json

import pandas as pd
import pytest

from tests.runner.test_processes import run_here, run_two

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("processes")]


def test_two_processes_train_the_same_networks(tmp_path):
    """Check for bitwise equal results with one and two processes."""
    from cardiobench.data.twin import write_twin

    write_twin("ptb_xl", tmp_path / "raw")
    results = {}
    more = ["--data-dir", tmp_path / "raw", "--protocols", "probe", "scratch"]
    more += ["--option", "scratch.network=small", "scratch.epochs=2", "scratch.seeds=2"]
    for name, run in (("one", run_here), ("two", run_two)):
        run(tmp_path / name, *more, model="cardiobench/ecg-morphology", tasks=("ptb_xl/cd",))
        (path,) = (tmp_path / name).glob("results/cardiobench__scratch-small/*/scratch/*.json")
        results[name] = json.loads(path.read_text()), pd.read_parquet(path.with_suffix(".predictions.parquet"))
    pd.testing.assert_frame_equal(results["one"][1], results["two"][1], check_exact=True)
    assert results["one"][0]["options"] == results["two"][0]["options"]
    assert len(results["one"][0]["options"]["seed_scores"]) == 2
    page = (tmp_path / "two" / "results" / "report.md").read_text()
    assert "training from scratch on these patients (cardiobench/scratch-small, " in page
