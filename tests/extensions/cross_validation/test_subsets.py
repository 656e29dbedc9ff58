"""Test the command that writes the records of each size."""

import pytest

from cardiobench.cli.main import main
from cardiobench.data import catalog, open_dataset
from cardiobench.data.ecg_subsets import read_subset
from cardiobench.extensions.cross_validation.protocol import CrossValidation


@pytest.mark.parametrize("profile, needed", [("default", ", one per patient"), ("paper", "")])
def test_command_writes_cross_validation_draws(profile, needed, tmp_path, capsys):
    line = ["subsets", "ptb_xl_sample/cd", "--out", str(tmp_path / "new"), "--seed", "7", "--profile", profile]
    assert main(line) == 0
    (path,) = (tmp_path / "new").iterdir()
    source, task = open_dataset("ptb_xl_sample"), catalog.task("ptb_xl_sample/cd")
    drawn = CrossValidation(seed=7, one_a_patient=profile == "default")
    rows = drawn.select_rows(source.task_rows(task), task, "XS.lr")
    subset = read_subset(path)
    assert path.name == "ptb_xl_sample__cd__XS.json" and set(subset.ids) == set(rows["id"])
    printed = capsys.readouterr().out
    assert f"size XS of ptb_xl_sample/cd: {len(rows)} records, wrote {path}" in printed
    positives = rows["cd"].value_counts()["CD"]
    assert f"size S of ptb_xl_sample/cd needs 250 positives{needed}, and there are {positives}." in printed


def test_command_without_sizes(tmp_path, monkeypatch, capsys):
    assert main(["phantom", "georgia", "--patients", "6", "--out", str(tmp_path / "raw")]) == 0
    assert (
        f"wrote {tmp_path / 'raw'}: georgia with generated patients, for use as --data-dir" in capsys.readouterr().out
    )
    out = tmp_path / "out"
    assert main(["subsets", "georgia/af", "--data-dir", str(tmp_path / "raw"), "--out", str(out)]) == 1
    assert capsys.readouterr().out.count(" needs ") == 4 and not out.exists()
