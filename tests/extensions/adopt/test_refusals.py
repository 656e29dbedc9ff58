"""Test errors of `adopt`: one message with counts, no files left behind; and warnings about the table."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig, BadData, MissingData
from cardiobench.core.io import temporary_path, write_text
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.extensions.adopt.columns import ColumnProfile
from cardiobench.extensions.adopt.kinds import CLASSES, NUMBER
from cardiobench.extensions.adopt.questions import Questions
from tests.extensions.adopt.folders import ORDER, RATE, UNIT, adopt, bundled, write_labels, write_npy

LABEL = ("--target", "cd", "--positive", "cd=CD")
STATED = (*UNIT, *RATE, *ORDER)
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """Return (rows, folder of NPY files) of 24 ECGs in mV."""
    frame, signals = bundled(24)
    folder = tmp_path_factory.mktemp("hospital")
    for name, signal in zip(frame["id"], signals, strict=True):
        write_npy(folder, name, signal)
    return frame, folder


@pytest.fixture
def refused(hospital, tmp_path, capsys):
    """Run `adopt` with changed labels; return its single message."""

    def run(*flags, stated=STATED, **columns):
        labels = write_labels(hospital[0], tmp_path / "labels.csv", **columns)
        assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *stated, *flags) == 2
        said = capsys.readouterr().err
        assert not (tmp_path / "own").exists() and "Traceback" not in said
        return said

    return run


def test_missing_patient_ids_are_refused_or_noted_on_every_result(hospital, tmp_path, capsys):
    labels = pd.read_csv(write_labels(hospital[0], tmp_path / "labels.csv"), dtype=str).drop(columns="patient_id")
    labels.to_csv(tmp_path / "labels.csv", index=False)
    assert adopt(hospital[1], tmp_path / "labels.csv", tmp_path / "own", *LABEL, *STATED) == 2
    assert "--patient-is-record" in capsys.readouterr().err and not (tmp_path / "own").exists()
    assert adopt(hospital[1], tmp_path / "labels.csv", tmp_path / "own", *LABEL, *STATED, "--patient-is-record") == 0
    dataset = open_dataset("mine")
    assert dataset.facts["patient_is_record"] and dataset.facts["local"]
    assert list(dataset.frame["patient_id"]) == list(dataset.frame["id"])


def test_patient_in_two_splits_is_refused_with_counts(refused):
    said = refused(patient_id=["p"] * 3 + [f"q{i}" for i in range(21)], split=["train", "test"] * 12)
    assert "1 of 22 patients are in two splits: p" in said


def test_same_samples_in_two_splits_are_refused_with_counts(hospital, tmp_path, capsys):
    folder = tmp_path / "twice"
    folder.mkdir()
    names = list(hospital[0]["id"])
    for name in names:
        (folder / f"{name}.npy").write_bytes(
            (hospital[1] / f"{names[0] if name == names[1] else name}.npy").read_bytes()
        )
    labels = write_labels(hospital[0], tmp_path / "labels.csv", split=["train", "test"] * 12)
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *STATED) == 2
    assert "2 recordings have the same bytes as one in another split" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("claimed", "fits"),
    [("uV", "'mV' would fit"), ("V", "'mV' would fit"), ("nV", "'mV' would fit"), ("0.5 uV", "'0.5 mV' would fit")],
)
def test_unit_contradicted_by_amplitudes_is_refused(refused, claimed, fits):
    assert fits in refused(stated=("--unit", claimed, *RATE, *ORDER))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"cd": [""] * 24}, "has nothing to predict: it is empty"),
        ({"cd": ["CD"] * 24}, "every one of its 24 values is 'CD'"),
        ({"id": ["1"] * 24, "file": ["x"] * 24}, "no column of .* names a recording"),
        ({"id": [""] + [str(i) for i in range(23)]}, "names a recording|1 of 24 rows have no id"),
        ({"patient_id": [""] * 2 + ["a"] * 22}, "2 of 24 rows have no patient"),
        ({"split": ["train"] * 24}, "no recording for test"),
        ({"split": ["fold3"] + ["test"] * 23}, "1 of 24 cells are not a split: 'fold3'"),
    ],
)
def test_unusable_tables_are_refused(refused, columns, said):
    assert re.search(said, refused(**columns))


def test_unreadable_recordings_are_refused_unless_allowed(hospital, tmp_path, capsys):
    folder = tmp_path / "broken"
    folder.mkdir()
    names = list(hospital[0]["id"])
    for name in names[2:]:
        (folder / f"{name}.npy").write_bytes((hospital[1] / f"{name}.npy").read_bytes())
    labels = write_labels(hospital[0], tmp_path / "labels.csv")
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *STATED) == 2
    said = capsys.readouterr()
    assert "2 of 24 rows name no recording" in said.err and "are left out of the dataset, as" not in said.out + said.err
    (folder / f"{names[5]}.npy").write_bytes(b"\x93NUMPY")
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *STATED, "--allow-missing") == 2
    assert (
        f"1 of 22 recordings cannot be read: {names[5]}" in capsys.readouterr().err and not (tmp_path / "own").exists()
    )
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *STATED, "--allow-missing", "--allow-unreadable") == 0
    source = open_dataset("mine")
    assert source.coverage() == {"missing_files": 0, "absent_rows": 0} and source.left_out == 3
    assert {reason.partition(" at adoption")[0]: ids for reason, ids in source.table.excluded.items()} == {
        "no recording in the folder": tuple(names[:2]),
        "recording that could not be read": (names[5],),
    }
    assert len(source.frame) == len(source.table.listed) == 21


def test_unusual_values_are_reported_with_the_table(hospital, tmp_path, capsys):
    ages = [300.0, *([np.nan] * 6), *range(40, 57)]
    few = ["CD"] * 9 + ["no CD"] * 15
    labels = write_labels(hospital[0], tmp_path / "labels.csv", age=ages, sex=["0", "1"] * 12, split="", cd=few)
    flags = ("--split-column", "none", "--group", "file")
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED, *flags) == 0
    said = capsys.readouterr().out
    for sentence in (
        "1 cells are not an age from 0 to 120",
        "6 of 24 cells are empty",
        "'0', '1' count as unknown",
        "fewer than 10 recordings of CD (9)",
        "by patient, stratified by cd, seed 0",
    ):
        assert sentence in said, sentence
    assert "0 of 24 cells are empty" not in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"redistributable": True}, "redistributable"),
        ({"splits": "../../splits.csv"}, "splits"),
        ({"name": "another"}, "Give both the same name"),
        ({"unheard": 1}, "unheard"),
        ({"tasks": {"cd": {"kind": "binary", "column": "cd", "classes": ["a"]}}}, "classes"),
        ({"tasks": {"cd": {"kind": "regression", "column": "cd", "metrics": ["mae"], "range": ["low", 3]}}}, "range"),
    ],
)
def test_invalid_edits_of_the_dataset_file_are_refused(hospital, tmp_path, change, said):
    labels = write_labels(hospital[0], tmp_path / "labels.csv")
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED) == 0
    path = tmp_path / "own" / "mine" / "dataset.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(BadConfig, match=said):
        catalog.spec("mine")


def test_untrusted_dataset_file_runs_no_code(hospital, tmp_path):
    labels = write_labels(hospital[0], tmp_path / "labels.csv")
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED) == 0
    folder = tmp_path / "own" / "mine"
    index = pd.read_csv(folder / "splits.csv", dtype=str)
    index.assign(file=["../labels.csv", *index["file"][1:]]).to_csv(folder / "splits.csv", index=False)
    with pytest.raises(Exception, match="points outside the raw folder"):
        open_dataset("mine")
    content = (folder / "dataset.yaml").read_text()
    (folder / "dataset.yaml").write_text(
        content.replace("title: mine", f"title: !!python/object/apply:os.mkdir ['{tmp_path}/ran']")
    )
    with pytest.raises(BadConfig, match="cannot be read as YAML"):
        catalog.spec("mine")
    assert not (tmp_path / "ran").exists()


def test_adopted_datasets_are_not_overwritten_and_names_are_unique(hospital, tmp_path, capsys):
    labels = write_labels(hospital[0], tmp_path / "labels.csv")
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED) == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "own" / "mine").iterdir()}
    assert set(before) == {"dataset.yaml", "splits.csv"}
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED, "--overwrite") == 0
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "own" / "mine").iterdir()}
    for name in ("ptb_xl", "../mine", "Mine", ""):
        assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED, name=name) == 2


def test_changed_label_changes_the_digest_and_lost_rows_are_reported(hospital, tmp_path):
    labels = write_labels(hospital[0], tmp_path / "labels.csv")
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED) == 0
    first = open_dataset("mine")
    table = pd.read_csv(labels, dtype=str)
    table.assign(cd=["CD" if cell != "CD" else "no CD" for cell in table["cd"]]).to_csv(labels, index=False)
    second = open_dataset("mine")
    assert first.facts["digest"] != second.facts["digest"]
    assert list(first.frame["fingerprint"]) == list(second.frame["fingerprint"]), "the recordings are unchanged"
    table[1:].to_csv(labels, index=False)
    with pytest.raises(BadData, match=r"lacks 1 id of splits\.csv"):
        open_dataset("mine")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda table: pd.concat([table, table[:1].assign(id="new")]),
            r"has 1 id that splits\.csv and the rows left out lack: new\.",
        ),
        (lambda table: table.assign(patient_id="one"), "differ in the patient of 24 recordings"),
        (lambda table: table.assign(cd="maybe"), "unknown values maybe"),
        (lambda table: table.drop(columns="patient_id"), "has no column patient_id"),
    ],
    ids=["a row more", "other patients", "another class", "a column less"],
)
def test_table_that_contradicts_splits_is_refused(hospital, tmp_path, change, said):
    labels = write_labels(hospital[0], tmp_path / "labels.csv")
    assert adopt(hospital[1], labels, tmp_path / "own", *LABEL, *STATED) == 0
    change(pd.read_csv(labels, dtype=str)).to_csv(labels, index=False)
    with pytest.raises(BadData, match=said):
        open_dataset("mine")
    labels.unlink()
    with pytest.raises(MissingData, match=re.escape(str(labels))):
        open_dataset("mine")


@pytest.mark.slow
def test_full_disk_leaves_nothing_behind(hospital, tmp_path):
    """Run in a process whose files are limited to 512 bytes."""
    labels = write_labels(hospital[0], tmp_path / "labels.csv")
    own = tmp_path / "own"
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)); from tests.extensions.adopt.folders import adopt; "
    code += f"from pathlib import Path; raise SystemExit(adopt(Path({str(hospital[1])!r}), Path({str(labels)!r}), Path({str(own)!r}), *{(*LABEL, *STATED)!r}))"
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (1, 2) and "File too large" in done.stderr and "Traceback" not in done.stderr
    assert not list(own.glob("*")) and not list(own.glob(".*"))


def test_copy_of_the_ids_left_by_a_killed_run_is_removed(hospital, tmp_path, monkeypatch):
    labels, own = write_labels(hospital[0], tmp_path / "labels.csv"), tmp_path / "own"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with monkeypatch.context() as other:
        other.setattr("os.getpid", lambda: ended.pid)
        left = temporary_path(own / "mine")
    write_text("id,patient_id", left / "mine" / "splits.csv")
    assert adopt(hospital[1], labels, own, *LABEL, *STATED) == 0
    assert not left.exists() and [path.name for path in own.iterdir()] == ["mine"]


def test_column_of_many_numbers():
    for values, numbers, kind in (
        ([f"{one}.5" for one in range(40)], True, NUMBER),
        ([str(one) for one in range(40)], True, ""),  # Distinct integers, such as patient numbers.
        (["0", "1", "2"], True, CLASSES),
        (["0.5", "1", "2"], True, "?"),
    ):
        assert ColumnProfile("x", len(values), len(values), tuple(values), numbers).kind == kind


def test_questions_are_repeated_until_the_answer_is_valid():
    for typed, choices, empty, answer in (
        (["", "x"], (), False, "x"),
        (["x", "b"], ("a", "b"), False, "b"),
        (["x", ""], ("a", "b"), True, None),
    ):
        left = iter(typed)
        assert Questions(read=lambda _: next(left)).ask("Which?", "--which", choices, empty=empty) == answer  # noqa: B023


@pytest.mark.parametrize(("named", "given", "accepted"), [("I", "II", False), ("i", "I", True), ("MLII", "II", True)])
def test_lead_that_contradicts_the_file_is_refused(named, given, accepted, hospital, tmp_path, capsys):
    folder = tmp_path / "wfdb"
    folder.mkdir()
    for name in hospital[0]["id"]:
        signal = np.load(hospital[1] / f"{name}.npy")[:, 0]
        (folder / f"{name}.dat").write_bytes((signal * 1000).round().astype("<i2").tobytes())
        lines = f"{name} 1 100 {len(signal)}\n{name}.dat 16 1000(0)/mV 16 0 0 0 0 {named}\n"
        (folder / f"{name}.hea").write_text(lines)
    labels = write_labels(hospital[0], tmp_path / "labels.csv", file=list(hospital[0]["id"]))
    assert adopt(folder, labels, tmp_path / "own", *LABEL, "--leads", given) == (0 if accepted else 2)
    said = " ".join("".join(capsys.readouterr()).split())
    assert (f"have only {given}:" if accepted else "states lead I, but II was given (leads)") in said
