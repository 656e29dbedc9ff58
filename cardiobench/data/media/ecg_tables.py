"""ECGs in CSV and Parquet tables, one recording per file and one channel per column."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv_reader
import pyarrow.parquet as pq

from cardiobench.core.errors import BadMedia
from cardiobench.core.tables import SECOND_ENCODING, encoding_of, separator_of
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.content import note
from cardiobench.data.media.file import COPY_AGAIN, refuse_special
from cardiobench.data.media.limits import check_size

COMPONENT = "reader ecg tables"
VERSION = 1


def read_csv_ecg(path: Path) -> Channels:
    """Read a CSV with one channel per column; the first line has their names unless it contains only numbers.

    Raises:
        BadMedia: The file is missing, not a text table, or has a cell that is not a number.
    """
    try:
        refuse_special(path)
        check_size(str(path), 4 * path.stat().st_size)
        content = note(path.read_bytes())
        text = _decoded(content)
        header, _, cells = text.partition("\n")
        separator = separator_of(header)
        names = [cell.strip() for cell in next(csv.reader([header.rstrip("\r")], delimiter=separator), [])]
        named = any(not _is_number(name) for name in names)
        options = csv_reader.ReadOptions(
            use_threads=False, column_names=[f"c{i}" for i in range(len(names))], skip_rows=named
        )
        decimal = "," if separator != "," and "," in cells else "."
        table = csv_reader.read_csv(
            pa.BufferReader(text.encode()),
            read_options=options,
            parse_options=csv_reader.ParseOptions(delimiter=separator),
            convert_options=csv_reader.ConvertOptions(
                column_types=dict.fromkeys(options.column_names, pa.float64()), decimal_point=decimal
            ),
        )
    except (OSError, UnicodeError, ValueError, csv.Error, pa.ArrowException) as error:
        raise BadMedia(
            f"{path} cannot be read as a table of samples ({' '.join(str(error).split())[:200]}). {COPY_AGAIN}"
        ) from error
    signal = np.stack([table[name].to_numpy() for name in table.column_names], axis=1) if names else np.empty((0, 0))
    return Channels(signal, tuple(names) if named else None)


def read_parquet_ecg(path: Path) -> Channels:
    """Read a Parquet file with one channel per numeric column.

    Raises:
        BadMedia: The file is missing, damaged, or has no numeric column.
    """
    try:
        refuse_special(path)
        check_size(str(path), path.stat().st_size)
        file = pq.ParquetFile(pa.BufferReader(note(path.read_bytes())))
        check_size(str(path), 8 * file.metadata.num_rows * max(1, file.metadata.num_columns))
        table = file.read(use_threads=False)
        names = [
            field.name for field in table.schema if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        ]
        columns = [table[name].to_numpy().astype(np.float64) for name in names]
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise BadMedia(
            f"{path} cannot be read as Parquet ({' '.join(str(error).split())[:200]}). {COPY_AGAIN}"
        ) from error
    if not names:
        raise BadMedia(f"{path} has no column of numbers. {COPY_AGAIN}")
    return Channels(np.stack(columns, axis=1), tuple(names))


def _decoded(content: bytes) -> str:
    """Return the text of a CSV as `core.tables` reads it; names of channels may have umlauts or a micro sign in Windows-1252."""
    encoding = encoding_of(content[:4])
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if encoding == "utf-16":
            raise
        return content.decode(SECOND_ENCODING)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
