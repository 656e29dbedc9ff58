"""Test CSV recordings with the separators, decimal signs and encodings of hospital exports."""

import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.ecg_tables import read_csv_ecg

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


def test_bytes_of_no_encoding_are_refused(tmp_path):
    path = tmp_path / "ecg.csv"
    path.write_bytes(b"I,II\x81\n0.1,0.2\n")
    with pytest.raises(BadMedia, match="cannot be read as a table of samples"):
        read_csv_ecg(path)
