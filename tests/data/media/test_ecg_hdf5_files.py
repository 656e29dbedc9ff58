"""Test CODE-15% files: real exams, padding and invalid files."""

import h5py
import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import LEADS, read_ecg
from cardiobench.data.media.ecg_hdf5 import open_tracings


@pytest.fixture
def exams(tmp_path):
    """Write three records of 40 samples: one full, one padded from 28 by 6 zeros per side, and the empty last row of the release."""
    rng = np.random.default_rng(1)
    tracings = rng.normal(size=(3, 40, 12)).astype(np.float32)
    tracings[1, :6] = tracings[1, -6:] = 0
    tracings[2] = 0
    path = tmp_path / "exams_part7.hdf5"
    with h5py.File(path, "w") as file:
        file["tracings"] = tracings
        file["exam_id"] = np.array([1169160, 2, 0])
    return path, tracings


def test_records_are_found_by_row_and_by_exam_id(exams):
    path, tracings = exams
    for record in (0, np.int64(0), "1169160"):
        ecg = read_ecg(path, record)
        assert ecg.fs == 400.0
        np.testing.assert_array_equal(ecg.signal, tracings[0])
    np.testing.assert_array_equal(read_ecg(path, "2").signal, tracings[1, 6:-6])


def test_only_padding_on_both_sides_is_removed(exams):
    """Test a recording that begins with true zeros: padding is symmetric, so the side with fewer zeros determines it."""
    path, tracings = exams
    with h5py.File(path, "r+") as file:
        file["tracings"][1, 6:9] = 0
        file["tracings"][0, :4] = 0
    np.testing.assert_array_equal(read_ecg(path, 1).signal[3:], tracings[1, 9:-6])
    assert read_ecg(path, 1).signal.shape == (28, 12)
    assert read_ecg(path, 0).signal.shape == (40, 12)


def test_columns_may_be_in_another_order(exams):
    path, tracings = exams
    ecg = read_ecg(path, 0, leads=LEADS[::-1])
    np.testing.assert_array_equal(ecg.signal, tracings[0, :, ::-1])
    with pytest.raises(BadMedia, match="12 channels, but 1 leads were named"):
        read_ecg(path, 0, leads=["I"])


def test_real_exams(samples):
    """Check lengths of 7.3 s (2934 samples) or 10.24 s (4096 samples) at 400 Hz, and a plausible QRS amplitude in mV."""
    path = samples / "code15" / "exams_part0_DERIVED.hdf5"
    with h5py.File(path) as file:
        ids, tracings = file["exam_id"][:], file["tracings"][:]
    lengths = [2934, 4096]
    for row, length in enumerate(lengths):
        ecg = read_ecg(path, row)
        assert ecg.signal.shape == (length, 12)
        start = (4096 - length) // 2
        np.testing.assert_array_equal(ecg.signal, tracings[row, start : start + length])
        np.testing.assert_array_equal(ecg.signal, read_ecg(path, str(ids[row])).signal)
        lead_two = ecg.signal[:, 1]
        assert 0.2 < np.abs(lead_two - np.median(lead_two)).max() < 20
    with pytest.raises(BadMedia, match=r"record 2 of .* is flat"):
        read_ecg(path, 2)


def test_refused_with_the_reason(exams):
    path, _ = exams
    for record, message in (
        (None, r"has 3 records\. Give a row number"),
        (1.0, "got 1.0"),
        (True, "got True"),
        (3, "has records 0 to 2, but 3 was requested"),
        (-1, "but -1 was requested"),
        ("77", "has 0 records with exam id 77; expected 1"),
        ("ES01", "has 0 records with exam id ES01"),
        (2, "record 2 of .* is flat: every sample is 0"),
    ):
        with pytest.raises(BadMedia, match=message):
            read_ecg(path, record)


def test_repeated_exam_id_is_refused(exams):
    path, _ = exams
    with h5py.File(path, "r+") as file:
        file["exam_id"][1] = 1169160
    with pytest.raises(BadMedia, match="has 2 records with exam id 1169160"):
        read_ecg(path, "1169160")


def test_non_finite_values_are_refused(exams):
    path, _ = exams
    with h5py.File(path, "r+") as file:
        file["tracings"][0, 5:8, 2] = np.nan
        file["tracings"][0, 0, 6] = np.inf
    with pytest.raises(BadMedia, match=r"record 0 of .*part7\.hdf5 has samples .* III \(3\), V1 \(1\) of 40 samples"):
        read_ecg(path, 0)


def test_other_layout_is_refused(tmp_path, exams):
    path = tmp_path / "other.hdf5"
    with h5py.File(path, "w") as file:
        file["signals"] = np.ones((2, 3))
    with pytest.raises(BadMedia, match=r"other\.hdf5 has no `tracings` of shape .*; it has signals"):
        read_ecg(path, 0)
    with h5py.File(path, "w") as file:
        file["tracings"] = np.ones((2, 30, 8), np.float32)
    with pytest.raises(BadMedia, match="8 channels, but 12 leads were named"):
        read_ecg(path, 0)
    with pytest.raises(BadMedia, match="does not have one `exam_id` for each of its 2 records"):
        read_ecg(path, "0")


def test_cut_short(exams):
    path, _ = exams
    content = path.read_bytes()
    for kept in (20, len(content) // 2, len(content) - 100):
        path.write_bytes(content[:kept])
        with pytest.raises(BadMedia, match=r"exams_part7\.hdf5 cannot be read as HDF5"):
            read_ecg(path, 0)


def test_file_that_is_neither_hdf5_nor_wfdb_is_refused(tmp_path):
    path = tmp_path / "exams.csv"
    path.write_text("exam_id,age\n")
    with pytest.raises(BadMedia, match=r"exams\.csv is not an HDF5 file and has no WFDB header"):
        read_ecg(path)
    path.write_bytes(b"")
    with pytest.raises(BadMedia, match=r"exams\.csv is empty \(0 bytes\)"):
        read_ecg(path)
    with pytest.raises(BadMedia, match="cannot be opened"):
        read_ecg(tmp_path)


def test_non_text_names_are_refused(tmp_path):
    """Test a damaged file for which h5py returns names as bytes."""
    path = tmp_path / "other.hdf5"
    with h5py.File(path, "w") as file:
        file.create_group(b"tracin\xe7s")
    with pytest.raises(BadMedia, match="no `tracings`"):
        read_ecg(path, 0)


def test_hdf5_user_block_does_not_shift_records(tmp_path):
    whole = np.random.default_rng(0).normal(size=(2, 4096, 12)).astype(np.float32)
    with h5py.File(tmp_path / "exams.hdf5", "w", userblock_size=512) as file:
        file["tracings"], file["exam_id"] = whole, np.array([5, 6])
    assert np.array_equal(open_tracings(tmp_path / "exams.hdf5").signal(1), whole[1])
