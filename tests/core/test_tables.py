"""Test limits of tables that the user names."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cardiobench.core import tables
from cardiobench.core.errors import BadData, first_n
from cardiobench.core.tables import check_thousands, read_table, separator_of
from cardiobench.data.tables import read_rows


def test_parquet_with_a_huge_cell_is_refused_before_it_is_decoded(tmp_path):
    path = tmp_path / "huge.parquet"
    pd.DataFrame({"id": ["x" * 50_000_000], "y_pred": [1.0]}).to_parquet(path, compression="zstd")
    assert path.stat().st_size < 20_000
    with pytest.raises(BadData, match=r"column id has 50,000,0\d\d bytes for 1 rows"):
        read_table(path)


def write_wide(path):
    path.write_text("\n".join(["," * 999] * 300), encoding="utf-8")


def write_long(path):
    path.write_text("id,y_pred\nr0,1\n", encoding="utf-8")


def write_hollow(path):
    table = pa.table({"id": pa.repeat("r0", 2_000_000), "y_pred": pa.repeat(1.0, 2_000_000)})
    pq.write_table(table, path, compression="zstd")


def write_zeros(path):
    zeros = {f"p_{number}": pa.repeat(0.0, 90_000) for number in range(200)}
    pq.write_table(pa.table({"id": pa.repeat("r0", 90_000), **zeros}), path, compression="zstd")


@pytest.mark.parametrize(
    ("name", "write", "reason"),
    [
        ("cells.csv", write_wide, "it has 299 lines and 1,000 columns, but at most 100,000 cells are allowed"),
        ("bytes.csv", write_long, "it has 15 bytes, but at most 10 are allowed"),
        ("rows.parquet", write_hollow, r"it has 2,000,000 rows in [\d,]+ bytes, but at most [\d,]+ are allowed"),
        (
            "decoded.parquet",
            write_zeros,
            r"its [\d,]+ bytes are 144,720,000 when decoded, but at most [\d,]+ are allowed",
        ),
    ],
)
def test_oversized_table_is_refused_before_it_is_read(tmp_path, monkeypatch, name, write, reason):
    monkeypatch.setattr(tables, "MOST_CELLS", 100_000)
    if name == "bytes.csv":
        monkeypatch.setattr(tables, "LONGEST_CSV", 10)
    write(path := tmp_path / name)
    monkeypatch.setattr(pd, "read_parquet", None)
    with pytest.raises(BadData, match=reason):
        read_table(path)


# ---- Marks of decimals and thousands, and first lines ----------------------------------------------------------------


def read_text(tmp_path, text, name="table.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return read_table(path)


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["50,5", "51", "1,25"], ["50.5", "51", "1.25"]),
        (["1,234", "0,382"], ["1.234", "0.382"]),  # No thousands begin with 0.
        (["1,234", "51,5"], ["1.234", "51.5"]),
        (["1,234", "12,345"], ["1,234", "12,345"]),  # Thousands of an English export, or decimals: not known.
        (["a,b", "3,5"], ["a,b", "3.5"]),
    ],
)
def test_decimal_commas_in_a_file_with_tabs(tmp_path, cells, read):
    table = read_text(tmp_path, "id\tef\n" + "".join(f"r{n}\t{cell}\n" for n, cell in enumerate(cells)))
    assert list(table["ef"]) == read


@pytest.mark.parametrize(
    ("cells", "doubtful"),
    [
        (["1.201", "350"], True),
        (["12.345", "-7"], True),
        (["1.201", "350", "0.5"], False),
        (["0.201", "350"], False),
        (["1.2", "3"], False),
        (["1.201", "2.350"], False),
    ],
)
def test_points_that_may_mark_thousands_are_refused_in_numbers(tmp_path, cells, doubtful):
    text = "id;ntprobnp\n" + "".join(f"r{n};{cell}\n" for n, cell in enumerate(cells))
    table = read_text(tmp_path, text)
    assert list(table["ntprobnp"]) == cells
    check_thousands(table, ["id"], "table.csv")
    if not doubtful:
        return check_thousands(table, ["ntprobnp"], "table.csv")
    with pytest.raises(BadData, match=rf"column 'ntprobnp': in '{cells[0]}' beside '{cells[1]}' the point may be"):
        check_thousands(table, ["ntprobnp"], "table.csv")
    check_thousands(read_text(tmp_path, text.replace(";", ",")), ["ntprobnp"], "table.csv")


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["id;findings, as in the report, by sex, age;ef", "r0;none;50"], ";"),
        (["id;findings, as in the report, by sex, age;ef", "r0;old infarct, anterior;50,5"], ";"),
        (["id;size, cm;age, years;ef, %", "r0;170,5;60,5;50,5"], ";"),
        (["id\tfindings, as in the report, by sex", "r0\tnone"], "\t"),
        (['id;"findings, as in the report, by sex, age"'], ";"),
        (['id,"a;b;c;d",ef', 'r0,"e;f",50'], ","),
        (["id,text,ef", 'r0,"a', 'b",50'], ","),
        (["id,codes;all,ef", "r0,a;b;c,50", "r1,,51"], ","),
        (["id,ef", "r0,50", "", "r1,51"], ","),
        (["id,sex,ef", "r0,F"], ","),
        (["id", "r0"], ","),
        (["0,1;0,2", "1,5;2,5"], ";"),
    ],
)
def test_separator_is_as_frequent_in_rows_as_in_the_header(lines, separator):
    assert separator_of(lines[0], lines[1:]) == separator


def test_names_with_commas_are_read(tmp_path):
    text = "id;findings, as in the report, by sex, age;ef\nr0;old infarct, anterior;50,5\n"
    table = read_text(tmp_path, text)
    assert list(table.iloc[0]) == ["r0", "old infarct, anterior", "50.5"]
    assert [row for _, row in read_rows(tmp_path / "table.csv")][1] == ["r0", "old infarct, anterior", "50.5"]


def test_first_line_for_excel_is_named(tmp_path):
    with pytest.raises(BadData, match="its first line is 'sep=;', which only Excel understands; remove this line"):
        read_text(tmp_path, "sep=;\nid;ef\nr0;1\n")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_named_with_the_flag(tmp_path, encoding):
    text = "id;ef\n" + "r0;1\n" * 20
    with pytest.raises(BadData, match=f"without a byte-order mark; .*--encoding {encoding}"):
        read_text(tmp_path, text, encoding=encoding)
    assert len(read_table(tmp_path / "table.csv", encoding=encoding)) == 20
    with pytest.raises(BadData, match="contains a zero byte\\)"):
        read_text(tmp_path, "id;ef\nr0;\0\n")


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (pd.Series([2**64 - 1, 7], dtype="uint64"), ["18446744073709551615", "7"]),
        (pd.Series([2**64 - 1, None], dtype="UInt64"), ["18446744073709551615", ""]),
        (pd.Series([-(2**63), 7], dtype="int64"), ["-9223372036854775808", "7"]),
        (pd.Series([b" a ", b"\xff", None], dtype=object), ["a", "\ufffd", ""]),
    ],
)
def test_ids_of_any_stored_type_are_texts(cells, texts):
    assert tables.text_of(cells).tolist() == texts


def test_long_names_are_cut_in_messages():
    assert first_n(["x" * 5000, "y"]) == f"{'x' * 1000}…, y"
