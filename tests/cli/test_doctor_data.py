"""Test `cardiobench doctor` on data: each kind of fault is reported on its own line."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli import doctor_data
from cardiobench.cli.main import main
from cardiobench.core.errors import BadMedia
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset

DATASET, TASK = "ptb_xl_sample", "ptb_xl_sample/cd"
TASKS = {f"task {DATASET}/{target}" for target in ("cd", "super", "age", "sex")}


@pytest.fixture
def doctor(capsys):
    """Run the command; return the exit code and a mapping from subject to line."""

    def run(*line):
        code = main(["doctor", *map(str, line), "--json"])
        return code, {one["what"]: one for one in json.loads(capsys.readouterr().out)["findings"]}

    return run


def bad(lines):
    return {what for what, one in lines.items() if not one["good"]}


def test_valid_dataset_has_no_findings(doctor):
    code, lines = doctor("--dataset", DATASET)
    assert code == 0 and not bad(lines)
    assert lines["recordings"]["found"] == "237 train, 34 validation, 122 test"
    assert lines[f"task {TASK}"] == {
        "what": f"task {TASK}",
        "found": "labelled recordings: 237 train, 34 validation, 122 test",
        "expected": "binary, no CD, CD",
        "good": True,
    }
    first = lines["recording 00001"]
    assert first["found"].startswith("signal (1000, 12) at 100 Hz") and "in mV" in first["expected"]


@pytest.mark.parametrize(
    ("change", "wrong", "found"),
    [
        (lambda frame: frame.assign(patient_id="one"), {"patients in several splits"}, "one"),
        (lambda frame: frame[frame["split"] != "test"], TASKS, "0 test"),
        (lambda frame: frame.assign(cd=None), {f"task {TASK}"}, "0 train, 0 validation, 0 test"),
    ],
    ids=["a patient in two splits", "no test rows", "no labels"],
)
def test_fault_of_a_dataset_is_marked(doctor, monkeypatch, change, wrong, found):
    whole = open_dataset(DATASET)
    broken = replace(whole, table=replace(whole.table, frame=change(whole.table.frame)))
    monkeypatch.setattr(doctor_data, "open_dataset", lambda *_, **__: broken)
    code, lines = doctor("--dataset", DATASET)
    assert code == 1 and bad(lines) == wrong and all(found in lines[name]["found"] for name in wrong)


def test_microvolts_and_unreadable_recordings_are_marked(doctor, monkeypatch):
    read = OpenDataset.recording

    def microvolts(*arguments, **__):
        ecg = read(*arguments)
        return replace(ecg, signal=ecg.signal / np.abs(ecg.signal).max() * 900)

    monkeypatch.setattr(OpenDataset, "recording", microvolts)
    code, lines = doctor("--dataset", DATASET)
    assert code == 1 and "at most 900 mV" in lines["recording 00001"]["found"]
    assert bad(lines) == {"large amplitude among 20 recordings"}
    assert lines["large amplitude among 20 recordings"]["found"].startswith("20: ")

    def damaged(*_, **__):
        raise BadMedia("00001.dat is truncated.")

    monkeypatch.setattr(OpenDataset, "recording", damaged)
    code, lines = doctor("--dataset", DATASET)
    assert code == 1 and lines["recording 00001"]["found"] == "00001.dat is truncated."


@pytest.fixture
def vectors():
    ids = list(open_dataset(DATASET, None, need_media=False).frame["id"])
    drawn = np.random.default_rng(0).normal(size=(len(ids), 3))
    return pd.DataFrame(drawn, columns=["v0", "v1", "v2"]).assign(id=ids)


def standardised_apart(frame):
    split = open_dataset(DATASET, None, need_media=False).frame.set_index("id")["split"]
    numbers = frame.set_index("id") + 5 * (split == "test").to_numpy()[:, None]
    scaled = numbers.groupby(split.loc[numbers.index].to_numpy()).transform(
        lambda one: (one - one.mean()) / one.std(ddof=0)
    )
    return scaled.reset_index()


@pytest.mark.parametrize(
    ("change", "wrong", "found"),
    [
        (lambda frame: frame, set(), ""),
        (lambda frame: frame[3:], TASKS, "390 of 393 recordings"),
        (lambda frame: pd.concat([frame, frame[:2]]), {"fault"}, "2 ids repeated"),
        (lambda frame: frame.assign(v1=frame["v1"].where(frame.index > 0)), {"fault"}, "1 of 393 vectors"),
        (
            lambda frame: pd.concat([frame, frame[:1].assign(id="zz")]),
            {f"ids that are none of {DATASET}"},
            "1: zz",
        ),
        (standardised_apart, {"scaling"}, "standardised separately"),
    ],
    ids=["sound", "missing", "doubled", "NaN", "foreign", "scaled by split"],
)
def test_fault_of_embeddings_is_marked(doctor, vectors, tmp_path, change, wrong, found):
    change(vectors).to_csv(tmp_path / "x.csv", index=False)
    code, lines = doctor("--embeddings", tmp_path / "x.csv", "--dataset", DATASET)
    assert bad(lines) == wrong and code == bool(wrong)
    assert any(found in lines[what]["found"] for what in wrong) or not wrong
    assert lines["vectors"]["found"].startswith("3 numbers, float32")


def test_doctor_prints_a_table_and_lists_accepted_inputs(vectors, tmp_path, capsys):
    vectors.to_csv(tmp_path / "x.csv", index=False)
    assert main(["doctor", "--embeddings", str(tmp_path / "x.csv")]) == 0
    printed = capsys.readouterr().out
    assert "expected" in printed and "393 ids, 393 vectors" in printed
    assert main(["doctor"]) == 2 and "--model ID" in capsys.readouterr().err
    assert main(["doctor", "--model", "x", "--dataset", DATASET]) == 2
