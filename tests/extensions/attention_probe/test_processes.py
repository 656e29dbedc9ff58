"""Test the members of the attention probe on one and two real processes."""

import json

import pandas as pd
import pytest

from tests.runner.test_processes import results, run_here, run_two

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("processes")]


def test_two_processes_train_the_same_members(tmp_path):
    """Check for bitwise equal results from the same stored tokens, as each member trains in one process on one thread."""
    folders = [tmp_path / name for name in ("one", "two")]
    more = ("--protocols", "attention_probe", "--pooling", "tokens", "--option", "attention_probe.epochs=5")
    (tmp_path / "cache").mkdir()
    for folder, run in zip(folders, (run_here, run_two), strict=True):
        folder.mkdir()
        (folder / "cache").symlink_to(tmp_path / "cache")
        run(folder, *more, model="cardiobench/random-vit")
    assert results(folders[0]) == results(folders[1]) != {}
    (record,) = folders[0].glob("results/*/*/attention_probe/*.json")
    assert len(json.loads(record.read_text())["options"]["seed_scores"]) == 3
    answers = sorted(folders[0].glob("results/*/*/attention_probe/*.parquet"))
    assert {path.name.split(".")[-2] for path in answers} == {"predictions", "validation"}
    assert len(answers) == 2
    for path in answers:
        other = pd.read_parquet(folders[1] / path.relative_to(folders[0]))
        pd.testing.assert_frame_equal(pd.read_parquet(path), other, check_exact=True)
