"""ECGs in CSV and Parquet tables, one recording per file and one channel per column."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv_reader
import pyarrow.parquet as pq

from cardiobench.core.errors import BadMedia, counted
from cardiobench.core.tables import SECOND_ENCODING, SNIFFED, encoding_of, separator_of
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.content import note
from cardiobench.data.media.file import COPY_AGAIN, refuse_special, unreadable
from cardiobench.data.media.leads import lead_name
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.signal import MILLIVOLTS

COMPONENT = "reader ecg tables"
VERSION = 3

_BRACKET = re.compile(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]$")
_TIME = re.compile(
    r"(?:time|zeit|temps|tiempo|tempo|t)(?:(?:\s*[(\[]\s*|[ _])(?P<unit>ms|s|sec|seconds)\s*[)\]]?)?", re.IGNORECASE
)
_RATE_NOTE = re.compile(
    r"\b(?:fs|(?:sampling|sample)[ _-]?(?:rate|frequency))\s*[:=]?\s*(?P<rate>\d+(?:\.\d+)?)\s*(?:hz)?\s*$",
    re.IGNORECASE,
)
_UNIT_NOTE = re.compile(r"\bunits?\s*[:=]\s*(?P<unit>\S+)\s*$", re.IGNORECASE)


def read_csv_ecg(path: Path) -> Channels:
    """Read a CSV with one channel per column; the first line has their names unless it contains only numbers.

    Rate and unit are those that lines before it state (`# sampling rate: 500 Hz`, `# unit: mV`), or the names of the
    columns (`_channels`).

    Raises:
        BadMedia: The file is missing, not a text table, has a cell that is not a number, or states two rates.
    """
    try:
        refuse_special(path)
        check_size(str(path), 4 * path.stat().st_size)
        content = note(path.read_bytes())
        notes, text = _split_notes(_decoded(content))
        header, _, cells = text.partition("\n")
        separator = separator_of(header, cells.split("\n", SNIFFED)[:SNIFFED])
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
        raise unreadable(path, "a table of samples", error) from error
    signal = np.stack([table[name].to_numpy() for name in table.column_names], axis=1) if names else np.empty((0, 0))
    return _channels(str(path), signal, names if named else None, notes)


def read_parquet_ecg(path: Path) -> Channels:
    """Read a Parquet file with one channel per numeric column, whose names may state rate and unit (`_channels`).

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
        raise unreadable(path, "Parquet", error) from error
    if not names:
        raise BadMedia(f"{path} has no column of numbers. {COPY_AGAIN}")
    return _channels(str(path), np.stack(columns, axis=1), names)


def _channels(path: str, signal: np.ndarray, names: Sequence[str] | None, notes: Sequence[str] = ()) -> Channels:
    """Return the channels with the rate and the units that notes or names of columns state.

    Names state the unit if each lead has one in brackets, such as `V1 (mV)`, and the rate by a column of evenly spaced times
    with their unit, such as `time (s)` or `t_ms`. Times without a unit, such as `time`, are only searched for gaps.

    Args:
        path: Name for messages.
        signal: Samples, (samples, channels).
        names: Names of the columns; None if there are none.
        notes: Lines before the table.

    Raises:
        BadMedia: Notes and times state two rates, or times have a gap or go back.
    """
    rate = next((float(match["rate"]) for note in notes if (match := _RATE_NOTE.search(note))), None)
    unit = next((match["unit"] for note in notes if (match := _UNIT_NOTE.search(note))), None)
    units: tuple[str, ...] | None = None if unit is None or unit.lower() not in MILLIVOLTS else (unit,)
    if names is None:
        return Channels(signal, None, rate, units)
    for place, name in enumerate(names):
        if match := _TIME.fullmatch(name):
            _check_times(path, name, signal[:, place], match["unit"] or "")
            if not match["unit"]:
                continue
            by_times = _rate_of(signal[:, place] / (1000 if match["unit"].lower() == "ms" else 1))
            if rate and by_times and abs(rate - by_times) > 1e-3 * rate:
                raise BadMedia(
                    f"{path} states {rate:g} Hz, but its column '{name}' has {by_times:g} Hz. Correct the file."
                )
            rate = rate or by_times
    stated = [match[1] if (match := _BRACKET.search(name)) and match[1].lower() in MILLIVOLTS else "" for name in names]
    leads = [place for place, name in enumerate(names) if lead_name(name)] or [
        place for place, name in enumerate(names) if not _TIME.fullmatch(name)
    ]
    if all(stated[place] for place in leads):
        units = tuple(stated)
    return Channels(signal, tuple(names), rate, units)


def _check_times(path: str, name: str, times: np.ndarray, unit: str) -> None:
    """Refuse times that go back or have a gap, a step of at least 1.75 usual ones.

    Longer steps at regular distances are no gaps but rounding, as of 800 Hz in whole milliseconds.

    Raises:
        BadMedia: They go back or have a gap.
    """
    steps, after = np.diff(times), f" {unit}" if unit else ""
    if len(steps) < 2 or not np.isfinite(steps).all():
        return
    if (back := np.flatnonzero(steps < 0)).size:
        raise BadMedia(
            f"{path}: its column '{name}' goes back in {counted(len(back), 'row')}, first after {times[back[0]]:g}{after} "
            f"(row {back[0] + 1}). Export one recording per file, in the order of time."
        )
    usual = float(np.median(steps))
    longer = np.flatnonzero(steps >= 1.75 * usual) if usual else np.zeros(0, int)
    if len(longer) and not (len(longer) > 2 and np.ptp(np.diff(longer)) <= 2):
        raise BadMedia(
            f"{path} is interrupted: its column '{name}' has {counted(len(longer), 'gap')}, the first of "
            f"{steps[longer[0]] - usual:g}{after} after {times[longer[0]]:g}{after} (row {longer[0] + 1}). "
            "Export a part without gaps."
        )


def _rate_of(times: np.ndarray) -> float | None:
    """Return the sampling rate in Hz of evenly spaced times in seconds, a whole number within their rounding; else None."""
    steps = np.diff(times)
    if len(steps) < 2 or not np.isfinite(steps).all() or not (mean := steps.mean()) > 0:
        return None
    uneven = float(np.abs(steps - mean).max())
    if uneven > mean / 2:
        return None
    rate = float(1 / mean)
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) <= rate * max(uneven / (times[-1] - times[0]), 1e-6) else rate


def _split_notes(text: str) -> tuple[list[str], str]:
    """Return the lines at the begin that start with `#`, and the table.

    The last of these has the names of the columns if the table has none, as `numpy.savetxt` writes them.
    """
    notes = []
    while text.startswith("#"):
        line, _, text = text.partition("\n")
        notes.append(line.strip("# \t\r"))
    first = text.partition("\n")[0].rstrip("\r")
    separator = separator_of(first)
    cells, names = first.split(separator), notes[-1].split(separator) if notes else []
    if len(names) == len(cells) and all(map(_is_number, cells)) and any(map(lead_name, names)):
        text = f"{notes.pop()}\n{text}"
    return notes, text


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
