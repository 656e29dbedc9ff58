"""Files of vectors: Parquet, CSV and NPZ, read without pickle."""

import csv
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from cardiobench.core.errors import BadConfig, BadData, MissingData, first_n
from cardiobench.core.io import write_atomic
from cardiobench.core.tables import decimal_point, separator_of
from cardiobench.embeddings.vector_table import VectorRows, VectorTable, group_rows

FORMATS = (".parquet", ".npz", ".csv")
ID, PART, DATASET, POOLING = "id", "part", "dataset", "pooling"
POOLINGS = ("mean", "mean_l2")
LISTS = ("vector", "vectors", "embedding", "embeddings")
"""Preferred names of a column of lists or an array if there are several."""
NUMBERED = re.compile(r"(.*?)([0-9]+)")
SNIFFED = 100
"""Number of CSV rows in which a decimal comma is searched."""
UNREADABLE = (
    *(pa.ArrowException, OSError, ValueError, KeyError, TypeError, EOFError, csv.Error, BadZipFile, zlib.error),
    RecursionError,  # JSON of thousands of levels.
    RuntimeError,  # An encrypted archive, or one of an unsupported compression.
)
"""What libraries raise for files that are not what their name says."""
NOTE = b"cardiobench"
"""Key of the Parquet metadata with the file's own description, as JSON."""


def read_vectors(source: Path | str | pd.DataFrame) -> VectorTable:
    """Read vectors of recordings.

    A row has an `id` and a vector: one column of lists, or a column for each number such as `v0`, `v1`, ... Several
    rows of an id are its tokens, frames or clips in order; a column `part` may number them, and a column `dataset` may
    name the dataset of a row. An NPZ file has arrays of these names, (n,), and one of vectors (n, dim), or (n, parts,
    dim).

    Args:
        source: Parquet, NPZ or CSV file, or a data frame.

    Raises:
        MissingData: There is no such file.
        BadData: The file cannot be read, or has no ids or no vectors.
    """
    if isinstance(source, pd.DataFrame):
        named = [name for name in source.index.names if name is not None and name not in source.columns]
        frame = source.reset_index(named) if named else source
        return group_rows(_read("the data frame", lambda: _of_table(_from_pandas(frame), "the data frame")))
    path = Path(source)
    if not path.is_file():
        raise MissingData(f"{path} does not exist or is not a file. Check the path.")
    readers: dict[str, Callable[[Path], VectorRows]] = {
        ".parquet": _parquet,
        ".pq": _parquet,
        ".npz": _npz,
        ".csv": _csv,
    }
    if path.suffix.lower() not in readers:
        raise BadConfig(f"{path.name}: embeddings are read from {', '.join(FORMATS)}. Write one of these.")
    return group_rows(_read(path.name, lambda: readers[path.suffix.lower()](path)))


def _read(name: str, read: Callable[[], VectorRows]) -> VectorRows:
    try:
        rows = read()
    except UNREADABLE as error:
        raise BadData(f"{name} cannot be read as embeddings: {str(error) or type(error).__name__}") from error
    if not len(rows.ids):
        raise BadData(f"{name} has no rows. Give one row per recording.")
    return rows


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)


def _parquet(path: Path) -> VectorRows:
    schema = pq.read_schema(path)
    wanted = [name for name in (ID, PART, DATASET) if name in schema.names] + _vector_columns(schema, path.name)
    table = pq.ParquetFile(path).read(columns=wanted)
    return _of_table(table, path.name, str(_note(schema).get(POOLING, "")))


def _note(schema: pa.Schema) -> Mapping[str, Any]:
    text = (schema.metadata or {}).get(NOTE)
    note = json.loads(text) if text else {}
    return note if isinstance(note, dict) else {}


def _csv(path: Path) -> VectorRows:
    with path.open(encoding="utf-8-sig", newline="") as file:
        line, *first = list(islice(file, 1 + SNIFFED)) or [""]
    delimiter = separator_of(line, first)
    names = next(csv.reader([line], delimiter=delimiter), [])
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"column {first_n(repeated)} occurs twice; remove one of them")
    vectors = _numbered(names)
    types = {**{name: pa.string() for name in (ID, DATASET)}, PART: pa.int64()}
    if vectors:
        types |= dict.fromkeys(vectors, pa.float64())
    wanted = [name for name in (ID, PART, DATASET) if name in names] + (vectors or [n for n in names if n in LISTS])
    _check_id(names, path.name)
    cells = (
        [zip(names, row, strict=False) for row in csv.reader(first, delimiter=delimiter)] if delimiter == ";" else []
    )
    comma = any(
        decimal_point(cell) != cell
        for row in cells
        for name, cell in row
        if name in types and name not in (ID, DATASET)
    )
    options = pyarrow.csv.ConvertOptions(
        column_types=types, include_columns=wanted, strings_can_be_null=True, decimal_point="," if comma else "."
    )
    table = pyarrow.csv.read_csv(
        path, parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter), convert_options=options
    )
    for name in set(wanted) - set(types):  # Lists as text, such as "[0.1, 0.2]".
        lists = [json.loads(text) if text else None for text in table[name].to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(lists, pa.list_(pa.float64())))
    return _of_table(table, path.name)


def _npz(path: Path) -> VectorRows:
    if not is_zipfile(path):
        raise ValueError("it is not an NPZ archive. Write it with numpy.savez")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: _plain(file, name) for name in file.files}
    _check_id(list(arrays), path.name)
    ids = arrays.pop(ID)
    others = {name: arrays.pop(name, None) for name in (PART, DATASET, POOLING)}
    matrices = {name: array for name, array in arrays.items() if array.ndim in (2, 3) and array.dtype.kind in "fiu"}
    named = {name: array for name, array in matrices.items() if name in LISTS} or matrices
    if len(named) != 1 or ids.ndim != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in {ID: ids, **arrays}.items())
        raise ValueError(f"expected ids (n,) and one array of vectors (n, dim), found {shapes}")
    (vectors,) = named.values()
    if vectors.ndim == 3:
        ids, others = np.repeat(ids, vectors.shape[1]), {**others, PART: np.tile(np.arange(vectors.shape[1]), len(ids))}
        vectors = vectors.reshape(-1, vectors.shape[2])
    lengths = {name: len(array) for name, array in {**others, ID: ids}.items() if array is not None and array.ndim == 1}
    if set(lengths.values()) != {len(vectors)}:
        raise ValueError(
            f"it has {len(vectors)} vectors and {', '.join(f'{n} {name}s' for name, n in lengths.items())}"
        )
    datasets = others[DATASET]
    return VectorRows(
        path.name,
        _texts(ids),
        _as_float(vectors),
        np.full(len(vectors), vectors.shape[1]),
        others[PART],
        None if datasets is None else _texts(datasets),
        _pooling("" if others[POOLING] is None else str(others[POOLING])),
    )


def _plain(file: Any, name: str) -> np.ndarray:
    """Return an array of an NPZ file; arrays of Python objects, which need pickle, are refused with advice."""
    try:
        array = file[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise ValueError(
            f"the array '{name}' contains Python objects, which are not loaded. Save ids as text, np.asarray(ids, dtype=str), "
            "and vectors as one array of numbers"
        ) from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"its member '{name}' is not an array. Write the file with numpy.savez")
    return array


def _texts(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    return np.array([str(value) for value in values], dtype=object)


def _pooling(text: str) -> str:
    if text not in ("", *POOLINGS):
        raise ValueError(f"pooling {text[:40]!r} is not supported; use one of {', '.join(POOLINGS)}")
    return text


def _check_id(names: Iterable[str], source: str) -> None:
    names = list(names)
    if ID not in names:
        raise BadData(
            f"{source} has no column `{ID}`; it has {first_n(names) or 'no columns'}. Name the column of the recordings' ids `{ID}`."
        )


def _numbered(names: Iterable[str]) -> list[str]:
    """Return the columns of one number each, in order: `v0`, `v1`, ..., or another numbered prefix if it is unique."""
    families: dict[str, dict[int, str]] = {}
    for name in names:
        if (match := NUMBERED.fullmatch(name)) is not None:
            families.setdefault(match[1], {})[int(match[2])] = name
    whole = {
        prefix: [one for _, one in sorted(columns.items())]
        for prefix, columns in families.items()
        if sorted(columns) in (list(range(len(columns))), list(range(1, len(columns) + 1)))
    }
    whole = {prefix: columns for prefix, columns in whole.items() if len(columns) > 1} or whole
    if "v" in whole:
        return whole["v"]
    return next(iter(whole.values())) if len(whole) == 1 else []


def _vector_columns(schema: pa.Schema, source: str) -> list[str]:
    """Return the column of lists, or the columns of one number each."""
    _check_id(schema.names, source)
    lists = [field.name for field in schema if _is_list(field.type)]
    named = [name for name in lists if name in LISTS] or lists
    numbered = _numbered(name for name in schema.names if name not in lists)
    if len(named) == 1 and "v0" not in numbered:
        return named
    if not numbered:
        raise BadData(
            f"{source} has {len(lists) or 'no'} column{'s' * (len(lists) != 1)} of lists and no columns v0, v1, ...; it has "
            f"{first_n(schema.names)}. Store the vectors in one column of lists called `vector`, or in columns v0, v1, ..."
        )
    return numbered


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _of_table(table: pa.Table, source: str, pooling: str = "") -> VectorRows:
    columns = _vector_columns(table.schema, source)
    if _is_list(table.schema.field(columns[0]).type):
        vectors, widths = _from_lists(table[columns[0]])
    else:
        vectors = _as_float(np.column_stack([_numbers(table[name]) for name in columns]))
        widths = np.full(len(vectors), len(columns))
    return VectorRows(
        source,
        _column_texts(table[ID]),
        vectors,
        widths,
        table[PART].to_numpy() if PART in table.column_names else None,
        _column_texts(table[DATASET]) if DATASET in table.column_names else None,
        _pooling(pooling),
    )


def _column_texts(column: pa.ChunkedArray) -> np.ndarray:
    return np.array(pc.cast(column, pa.string()).to_pylist(), dtype=object)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise ValueError(f"its vectors are of type {column.type}, not numbers")
    kind = column.type if pa.types.is_floating(column.type) else pa.float64()
    return column.cast(kind).to_numpy()


def _from_lists(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors (n, dim) of a column of lists, zeros if their widths differ, and the widths (n,)."""
    chunks = column.chunks
    widths = np.concatenate(
        [np.asarray(pc.fill_null(pc.list_value_length(one), 0)) for one in chunks] or [np.zeros(0, int)]
    )
    dim = int(widths[0]) if len(widths) else 0
    if (widths != dim).any():
        return np.zeros((len(widths), dim), dtype=np.float32), widths
    flat = [_numbers(pa.chunked_array([one.flatten()])).reshape(len(one), dim) for one in chunks]
    return _as_float(np.concatenate(flat) if flat else np.zeros((0, 0), dtype=np.float32)), widths


def _as_float(vectors: np.ndarray) -> np.ndarray:
    """Return vectors as float16 if they are, else as float32 of the same shape; overflow becomes infinite."""
    if vectors.dtype == np.float16:
        return vectors
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(vectors, dtype=np.float32)


def write_vectors(
    path: Path, keys: Iterable[tuple[str, str]], offsets: np.ndarray, vectors: np.ndarray, note: Mapping[str, Any]
) -> Path:
    """Write vectors of recordings losslessly, in the format of `read_vectors`.

    Args:
        path: File that ends in .parquet, .npz or .csv.
        keys: Dataset and id of each recording.
        offsets: Row offsets of the recordings, (n + 1,).
        vectors: float32 or float16, (rows, dim).
        note: Metadata of the file, such as `pooling`; ignored for CSV.

    Raises:
        BadConfig: The format is unknown.
        UnwritableOutput: The disk is full or read-only.
    """
    lengths, pairs = np.diff(offsets), list(keys)
    sets, ids = (np.repeat(np.array(names, dtype=object), lengths) for names in zip(*pairs, strict=True))
    parts = np.arange(len(vectors)) - np.repeat(offsets[:-1], lengths)
    columns = {ID: ids, **({DATASET: sets} if any(sets) else {}), PART: parts}
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = pa.table({**columns, "vector": lists}).replace_schema_metadata({NOTE: json.dumps(dict(note))})
        return write_atomic(path, lambda place: pq.write_table(table, place))
    if suffix == ".npz":
        texts = {name: values.astype(str) if values.dtype == object else values for name, values in columns.items()}
        arrays = {**texts, "vectors": vectors, POOLING: np.array(str(note.get(POOLING, "")))}

        def save(place: Path) -> None:
            with place.open("wb") as file:
                np.savez(file, **arrays)

        return write_atomic(path, save)
    if suffix == ".csv":
        numbers = {f"v{number}": vectors[:, number] for number in range(vectors.shape[1])}
        frame = pd.DataFrame({**columns, **numbers})
        return write_atomic(path, lambda place: frame.to_csv(place, index=False, float_format="%.9g"))
    raise BadConfig(f"{path.name}: unknown format of embeddings. End the name with {', '.join(FORMATS)}.")
