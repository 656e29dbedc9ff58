"""Test the twins of Georgia, Chapman-Shaoxing with Ningbo, and CODE-15 with wfdb, SciPy and h5py."""

import h5py
import numpy as np
import pandas as pd
import pytest
import wfdb
from scipy.io import loadmat

from cardiobench.data.phantom.ecg import ecg_patients, ecg_signal
from cardiobench.data.twin import write_twin

LEADS = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"]


@pytest.fixture(scope="module")
def georgia(tmp_path_factory):
    folder = tmp_path_factory.mktemp("georgia")
    write_twin("georgia", folder, patients=20, seed=3)
    return folder / "training" / "georgia"


@pytest.fixture(scope="module")
def chapman_ningbo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chapman_ningbo")
    write_twin("chapman_ningbo", folder, patients=30, seed=3)
    return folder / "training"


@pytest.fixture(scope="module")
def exams(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code15")
    write_twin("code15", folder, patients=15, seed=3)
    return folder


def first_records(patients: int, seed: int) -> list:
    seen = {}
    for record in ecg_patients(patients, seed):
        seen.setdefault(record.patient_id, record.truth)
    return list(seen.values())


def comments(record) -> dict[str, str]:
    return dict(line.split(": ") for line in record.comments)


def test_georgia_is_read_by_wfdb_and_by_scipy(georgia):
    names = (georgia / "g1" / "RECORDS").read_text().split()
    assert names == [f"E{number:05d}" for number in range(1, 21)]
    for name, truth in zip(names, first_records(20, 3), strict=True):
        record = wfdb.rdrecord(str(georgia / "g1" / name))
        assert record.sig_name == LEADS
        assert record.fs == 500
        np.testing.assert_allclose(record.p_signal, ecg_signal(truth), atol=0.000501)
        values = loadmat(georgia / "g1" / f"{name}.mat")["val"]
        assert (values.shape, values.dtype) == ((12, 5000), np.int16)
        np.testing.assert_array_equal(values.T / 1000, record.p_signal)
        facts = comments(record)
        assert list(facts) == ["Age", "Sex", "Dx", "Rx", "Hx", "Sx", "Source"]
        assert ("164889003" in facts["Dx"].split(",")) == truth.af
        assert bool({"59118001", "164909002", "270492004"} & set(facts["Dx"].split(","))) == truth.cd
        assert facts["Sex"] == {"F": "Female", "M": "Male"}[truth.sex]
        assert float(facts["Age"]) == truth.age


def test_headers_look_like_those_of_the_release(georgia, samples):
    path = samples / "georgia" / "E07500.hea"
    ours, theirs = (georgia / "g1" / "E00001.hea").read_text().splitlines(), path.read_text().splitlines()
    assert ours[0].split()[1:] == theirs[0].split()[1:]
    for our, their in zip(ours[1:13], theirs[1:13], strict=True):
        # Compare all fields except file name, first sample and checksum, which differ between records.
        assert np.delete(our.split(), [0, 5, 6]).tolist() == np.delete(their.split(), [0, 5, 6]).tolist()
    assert [line.split(":")[0] for line in theirs[13:]] == [line.split(":")[0] for line in ours[13 : len(theirs)]]


def test_only_chapman_labels_fibrillation_and_only_ningbo_complete_block(chapman_ningbo):
    codes = {}
    for hospital in ("chapman_shaoxing", "ningbo"):
        paths = sorted((chapman_ningbo / hospital).glob("g*/*.hea"))
        codes[hospital] = {
            code for path in paths for code in comments(wfdb.rdheader(str(path.with_suffix(""))))["Dx"].split(",")
        }
        assert all(path.with_suffix(".mat").is_file() for path in paths)
        numbers = [int(path.stem.removeprefix("JS")) for path in paths]
        assert (max(numbers) <= 10_645) if hospital == "chapman_shaoxing" else (min(numbers) >= 10_646)
    assert "164889003" in codes["chapman_shaoxing"] - codes["ningbo"]
    assert codes["ningbo"] & {"713427006", "733534002"}
    assert not codes["chapman_shaoxing"] & {"713427006", "733534002"}


def test_code15_parts_hold_the_exams_of_the_table(exams, samples):
    table = pd.read_csv(exams / "exams.csv")
    real = pd.read_csv(samples / "code15" / "exams_sample10.csv")
    assert list(table.columns) == list(real.columns)
    assert table["exam_id"].is_unique
    truths = dict(zip(table["exam_id"], (record.truth for record in ecg_patients(15, 3)), strict=True))
    seen = []
    for name, rows in table.groupby("trace_file"):
        with h5py.File(exams / name) as file:
            ids, tracings = file["exam_id"][:], file["tracings"][:]
        assert (tracings.dtype, tracings.shape) == (np.float32, (len(rows) + 1, 4096, 12))
        assert ids[-1] == 0
        assert not tracings[-1].any()
        assert set(ids[:-1]) == set(rows["exam_id"])
        for exam, tracing in zip(ids, tracings[:-1], strict=False):
            used = np.flatnonzero(tracing.any(axis=1))
            seen.append(len(used))
            assert used[0] == 4095 - used[-1]  # The padding is the same on both sides.
            expected = ecg_signal(truths[exam], fs=400, seconds=len(used) / 400)
            np.testing.assert_array_equal(tracing[used[0] : used[-1] + 1], expected)
    assert set(seen) == {2934, 4096}


def test_code15_labels_match_the_phantoms(exams):
    table = pd.read_csv(exams / "exams.csv")
    truths = [record.truth for record in ecg_patients(15, 3)]
    assert table["AF"].tolist() == [truth.af for truth in truths]
    assert table[["1dAVb", "RBBB", "LBBB"]].any(axis=1).tolist() == [truth.cd for truth in truths]
    assert table["is_male"].tolist() == [truth.sex == "M" for truth in truths]
    assert not (table["normal_ecg"] & table[["AF", "1dAVb", "RBBB", "LBBB"]].any(axis=1)).any()
    assert table.groupby("patient_id")["death"].count().eq(1).all()  # Known only at the first exam.
