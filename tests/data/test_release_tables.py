"""Test tables with different encodings, separators and cell types."""

import gzip

import pandas as pd
import pytest

from cardiobench.core.errors import BadData, BadPredictions
from cardiobench.core.tables import read_table
from cardiobench.data import catalog
from cardiobench.data.tables import choice, flag, identifier, integer, number, read_columns, text
from cardiobench.data.twin import write_twin

COLUMNS = {"name": text(), "ef": number(0, 100, unit="%"), "fold": integer(1, 10), "sex": choice({"F": "F", "M": "M"})}
ROWS = "name,ef,fold,sex\na,55.5,1,F\nb,60,10.0,m\n"


def check(path):
    frame = read_columns(path, COLUMNS)
    assert frame["name"].tolist() == ["a", "b"] and frame["ef"].tolist() == [55.5, 60.0]
    assert frame["fold"].tolist() == [1, 10] and frame["sex"].tolist() == ["F", "M"]
    assert frame.index.tolist() == [2, 3], "the lines of the file"


@pytest.mark.parametrize(
    "content",
    [
        ROWS.encode(),
        ROWS.encode("utf-8-sig"),
        ROWS.encode("utf-16"),
        ROWS.replace(",", "\t").encode(),
        ROWS.replace(",", ";").replace("55.5", "55,5").encode(),
        ROWS.replace("\n", "\r\n").encode(),
        ROWS.replace("a,55.5", '"a", 55.5 ').encode(),
        ROWS.replace("55.5", "55.50").encode() + b"\n,,,\n",
    ],
    ids=["utf-8", "mark", "utf-16", "tab", "semicolon", "windows", "quotes and blanks", "empty lines"],
)
def test_same_table_in_other_forms(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    check(tmp_path / "a.csv")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    check(tmp_path / "a.csv.gz")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("60", "sixty", r"a\.csv, line 3, column 'ef' is 'sixty'; expected a number from 0 to 100 \(%\)\. Correct"),
        ("60", "", "line 3, column 'ef' is empty; expected a number"),
        ("60", "1e999", "column 'ef' is '1e999'"),
        ("60", "1_0", "column 'ef' is '1_0'"),
        ("60", "6\0", r"column 'ef' is '6\\x00'"),
        ("10.0", "10.5", "column 'fold' is '10.5'; expected a whole number from 1 to 10"),
        ("10.0", "0", "column 'fold' is '0'; expected a whole number from 1 to 10"),
        ("10.0", "11", "column 'fold' is '11'"),
        (",m", ",X", "column 'sex' is 'X'; expected one of F, M"),
        ("b,60,10.0,m", "b,60", "line 3: 2 cells, but the header has 4 columns"),
        ("b,60,10.0,m", "b,60,10.0,m,7", "line 3: 5 cells"),
        ("name,ef", "name,EF,ef", r"has the column 'ef' more than once: name, EF, ef"),
        ("ef,", "efr,", "has no column 'ef'; it has name, efr, fold, sex. The nearest is 'efr'"),
        ("a,", '"a,', "cannot be read as a CSV"),
    ],
)
def test_invalid_cells_are_named_by_file_line_column_and_value(tmp_path, old, new, message):
    (tmp_path / "a.csv").write_text(ROWS.replace(old, new, 1))
    with pytest.raises(BadData, match=message):
        read_columns(tmp_path / "a.csv", COLUMNS)


def test_names_flags_and_optional_cells(tmp_path):
    (tmp_path / "a.csv").write_text("id,yes,size\n12345678901234567890,TRUE,\n401.0,0,3\n")
    columns = {"id": identifier(), "yes": flag(), "size": number(optional=True)}
    frame = read_columns(tmp_path / "a.csv", columns, extra={"later": text(optional=True)})
    assert frame["id"].tolist() == ["12345678901234567890", "401"] and frame["yes"].tolist() == [True, False]
    assert frame["size"].isna().tolist() == [True, False] and frame["later"].isna().all()


@pytest.fixture(scope="module")
def ptb_xl(tmp_path_factory):
    raw = tmp_path_factory.mktemp("ptb_xl") / "raw"
    write_twin("ptb_xl", raw, patients=4)
    return raw


@pytest.fixture
def database(ptb_xl):
    """Return the table as text cells, and a function that reads the table after a change."""
    path = ptb_xl / "ptbxl_database.csv"
    content = path.read_bytes()

    def read(table):
        table.to_csv(path, index=False)
        return catalog.builder("ptb_xl").table(ptb_xl).frame

    yield pd.read_csv(path, dtype=str, keep_default_na=False), read
    path.write_bytes(content)


def test_ptb_xl_ids_and_codes_in_other_spellings(database):
    table, read = database
    before = read(table)
    table["ecg_id"] += ".0"
    table["scp_codes"] = table["scp_codes"].str.lower()
    after = read(table)
    assert after["id"].tolist() == before["id"].tolist()
    assert after["cd"].tolist() == before["cd"].tolist() and after["af"].tolist() == before["af"].tolist()
    assert after["cd"].nunique() == 2


@pytest.mark.parametrize(
    "column, cell, expected",
    [
        ("ecg_id", "", "is empty; expected a whole number of 1 or more"),
        ("ecg_id", "x", "is 'x'; expected a whole number"),
        ("age", "old", "is 'old'; expected a number from 0 to 300"),
        ("strat_fold", "11", "is '11'; expected a whole number from 1 to 10"),
        ("strat_fold", "0", "is '0'; expected a whole number from 1 to 10"),
        ("patient_id", "", "is empty; expected a whole number"),
        ("sex", "2", "is '2'; expected one of 0, 1"),
        ("scp_codes", "{'CRBB': 100.0}", "expected SCP statements of the release"),
        ("filename_lr", "", "is empty; expected text"),
    ],
)
def test_impossible_ptb_xl_cells_are_refused(database, column, cell, expected):
    table, read = database
    table.loc[2, column] = cell
    with pytest.raises(BadData, match=rf"ptbxl_database\.csv, line 4, column '{column}' .*{expected}"):
        read(table)


@pytest.mark.parametrize(
    "content, message",
    [
        ("id,y_pred,Y_PRED\na,1,2\n", "column y_pred occurs twice"),
        ("id,y_pred\na,1\0\n", "line 2 contains a zero byte"),
    ],
)
def test_ambiguous_predictions_are_refused(tmp_path, content, message):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(BadPredictions, match=message):
        read_table(tmp_path / "p.csv", error=BadPredictions)


def test_predictions_in_utf_16(tmp_path):
    (tmp_path / "p.csv").write_bytes("id;y_pred\na;1,5\n".encode("utf-16"))
    assert read_table(tmp_path / "p.csv").to_dict("list") == {"id": ["a"], "y_pred": ["1.5"]}


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_integers_have_64_bits(tmp_path, value):
    path = tmp_path / "frames.csv"
    path.write_text(f"name,frame\na,{2**63 - 1}\nb,{value}\n")
    with pytest.raises(BadData, match=rf"line 3, column 'frame' is '{value}'; expected a whole number"):
        read_columns(path, {"name": text(), "frame": integer()})
