"""Test that footers of Parquet files are read as pyarrow reads them, and that damaged ones do not end the process."""

import io

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cardiobench.core.errors import BadData
from cardiobench.core.foreign import ForeignColumn, TableFormat, check_cells, read_parquet
from cardiobench.core.parquet_pages import column_chunks


@pytest.fixture(scope="module")
def content():
    frame = pd.DataFrame({"id": [f"r{n}" for n in range(40)], "y": ["a", "b"] * 20, "p": np.linspace(0, 1, 40)})
    stream = io.BytesIO()
    frame.to_parquet(stream, row_group_size=20)
    return stream.getvalue()


def test_column_chunks_equal_those_of_pyarrow(content):
    footer = pq.read_metadata(io.BytesIO(content))
    groups = list(column_chunks(content))
    assert len(groups) == footer.num_row_groups == 2
    for number, (rows, chunks) in enumerate(groups):
        group = footer.row_group(number)
        assert rows == group.num_rows == 20
        for place, chunk in enumerate(chunks):
            stored = group.column(place)
            start = stored.dictionary_page_offset or stored.data_page_offset
            assert chunk == (stored.compression, start, stored.total_compressed_size)


def test_flipped_bits_of_the_footer_are_errors_or_harmless(content, tmp_path):
    """pyarrow ends the process if it is asked for a column chunk of some of these files."""
    refused, path = 0, tmp_path / "x.parquet"
    for bit in range(8 * (len(content) - 1500), 8 * len(content), 7):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            check_cells(path)
        except (BadData, OSError, ValueError):
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("length", [500, 3000, 4000, 4095, 4096, 5000])
def test_page_header_may_repeat_the_smallest_and_largest_value(length):
    """The header of a page that holds one long text can be larger than the text."""
    wanted = TableFormat({"result": ForeignColumn("text", longest=10_000)})
    frame, stream = pd.DataFrame({"result": ["a" * length]}), io.BytesIO()
    frame.to_parquet(stream, index=False)
    assert read_parquet(stream.getvalue(), wanted).to_pydict() == frame.to_dict("list")
