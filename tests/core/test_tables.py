"""Test limits of tables that the user names."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cardiobench.core import tables
from cardiobench.core.errors import BadData
from cardiobench.core.tables import read_table


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
