"""Check that the fast CSV reader gives the same values and errors as the tolerant one."""

import gzip

import pandas as pd
import pytest

from cardiobench.core.errors import CardioBenchError
from cardiobench.data import tables
from cardiobench.data.tables import flag, identifier, number, read_columns, text

COLUMNS = {"exam": identifier(), "age": number(0, 120, optional=True), "male": flag(optional=True), "file": text()}
EXTRA = {"note": text(optional=True)}
PLAIN = "exam,age,male,file,unread\n401.0,55,True,a.hdf5,x\n007,,0,b.hdf5,\n12, 33.5 ,False,a.hdf5,y\n"
FILES = {
    "plain": PLAIN,
    "no last line end": PLAIN.rstrip("\n"),
    "windows line ends": PLAIN.replace("\n", "\r\n"),
    "old mac line ends": PLAIN.replace("\n", "\r"),
    "byte-order mark": "\ufeff" + PLAIN,
    "quotes": PLAIN.replace("a.hdf5", '"a,b.hdf5"'),
    "a line end inside quotes": PLAIN.replace("b.hdf5", '"b\n.hdf5"'),
    "blank lines": PLAIN.replace("\n007", "\n\n007"),
    "a row without any value": PLAIN.replace("\n007", "\n,,,,\n007"),
    "semicolons and decimal commas": PLAIN.replace("33.5", "33@5").replace(",", ";").replace("@", ","),
    "an extra column": PLAIN.replace("unread", "note"),
    "blanks in the header": PLAIN.replace("age", " age "),
    "header alone": "exam,age,male,file,unread\n",
    "empty": "",
    "a short row": PLAIN + "13,20\n",
    "a long row": PLAIN + "13,20,True,a.hdf5,x,y\n",
    "a long row of blanks": PLAIN + "13,20,True,a.hdf5,x,,\n",
    "a wrong number": PLAIN.replace("33.5", "130"),
    "a wrong flag": PLAIN.replace("False", "no"),
    "an empty cell that may not be": PLAIN.replace("007", ""),
    "a column twice": PLAIN.replace("unread", "age"),
    "a column in another case twice": PLAIN.replace("unread", "Age"),
    "a column too few": PLAIN.replace("male", "sex"),
    "a zero byte": PLAIN.replace("b.hdf5", "b\0.hdf5"),
}
QUICK = {"plain", "no last line end", "windows line ends", "an extra column", "header alone"}


def outcome(path) -> pd.DataFrame | str:
    try:
        return read_columns(path, COLUMNS, extra=EXTRA)
    except CardioBenchError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", FILES)
def test_fast_and_tolerant_reader_agree(tmp_path, monkeypatch, name):
    path = tmp_path / "exams.csv"
    path.write_bytes(FILES[name].encode())
    quick = outcome(path)
    took_the_quick_way = tables._plain_columns(path, COLUMNS, EXTRA) is not None
    assert took_the_quick_way or name not in QUICK
    monkeypatch.setattr(tables, "_plain_columns", lambda *arguments: None)
    careful = outcome(path)
    if isinstance(careful, str):
        assert quick == careful
    else:
        pd.testing.assert_frame_equal(quick, careful, check_index_type=False)


def test_other_encodings_use_the_tolerant_reader(tmp_path):
    for name, content in {
        "latin.csv": PLAIN.replace("b.hdf5", "\u00e9.hdf5").encode("latin-1"),
        "utf16.csv": PLAIN.encode("utf-16"),
        "exams.csv.gz": gzip.compress(PLAIN.encode()),
    }.items():
        (tmp_path / name).write_bytes(content)
        assert tables._plain_columns(tmp_path / name, COLUMNS, EXTRA) is None
