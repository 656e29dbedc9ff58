"""Test remarks on recordings at adoption, and rows that are left out of the dataset for good."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cardiobench.core import plugins
from cardiobench.core.errors import MissingData
from cardiobench.data.open import open_dataset
from cardiobench.runner.references import data_warnings, expected_units
from tests.data.recordings import write_avi
from tests.extensions.adopt.folders import ORDER, RATE, UNIT, adopt, bundled, write_labels, write_npy

FLAGS = ("--target", "cd", "--positive", "cd=CD", *UNIT, *RATE, *ORDER)


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


@pytest.fixture
def hospital(tmp_path):
    """Return (rows, folder, labels) of 24 ECGs; in the second I and II are exchanged, the third has a gap in V1."""
    frame, signals = bundled(24)
    signals[1] = signals[1][:, [1, 0, *range(2, 12)]]
    signals[2] = np.array(signals[2])
    signals[2][300:900, 6] = signals[2][300, 6]
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write_npy(folder, name, signal)
    return frame, folder, write_labels(frame, tmp_path / "labels.csv")


def test_remarks_are_counted_written_and_drawn(hospital, tmp_path, capsys):
    frame, folder, labels = hospital
    assert adopt(folder, labels, tmp_path / "own", *FLAGS) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 of 24 recordings are remarked: gap (1), limb leads contradict each other (1)" in said
    remarks = pd.read_csv(tmp_path / "own" / "mine" / "remarks.csv", dtype=str)
    assert list(remarks["id"]) == [frame["id"][1], frame["id"][2]], "the worst first"
    assert remarks["detail"][1] == "V1 constant from 3 to 8.99 s" and "I and II exchanged" in remarks["detail"][0]
    picture = Image.open(tmp_path / "own" / "mine" / "remarks.png")
    assert picture.width > 1000 and np.unique(np.asarray(picture.convert("L"))).size > 20
    assert len(open_dataset("mine").frame) == 24, "a remark leaves no recording out"
    good, signals = bundled(24)
    for name, signal in zip(good["id"], signals, strict=True):
        write_npy(folder, name, signal)
    assert adopt(folder, labels, tmp_path / "own", *FLAGS, "--overwrite") == 0
    assert sorted(path.name for path in (tmp_path / "own" / "mine").iterdir()) == ["dataset.yaml", "splits.csv"]


def test_clips_unlike_the_others_are_remarked(tmp_path, capsys):
    folder = tmp_path / "cines"
    for number in range(12):
        write_avi(folder / f"c{number}.avi", frames=1 if number == 3 else 20, level=10 * number)
    rows = [
        {"file": f"c{n}.avi", "patient_id": n, "ef": 50 + n, "split": "test" if n % 3 == 0 else "train"}
        for n in range(12)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "labels.csv", index=False)
    flags = ("--target", "ef", "--kind", "ef=regression", "--label-unit", "ef=%")
    assert adopt(folder, tmp_path / "labels.csv", tmp_path / "own", *flags) == 0
    remarks = pd.read_csv(tmp_path / "own" / "mine" / "remarks.csv", dtype=str)
    found = remarks.groupby("id")["check"].agg(set)
    assert {"still", "unusual number of frames"} <= found["c3.avi"]
    assert "are remarked" in capsys.readouterr().out


def test_rows_absent_at_adoption_are_no_wrong_answers(hospital, tmp_path):
    frame, folder, labels = hospital
    absent = list(frame["id"][frame["split"] == "test"][:2])
    damaged = frame["id"][frame["split"] == "test"].iloc[3]
    for name in absent:
        (folder / f"{name}.npy").unlink()
    whole = (folder / f"{damaged}.npy").read_bytes()
    (folder / f"{damaged}.npy").write_bytes(whole[:40])
    assert adopt(folder, labels, tmp_path / "own", *FLAGS, "--allow-missing", "--allow-unreadable") == 0
    left_out = pd.read_csv(tmp_path / "own" / "mine" / "left_out.csv", dtype=str)
    assert sorted(left_out["id"]) == sorted([*absent, damaged])
    source = open_dataset("mine")
    (task,) = source.spec.tasks
    tested = int((frame["split"] == "test").sum()) - 3
    assert expected_units(source, task, source.references(task), None) == tested
    assert source.unread_units(task) == 0 and source.facts["left_out"] == 3
    (warning,) = data_warnings(source, None)
    assert warning.startswith("3 rows of the labels are not part of the dataset (2: no recording in the folder")
    # A recording that is lost later still counts.
    lost = source.frame["id"][source.frame["split"] == "test"].iloc[0]
    (folder / f"{lost}.npy").unlink()
    with pytest.raises(MissingData):
        open_dataset("mine")
    later = open_dataset("mine", allow_missing=True)
    assert expected_units(later, task, later.references(task), None) == tested and later.unread_units(task) == 1
    # A row that was left out returns only with another adoption.
    (folder / f"{damaged}.npy").write_bytes(whole)
    assert damaged not in set(open_dataset("mine", allow_missing=True).table.listed["id"])
    assert adopt(folder, labels, tmp_path / "own", *FLAGS, "--allow-missing", "--overwrite") == 0
    assert damaged in set(open_dataset("mine").table.listed["id"])


@pytest.mark.parametrize("target", [("--target", "CD"), ("--target", "CD=cd"), ("--target", "cd")])
def test_task_names_are_lower_case_for_the_user(hospital, tmp_path, capsys, target):
    """Any spelling of the task in one flag fits any other spelling in another."""
    _, folder, labels = hospital
    table = pd.read_csv(labels, dtype=str)
    table.rename(columns={"cd": target[1].rpartition("=")[2]}).to_csv(labels, index=False)
    flags = (*target, "--positive", "CD=CD", "--per", "Cd=patient", *UNIT, *RATE, *ORDER)
    assert adopt(folder, labels, tmp_path / "own", *flags) == 0
    said = capsys.readouterr().out
    assert ("the task of 'CD' is called 'cd'" in said) == (target[1] != "cd")
    (task,) = open_dataset("mine").spec.tasks
    assert task.name == "mine/cd" and task.unit_column == "patient_id"
