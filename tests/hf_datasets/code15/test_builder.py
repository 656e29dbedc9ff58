"""Compare CODE-15% exams, labels, parts and padding with release files and h5py."""

import shutil

import h5py
import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data import open_dataset

COLUMNS = ("exam_id", "age", "is_male", "nn_predicted_age", "1dAVb", "RBBB", "LBBB", "SB", "ST", "AF", "patient_id",
           "death", "timey", "normal_ecg", "trace_file")  # fmt: skip


def exam(number, patient, part=0, *, age="50", male="True", true=()):
    flags = {name: str(name in true) for name in COLUMNS[4:10]}
    told = {
        "exam_id": number,
        "age": age,
        "is_male": male,
        "patient_id": patient,
        "trace_file": f"exams_part{part}.hdf5",
    }
    return {**dict.fromkeys(COLUMNS, ""), **flags, "normal_ecg": str(not true), **told}


def write(raw, exams, parts):
    """Write `parts` (part number -> exam ids in stored order); the tracing of exam n is n in 2934 of 4096 samples."""
    pd.DataFrame(exams, columns=COLUMNS).to_csv(raw / "exams.csv", index=False)
    for part, numbers in parts.items():
        tracings = np.zeros((len(numbers) + 1, 4096, 12), np.float32)
        for row, number in enumerate(numbers):
            tracings[row, 581:3515] = number + np.arange(12) / 100
        path = raw / f"exams_part{part}.hdf5"
        path.unlink(missing_ok=True)
        with h5py.File(path, "w") as file:
            file["exam_id"] = np.array([*numbers, 0], np.int64)
            file["tracings"] = tracings
    return raw


EXAMS = (
    exam(11, 1, true=("RBBB", "AF")),
    exam(12, 1, part=1),
    exam(13, 2, male="False", true=("SB",)),
    exam(14, 3, part=1, true=("1dAVb",)),
)


@pytest.fixture
def raw(tmp_path):
    """Test exams whose order in the files differs from that in the table."""
    return write(tmp_path, EXAMS, {0: (13, 11), 1: (12, 14)})


def opened(raw):
    return open_dataset("code15", raw, allow_missing=True)


def test_real_exams(samples, tmp_path):
    """Compare two real exams with their lines of the release's table, read by hand, and with h5py."""
    sample = samples / "code15"
    table = pd.read_csv(sample / "exams_sample10.csv").assign(trace_file="exams_part0.hdf5")
    table[table["exam_id"].isin((438277, 1594286))].to_csv(tmp_path / "exams.csv", index=False)
    shutil.copyfile(sample / "exams_part0_DERIVED.hdf5", tmp_path / "exams_part0.hdf5")
    source = opened(tmp_path)
    frame = source.frame.set_index("id")
    columns = ["patient_id", "sex", "age", "dx", "cd", "af"]
    assert frame.loc["438277", columns].tolist() == ["185323", "M", 46, "1dAVb", "CD", "no AF"]
    assert frame.loc["1594286", columns].tolist() == ["1599228", "F", 68, "RBBB", "CD", "no AF"]
    assert source.table.missing == () and not any(source.table.excluded.values())
    lengths = []
    with h5py.File(tmp_path / "exams_part0.hdf5") as file:
        for number in range(2):
            ecg = source.recording(number)
            assert str(file["exam_id"][number]) == source.frame["id"][number] and ecg.fs == 400
            lengths.append(len(ecg.signal))
            before = (4096 - lengths[-1]) // 2
            np.testing.assert_array_equal(ecg.signal, file["tracings"][number, before : before + lengths[-1]])
    assert lengths == [2934, 4096]
    # Einthoven's law holds between the leads (III = II - I, aVF = II - I / 2), which confirms their order.
    signal = source.recording(1).signal
    np.testing.assert_allclose(signal[:, 2], signal[:, 1] - signal[:, 0], atol=0.05)
    np.testing.assert_allclose(signal[:, 5], signal[:, 1] - signal[:, 0] / 2, atol=0.05)


def test_each_exam_gets_its_own_tracing_without_the_padding(raw):
    source = opened(raw)
    assert list(source.frame["id"]) == ["11", "12", "13", "14"]
    for number, row in source.frame.iterrows():
        ecg = source.recording(number)
        assert ecg.signal.shape == (2934, 12) and ecg.fs == 400
        np.testing.assert_allclose(ecg.signal[0], int(row["id"]) + np.arange(12) / 100)


def test_labels_sexes_and_patients(raw):
    frame = opened(raw).frame
    assert frame["cd"].tolist() == ["CD", "no CD", "no CD", "CD"]
    assert frame["af"].tolist() == ["AF", "no AF", "no AF", "no AF"]
    assert frame["sex"].tolist() == ["M", "M", "F", "M"] and frame["dx"].iloc[0] == "RBBB,AF"
    assert frame.groupby("patient_id")["split"].nunique().max() == 1


@pytest.mark.parametrize("age, expected", [("17", 17), ("", None), ("-3", None), ("999", None), ("nan", None)])
def test_ages(raw, age, expected):
    write(raw, [*EXAMS, exam(15, 4, age=age)], {0: (13, 11, 15)})
    found = opened(raw).frame.set_index("id").loc["15", "age"]
    assert found == expected or (expected is None and pd.isna(found))


def test_order_of_columns_does_not_matter_and_flags_may_be_numbers(raw):
    before = opened(raw).frame
    table = pd.read_csv(raw / "exams.csv")[list(COLUMNS[::-1])]
    table[list(COLUMNS[4:10])] = table[list(COLUMNS[4:10])].astype(int)
    table.to_csv(raw / "exams.csv", index=False)
    pd.testing.assert_frame_equal(opened(raw).frame, before)


def test_total_count_is_checked(raw):
    with pytest.raises(MissingData, match=r"train \d+ of \d+, validation \d+ of \d+, test \d+ of \d+ rows"):
        open_dataset("code15", raw)


# ---- Invalid input ----------------------------------------------------------------------------------------------------


def test_missing_part_is_named_and_its_exams_counted(raw):
    (raw / "exams_part1.hdf5").unlink()
    with pytest.raises(MissingData, match=r"1 of 2 files .* exams_part1\.hdf5"):
        open_dataset("code15", raw)
    source = opened(raw)
    assert source.table.missing == ("exams_part1.hdf5",)
    assert list(source.frame["id"]) == ["11", "13"] and len(source.table.listed) == 4


def test_unmatched_exams_and_tracings_are_named(raw):
    write(raw, [*EXAMS, exam(15, 4)], {0: (13, 11, 77)})
    source = opened(raw)
    assert source.table.missing == ("exams_part0.hdf5/15",) and "15" not in set(source.frame["id"])
    assert source.table.excluded == {"tracings missing from exams.csv": ("exams_part0.hdf5/77",)}


def test_tracing_in_wrong_part_is_ignored(raw):
    write(raw, EXAMS, {0: (13,), 1: (12, 14, 11)})
    source = opened(raw)
    assert source.table.missing == ("exams_part0.hdf5/11",)
    assert source.table.excluded == {"tracings missing from exams.csv": ("exams_part1.hdf5/11",)}


def test_repeated_exam_ids_are_refused(raw):
    write(raw, [*EXAMS, exam(11, 1)], {})
    with pytest.raises(BadData, match="1 id in several rows: 11"):
        opened(raw)
    write(raw, EXAMS, {0: (13, 11, 13)})
    with pytest.raises(BadData, match=r"exams_part0\.hdf5: 1 exam ids occur more than once: 13"):
        opened(raw)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"exam_id": "x"}, r"exams\.csv, line 6, column 'exam_id' is 'x'; expected a whole number"),
        ({"patient_id": ""}, "line 6, column 'patient_id' is empty; expected a whole number"),
        ({"AF": "maybe"}, "line 6, column 'AF' is 'maybe'; expected true or false"),
        ({"RBBB": ""}, "column 'RBBB' is empty; expected true or false"),
        ({"trace_file": ""}, "column 'trace_file' is empty"),
        ({"trace_file": "../exams_part0.hdf5"}, "points outside the raw folder"),
    ],
)
def test_rows_without_usable_values_are_refused(raw, change, message):
    write(raw, [*EXAMS, {**exam(15, 4), **change}], {})
    with pytest.raises(BadData, match=message):
        opened(raw)


def test_unknown_sex_is_null(raw):
    write(raw, [*EXAMS, exam(15, 4, male="")], {0: (13, 11, 15)})
    assert pd.isna(opened(raw).frame.set_index("id").loc["15", "sex"])


def test_zero_tracing_is_named_when_read(raw):
    with h5py.File(raw / "exams_part0.hdf5", "r+") as file:
        file["tracings"][1] = 0
    source = opened(raw)
    with pytest.raises(BadMedia, match=r"record 11 of .*exams_part0\.hdf5 is flat: every sample is 0"):
        source.recording(0)


def test_truncated_part_is_named(raw):
    part = raw / "exams_part1.hdf5"
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(BadMedia, match=r"exams_part1\.hdf5 cannot be read as HDF5"):
        opened(raw)


def test_replaced_part_is_reopened(raw):
    assert opened(raw).recording(0).signal[0, 0] == 11
    other = raw / "other"
    other.mkdir()
    write(other, EXAMS, {0: (11, 13)})
    (other / "exams_part0.hdf5").replace(raw / "exams_part0.hdf5")
    source = opened(raw)
    assert source.recording(0).signal[0, 0] == 11 and source.recording(2).signal[0, 0] == 13


def test_six_diagnoses_and_normal_negatives(tmp_path):
    unclear = exam(15, 4) | {"normal_ecg": "False"}
    raw = write(tmp_path, (*EXAMS, unclear), {0: (13, 11, 15), 1: (12, 14)})
    frame = opened(raw).frame.set_index("id")
    assert frame.loc[["11", "12", "13", "14", "15"], "six"].tolist() == ["RBBB;AF", "", "SB", "1dAVb", ""]
    clean = frame.loc[["11", "12", "13", "14", "15"], "six_clean"]
    assert clean.iloc[:4].tolist() == ["RBBB;AF", "", "SB", "1dAVb"] and clean.isna().iloc[4]
