"""Test CSV recordings with the separators, decimal signs and encodings of hospital exports."""

import re

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import as_ecg
from cardiobench.data.media.ecg_tables import read_csv_ecg, read_parquet_ecg

SIGNAL = np.array([[0.125, -1.5, 1.0], [0.25, 0.0, 0.5], [-0.5, 2.75, 3.25]])


def written(tmp_path, header, separator, decimal, encoding="utf-8"):
    rows = [separator.join(f"{value:.3f}".replace(".", decimal) for value in row) for row in SIGNAL]
    path = tmp_path / "ecg.csv"
    path.write_bytes("\r\n".join([separator.join(header), *rows, ""]).encode(encoding))
    return path


@pytest.mark.parametrize(
    ("header", "separator", "decimal", "encoding"),
    [
        (("I", "II", "III"), ";", ",", "utf-8"),
        (("I", "II", "III"), "\t", ",", "utf-8"),
        (("I", "II", "III"), "\t", ",", "utf-16"),
        (("I, roh", "II", "III"), "\t", ".", "utf-8"),
        (("I, roh", "II", "III"), ";", ".", "utf-8"),
        (("I (\xb5V)", "II (\xb5V)", "III (\xb5V)"), ";", ",", "cp1252"),
    ],
)
def test_decimal_signs_and_encodings_of_exports_are_read(tmp_path, header, separator, decimal, encoding):
    read = read_csv_ecg(written(tmp_path, header, separator, decimal, encoding))
    assert read.leads == header
    np.testing.assert_array_equal(read.signal, SIGNAL)


def read_lines(tmp_path, *lines):
    path = tmp_path / "ecg.csv"
    path.write_text("\n".join((*lines, "")), encoding="utf-8")
    return read_csv_ecg(path)


@pytest.mark.parametrize(
    ("names", "units"),
    [
        (("I (mV)", "II (mV)"), ("mV", "mV")),
        (("I [\xb5V]", "Lead II [uV]"), ("\xb5V", "uV")),
        (("time (s)", "I (mV)", "II ( mV )"), ("", "mV", "mV")),
        (("n", "I (mV)", "II (mV)"), ("", "mV", "mV")),
        (("c1 (nV)", "c2 (nV)"), ("nV", "nV")),
        (("I (mV)", "II"), None),
        (("I (raw)", "II (raw)"), None),
        (("I", "II"), None),
    ],
)
def test_units_in_the_names_of_columns_are_stated(tmp_path, names, units):
    rows = [",".join(["0.1"] * len(names)) for _ in range(3)]
    read = read_lines(tmp_path, ",".join(names), *rows)
    assert read.leads == names and read.units == units
    table = pd.read_csv(tmp_path / "ecg.csv")
    table.to_parquet(tmp_path / "ecg.parquet")
    assert read_parquet_ecg(tmp_path / "ecg.parquet").units == units


@pytest.mark.parametrize(
    ("name", "times", "rate"),
    [
        ("time (s)", np.arange(1000) / 500, 500),
        ("t_ms", np.arange(1000) * 2.0, 500),
        ("Zeit [ms]", (np.arange(1000) / 0.36).round(2), 360),
        ("time (s)", 17.25 + (np.arange(1000) / 257).round(4), 257),
        ("time (s)", np.arange(1000) / 128.5, 128.5),
        ("time (s)", (np.arange(1000) / 512).round(3), 512),  # Steps of 1 and 2 ms.
        ("time (s)", (np.arange(1000) / 800).round(3), None),  # Steps of 1 and 2 ms at regular distances.
        ("time (s)", (np.arange(1000) / 700).round(3), 700),
        ("time", np.arange(1000) / 500, None),
        ("time (s)", np.zeros(1000), None),
        ("sample (s)", np.arange(1000) / 500, None),
    ],
)
def test_rate_is_that_of_evenly_spaced_times(tmp_path, name, times, rate):
    read = read_lines(tmp_path, f"{name},I", *(f"{time!r},0.5" for time in times.tolist()))
    assert read.fs == (None if rate is None else pytest.approx(rate, rel=1e-9))


@pytest.mark.parametrize(
    ("name", "times", "said"),
    [
        ("time (s)", np.delete(np.arange(1000), 300) / 500, "1 gap, the first of 0.002 s after 0.598 s (row 300)"),
        ("Zeit (ms)", np.r_[:1000:2, 3000:4000:2], "1 gap, the first of 2000 ms after 998 ms (row 500)"),
        ("t_ms", np.delete(np.arange(1000) * 1000 // 512, [200, 700]), "2 gaps, the first of 2 ms after 388 ms (row 200)"),
        ("time", np.r_[:500, 900:1000], "1 gap, the first of 400 after 499 (row 500)"),
        ("time (s)", np.r_[:500, 200:500] / 500, "goes back in 1 row, first after 0.998 s (row 500)"),
    ],
)  # fmt: skip
def test_times_with_a_gap_are_refused_with_its_place(tmp_path, name, times, said):
    rows = pd.DataFrame({name: times, "I": 0.5})
    rows.to_csv(tmp_path / "ecg.csv", index=False)
    rows.to_parquet(tmp_path / "ecg.parquet")
    for read, path in ((read_csv_ecg, tmp_path / "ecg.csv"), (read_parquet_ecg, tmp_path / "ecg.parquet")):
        with pytest.raises(BadMedia, match=re.escape(said)):
            read(path)


def test_lines_before_the_table_state_rate_and_unit(tmp_path):
    rows = ("time (s),I,II", "0,1,2", "0.002,1,2", "0.004,1,2")
    read = read_lines(tmp_path, "# filter: 0.05 - 150 Hz", "# Sampling rate: 500 Hz", "#unit = uV", *rows)
    assert (read.fs, read.units, read.leads, read.signal.shape) == (500, ("uV",), ("time (s)", "I", "II"), (3, 3))
    assert read_lines(tmp_path, "# filter: 0.05 - 150 Hz", "I,II", "1,2").fs is None
    with pytest.raises(BadMedia, match=r"states 250 Hz, but its column 'time \(s\)' has 500 Hz"):
        read_lines(tmp_path, "# fs=250", *rows)


def test_names_that_numpy_writes_are_read(tmp_path):
    np.savetxt(tmp_path / "ecg.csv", SIGNAL, delimiter=",", header="fs: 250\nI,II,III")
    read = read_csv_ecg(tmp_path / "ecg.csv")
    assert read.leads == ("I", "II", "III") and read.fs == 250
    np.testing.assert_array_equal(read.signal, SIGNAL)


def test_stated_unit_is_applied_and_must_not_be_contradicted(tmp_path):
    path = tmp_path / "ecg.csv"
    path.write_text("t_ms,I (uV),II (uV)\n0,100,200\n2,100,200\n4,100,200\n", encoding="utf-8")
    ecg = as_ecg(read_csv_ecg(path), "ecg.csv")
    assert ecg.fs == 500 and ecg.signal[0, :2].tolist() == pytest.approx([0.1, 0.2])
    assert as_ecg(read_csv_ecg(path), "ecg.csv", unit="\xb5V", fs=500).fs == 500
    with pytest.raises(BadMedia, match=r"lead I .* is in 'uV', but mV was given"):
        as_ecg(read_csv_ecg(path), "ecg.csv", unit="mV")


def test_numbers_with_decimal_commas_need_no_names(tmp_path):
    assert read_lines(tmp_path, "0,1;0,2;0,3", "1,5;2,5;3,5").signal.tolist() == [[0.1, 0.2, 0.3], [1.5, 2.5, 3.5]]


def test_bytes_of_no_encoding_are_refused(tmp_path):
    path = tmp_path / "ecg.csv"
    path.write_bytes(b"I,II\x81\n0.1,0.2\n")
    with pytest.raises(BadMedia, match="cannot be read as a table of samples"):
        read_csv_ecg(path)
