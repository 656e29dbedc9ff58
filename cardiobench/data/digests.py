"""Digests of rows and of their columns."""

import hashlib
import json
from binascii import hexlify

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import infer_dtype

SAMPLE = 1000
"""Number of values that show whether a column has few distinct ones."""


def text_digest(*parts: str) -> str:
    """Return the digest of some texts, 16 digits."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def column_digest(column: pd.Series) -> str:
    """Return the digest of a column's name and JSON list of values; all kinds of missing values count as null."""
    return text_digest(str(column.name), _json_of_few(column) or _json(column))


def _json(column: pd.Series) -> str:
    values = column.astype(object)
    missing = column.isna()
    if missing.any():
        values = values.where(~missing, None)
    return json.dumps(values.tolist(), default=str)


def _json_of_few(column: pd.Series) -> str | None:
    """Return the same as `_json`, but convert each distinct value once; None unless they are few texts or floats."""
    values, floats = column.to_numpy(), column.dtype == np.float64
    if floats:
        values = values.view(np.int64)  # 0.0 and -0.0 are equal, but differ in JSON.
    elif infer_dtype(values) != "string":  # Other objects may be equal, but differ in JSON, such as 1 and True.
        return None
    sample = values[:: len(values) // SAMPLE + 1]
    if len(pd.unique(sample)) > len(sample) / 2:
        return None
    codes, distinct = pd.factorize(values)
    distinct = distinct.view(np.float64) if floats else distinct
    texts = ["null" if pd.isna(value) else json.dumps(value) for value in distinct.tolist()]
    # Missing texts have the code -1, which is the last cell.
    return f"[{', '.join(np.array([*texts, 'null'], dtype=object)[codes].tolist())}]"


def hexadecimal(numbers: pd.Series) -> pa.StringArray:
    """Return unsigned 64-bit integers as texts of 16 digits."""
    digits = hexlify(numbers.to_numpy(">u8"))
    starts = np.arange(0, len(digits) + 1, 16, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(starts), pa.py_buffer(digits))
