"""Test that spellings of one patient are shown, decided by the user, and then stay in one split."""

import time

import numpy as np
import pandas as pd
import pytest
import yaml

from cardiobench.core import plugins
from cardiobench.core.errors import BadData
from cardiobench.data.open import open_dataset
from cardiobench.data.spelling import folded
from cardiobench.extensions.adopt.patients import find_patients
from cardiobench.extensions.adopt.questions import Questions
from cardiobench.extensions.adopt.splits import check_splits, split_patients
from tests.extensions.adopt.folders import ORDER, RATE, UNIT, adopt, bundled, write_labels, write_npy

FLAGS = ("--target", "cd", "--positive", "cd=CD", *UNIT, *RATE, *ORDER)
PAIRS = {
    "case": ("Anna", "ANNA"),
    "number": ("7", "07"),
    "decimal": ("8", "8.0"),
    "letters": ("M\u00fcller", "Mu\u0308ller"),
    "width": ("K1", "\uff2b1"),
    "no-break": ("B 1", "B\u00a01"),
    "zero-width": ("C1", "C\u200b1"),
}
PEOPLE = [spelling for pair in PAIRS.values() for spelling in pair] + [f"x{number}" for number in range(10)]
"""Patients of 24 recordings as written; of 17 people, seven are written in two ways."""


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
def adopted(hospital, tmp_path):
    """Run `adopt` with the patients `PEOPLE`; return its exit code."""

    def run(*flags, **columns):
        labels = write_labels(hospital[0], tmp_path / "labels.csv", **{"patient_id": PEOPLE, "split": "", **columns})
        split = ("--split-column", "none") if "split" not in columns else ()
        return adopt(hospital[1], labels, tmp_path / "own", *FLAGS, *split, *flags)

    return run


def test_spellings_are_refused_with_pairs_and_counts(adopted, tmp_path, capsys):
    assert adopted() == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "several spellings of 7 patients of 17: 'Anna' (1 row) = 'ANNA' (1 row), '7' (1 row) = '07' (1 row)" in said
    assert r"'M\xfcller' (1 row) = 'Mu\u0308ller' (1 row)" in said and "and 2 more" in said
    assert "--patients same" in said and "--patients as-written" in said and not (tmp_path / "own").exists()


@pytest.mark.parametrize("seed", range(3))
def test_the_same_person_is_in_one_split(adopted, tmp_path, capsys, seed):
    assert adopted("--patients", "same", "--seed", str(seed)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "several spellings of 7 patients of 17 are one person each" in said
    rows = open_dataset("mine").frame
    assert list(rows["patient_id"]) == [folded(name) for name in PEOPLE] and rows["patient_id"].nunique() == 17
    assert (rows.groupby("patient_id")["split"].nunique() == 1).all()
    declared = yaml.safe_load((tmp_path / "own" / "mine" / "dataset.yaml").read_text())
    assert declared["labels"]["patient_spellings"] == "same"


def test_different_people_keep_their_ids(adopted, tmp_path, capsys):
    assert adopted("--patients", "as-written") == 0
    assert "are different people" in " ".join(capsys.readouterr().out.split())
    assert list(open_dataset("mine").frame["patient_id"]) == PEOPLE
    declared = yaml.safe_load((tmp_path / "own" / "mine" / "dataset.yaml").read_text())
    assert declared["labels"]["patient_spellings"] == "as-written"


def test_no_answer_is_needed_for_one_spelling_each(adopted, tmp_path):
    assert adopted(patient_id=[f"P{number // 2:03d}" for number in range(24)]) == 0
    assert open_dataset("mine").frame["patient_id"][0] == "P000"
    declared = yaml.safe_load((tmp_path / "own" / "mine" / "dataset.yaml").read_text())
    assert declared["labels"]["patient_spellings"] is None


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_own_splits_with_a_person_in_two_are_refused(adopted, capsys, pair):
    columns = {
        "patient_id": [*pair, *(f"x{number}" for number in range(22))],
        "split": ["train", "test"] * 12,
    }
    assert adopted(**columns) == 2
    assert "several spellings of 1 patient of 23" in " ".join(capsys.readouterr().err.split())
    assert adopted("--patients", "same", **columns) == 2
    assert f"1 of 23 patients are in two splits: {folded(pair[0])}" in " ".join(capsys.readouterr().err.split())
    assert adopted("--patients", "as-written", **columns) == 0


def test_another_spelling_in_the_table_is_still_the_same_person(adopted, tmp_path):
    assert adopted("--patients", "same") == 0
    labels = tmp_path / "labels.csv"
    table = pd.read_csv(labels, dtype=str)
    table.assign(patient_id=table["patient_id"].str.swapcase()).to_csv(labels, index=False)
    assert open_dataset("mine").frame["patient_id"].nunique() == 17
    table.assign(patient_id="one").to_csv(labels, index=False)
    with pytest.raises(BadData, match="differ in the patient of 24 recordings"):
        open_dataset("mine")


def test_patients_of_invisible_characters_count_as_missing(adopted, capsys):
    assert adopted("--patients", "as-written", patient_id=["\u200b", *PEOPLE[1:]]) == 2
    assert "1 of 24 rows have no patient" in " ".join(capsys.readouterr().err.split())


def test_an_answer_without_patient_ids_is_refused(adopted, capsys):
    assert adopted("--patients", "same", "--patient-is-record") == 2
    assert "--patient-is-record" in capsys.readouterr().err


def test_spellings_of_one_recording_are_refused(hospital, adopted, capsys):
    ids = [*hospital[0]["id"][:22], "R1", "r01"]
    assert adopted("--patients", "same", id=ids) == 2
    assert "1 id of recordings in several spellings: 'R1' (1 row) = 'r01' (1 row)" in " ".join(
        capsys.readouterr().err.split()
    )


def test_spellings_are_asked_for_at_a_terminal():
    asked = []
    questions = Questions(read=lambda text: asked.append(text) or "same")
    column = pd.Series(["7", "07", "8"], name="patient")
    patients, decided, note = find_patients(column, pd.Series(["a", "b", "c"]), "", questions)
    assert list(patients) == ["7", "7", "8"] and decided == "same" and "1 patient of 2" in note
    assert len(asked) == 1 and "(same, as-written)" in asked[0]


def test_many_rows_are_split_by_person_in_linear_time():
    generator = np.random.default_rng(0)
    people = generator.integers(1, 40_000, 100_000)
    written = np.array(["{}", "{:06d}", "{}.0", "{}\u200b"])[generator.integers(0, 4, len(people))]
    column = pd.Series([form.format(one) for form, one in zip(written, people, strict=True)], name="patient")
    ids = pd.Series(np.arange(len(people)).astype(str))
    start = time.process_time()
    patients, _, _ = find_patients(column, ids, "same", Questions())
    assert time.process_time() - start < 10
    splits = split_patients(list(patients), list(generator.integers(0, 2, len(people))), 0)
    assert pd.Series(splits).groupby(people).nunique().max() == 1
    index = pd.DataFrame({"id": ids, "patient_id": patients, "split": splits})
    assert check_splits(index, [""] * len(index)) == ""
