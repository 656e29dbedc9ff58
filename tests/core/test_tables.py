"""Test limits of tables that the user names."""

import pandas as pd
import pytest

from cardiobench.core.errors import BadPredictions
from cardiobench.core.tables import read_table


def test_parquet_with_a_huge_cell_is_refused_before_it_is_decoded(tmp_path):
    path = tmp_path / "huge.parquet"
    pd.DataFrame({"id": ["x" * 50_000_000], "y_pred": [1.0]}).to_parquet(path, compression="zstd")
    assert path.stat().st_size < 20_000
    with pytest.raises(BadPredictions, match=r"column id has 50,000,0\d\d bytes for 1 rows"):
        read_table(path)
