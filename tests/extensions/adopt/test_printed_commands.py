"""Check that the commands that `adopt` prints work, and that later messages name the folder of the dataset."""

import pandas as pd
import pytest

from cardiobench.cli.main import main
from tests.extensions.adopt.folders import FORMATS, adopt, bundled, write_labels
from tests.printed import execute

SHORT = ("--protocols", "probe", "--workers", "0", "--dry-run")
TARGET = ("--target", "cd", "--positive", "cd=CD")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Adopt a folder of recordings below a folder with a space in its name; return its labels."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path / "cache"))
    write, flags, _ = FORMATS["csv"]
    frame, signals = bundled(40)
    (tmp_path / "files").mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write(tmp_path / "files", name, signal)
    labels = write_labels(frame, tmp_path / "labels.csv")
    assert adopt(tmp_path / "files", labels, tmp_path / "my datasets", *flags, *TARGET) == 0
    return pd.read_csv(labels, dtype=str)


def test_adopted_recordings_are_evaluated_by_the_printed_command(own, printed, tmp_path):
    line = (*FORMATS["csv"][1], *TARGET)
    assert adopt(tmp_path / "files", tmp_path / "labels.csv", tmp_path / "my other", *line, name="again") == 0
    (made,) = printed.of("cardiobench.extensions.adopt.command")
    assert made[-1] == str(tmp_path / "my other")
    assert execute(made, {"ID": "cardiobench/constant"}, *SHORT) == 0


def test_table_without_recordings_is_scored_by_the_printed_command(own, printed, tmp_path):
    line = [
        "adopt",
        "--no-recordings",
        "--labels",
        "labels.csv",
        "--name",
        "table",
        "--datasets-dir",
        "my tables",
        *TARGET,
    ]
    assert main(line) == 0
    (made,) = printed.of("cardiobench.extensions.adopt.command")
    test = own[own["split"] == "test"]
    pd.DataFrame({"id": test["id"], "p_CD": 0.5}).to_csv("answers.csv", index=False)
    assert execute(made, {"FILE": "answers.csv"}, "--resamples", "20") == 0


def test_messages_repeat_the_folder_of_the_dataset(own, printed, monkeypatch):
    """Another terminal does not know the folder that this process was given."""
    folder = ["--datasets-dir", "my datasets"]
    assert main(["references", "mine/cd", "--out", "refs.csv", *folder]) == 0
    refs = pd.read_csv("refs.csv", dtype=str)
    refs[["id", "patient_id", "split", "y_true"]].to_csv("refs.csv", index=False)
    test = refs[refs["split"] == "test"]
    pd.DataFrame({"id": test["id"], "p_CD": 0.5}).to_csv("answers.csv", index=False)
    score = ["eval", "--predictions", "answers.csv", "--task", "mine/cd", "--references", "refs.csv", *folder]
    assert main([*score, "--resamples", "20"]) == 0
    made = printed.of("cardiobench.results.versions")
    assert made and all(list(words[-2:]) == folder for words in made)
    for words in made:
        monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        assert execute(words, {}) == 0
