"""Test EDF and BDF files whose length, times or calibration contradict their header."""

from pathlib import Path

import edfio
import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import as_ecg
from cardiobench.data.media.ecg_edf import read_edf_ecg
from cardiobench.data.media.types import LEADS

FS, SECONDS = 100, 10
RANGE = (-32768, 32767)


@pytest.fixture
def signal() -> np.ndarray:
    """Return whole microvolts (1000, 12), limb leads by Einthoven and Goldberger."""
    made = np.random.default_rng(5).integers(-900, 900, (SECONDS * FS, 12)) * 2.0
    first, second = made[:, 0], made[:, 1]
    made[:, 2:6] = np.stack([second - first, -(first + second) / 2, first - second / 2, second - first / 2], axis=1)
    return made


def write(
    path: Path, signal: np.ndarray, label: str = "ECG {}", annotations=None, kind=edfio.EdfSignal, bounds=RANGE
) -> bytes:
    """Write twelve leads in uV, data records of 1 s; return the content."""
    signals = [
        kind(
            column,
            FS,
            label=label.format(lead),
            physical_dimension="uV",
            physical_range=bounds,
            digital_range=bounds,
        )
        for lead, column in zip(LEADS, signal.T, strict=True)
    ]
    whole = edfio.Edf if kind is edfio.EdfSignal else edfio.Bdf
    whole(signals, data_record_duration=1, annotations=annotations).write(path)
    return path.read_bytes()


RECORD = 12 * FS * 2
HEADER = 13 * 256


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (HEADER + 4 * RECORD, r"cut short.* declares 10 s \(10 data records\), but it has 4 s \(4 data records\)"),
        (HEADER + 4 * RECORD + 7, r"cut short.* 4 s \(4 data records and 7 bytes\)"),
        (HEADER + 10 * RECORD - 1, r"cut short.* 9 s \(9 data records and 2399 bytes\)"),
        (HEADER, r"cut short.* 0 s \(0 data records\)"),
        (HEADER + 11 * RECORD, r"longer than declared.* 11 s \(11 data records\)"),
        (HEADER + 10 * RECORD + 2, r"longer than declared.* 10 s \(10 data records and 2 bytes\)"),
    ],
)
def test_length_must_be_that_of_the_header(tmp_path, signal, length, said):
    path = tmp_path / "one.edf"
    content = write(path, signal)
    path.write_bytes((content + content[HEADER:])[:length])
    with pytest.raises(BadMedia, match=rf"one\.edf is {said}"):
        read_edf_ecg(path)


@pytest.mark.parametrize("records", ["0", "-1"])
def test_file_without_data_records_is_refused(tmp_path, signal, records):
    path = tmp_path / "one.edf"
    content = write(path, signal)
    whole = content[:HEADER] if records == "0" else content
    path.write_bytes(whole[:236] + records.ljust(8).encode() + whole[244:])
    with pytest.raises(BadMedia, match=rf"declares {records} data records"):
        read_edf_ecg(path)


def discontinuous(content: bytes, onsets: list[float]) -> bytes:
    """Return an EDF+C file as EDF+D, whose data records begin at the given seconds."""
    labels = [content[256 + 16 * i : 272 + 16 * i].strip() for i in range(13)]
    sizes = [int(content[256 + 13 * 216 + 8 * i :][:8]) for i in range(13)]
    before, size = 2 * sum(sizes[: labels.index(b"EDF Annotations")]), 2 * sizes[labels.index(b"EDF Annotations")]
    made = bytearray(content)
    made[192:197] = b"EDF+D"
    for number, onset in enumerate(onsets):
        at = 14 * 256 + number * 2 * sum(sizes) + before
        made[at : at + size] = f"+{onset:g}\x14\x14\0".encode().ljust(size, b"\0")
    return bytes(made)


@pytest.mark.parametrize("first", [0, 0.5])
def test_interrupted_file_is_refused_with_its_gap(tmp_path, signal, first):
    path = tmp_path / "one.edf"
    content = write(path, signal, annotations=[edfio.EdfAnnotation(0, None, "room for times")])
    times = first + np.arange(SECONDS, dtype=float)
    path.write_bytes(discontinuous(content, list(times)))
    np.testing.assert_allclose(read_edf_ecg(path).signal, signal, atol=0.6)
    times[5:] += 2
    times[8:] += 30
    path.write_bytes(discontinuous(content, list(times)))
    with pytest.raises(BadMedia, match=r"interrupted \(EDF\+D\): 2 gaps, the first of 2 s after 5 s"):
        read_edf_ecg(path)


def test_discontinuous_file_without_times_is_refused(tmp_path, signal):
    path = tmp_path / "one.edf"
    content = write(path, signal)
    path.write_bytes(content[:192] + b"EDF+D" + content[197:])
    with pytest.raises(BadMedia, match="needs annotations"):
        read_edf_ecg(path)


@pytest.mark.parametrize("label", ["{}", "ECG {}", "{}-Ref", "EKG {}-REF", "Lead {}", "ECG lead {}"])
def test_labels_are_known(tmp_path, signal, label):
    write(tmp_path / "one.edf", signal, label)
    ecg = as_ecg(read_edf_ecg(tmp_path / "one.edf"), "one")
    np.testing.assert_allclose(ecg.signal, signal / 1000, atol=6e-4)
    assert ecg.leads == LEADS and ecg.fs == FS


def test_labels_of_two_electrodes_are_no_leads(tmp_path, signal):
    write(tmp_path / "one.edf", signal, "{}-V1")
    with pytest.raises(BadMedia, match="no lead among its channels I-V1, II-V1"):
        read_edf_ecg(tmp_path / "one.edf")


def test_bdf_has_three_bytes_a_sample(tmp_path, signal):
    path = tmp_path / "one.bdf"
    content = write(path, signal, kind=edfio.BdfSignal, bounds=(-8388608, 8388607))
    np.testing.assert_allclose(read_edf_ecg(path).signal, signal, atol=0.6)
    path.write_bytes(content[:-3600])
    with pytest.raises(BadMedia, match=r"cut short.* 9 s \(9 data records\)"):
        read_edf_ecg(path)


@pytest.mark.parametrize("field", [104, 112, 120, 128])
@pytest.mark.parametrize("value", ["x", "7", "-32768", "32767", "inf"])
def test_calibration_that_cannot_be_is_refused(tmp_path, signal, field, value):
    """Set one limit of the first lead; at 104 and 112 are its physical, at 120 and 128 its digital limits."""
    path = tmp_path / "one.edf"
    content = bytearray(write(path, signal))
    at = 256 + 12 * field
    before = content[at : at + 8].strip().decode()
    other = content[at + 12 * 8 if field in (104, 120) else at - 12 * 8 :][:8].strip().decode()
    content[at : at + 8] = value.ljust(8).encode()
    path.write_bytes(bytes(content))
    if value == before:
        np.testing.assert_allclose(read_edf_ecg(path).signal, signal, atol=0.6)
    elif value in ("x", "inf", other):
        with pytest.raises(BadMedia, match="cannot be read as EDF"):
            read_edf_ecg(path)


def test_micro_sign_of_old_devices_is_read(tmp_path, signal):
    path = tmp_path / "one.edf"
    content = write(path, signal)
    path.write_bytes(content.replace(b"uV      ", b"\xb5V      "))
    assert read_edf_ecg(path).units == ("\N{MICRO SIGN}V",) * 12
