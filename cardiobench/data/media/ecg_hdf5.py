"""ECGs in HDF5: many per file in the layout of CODE-15% (Zenodo 4916206), or one per file (SPH)."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.core.file_state import FileState, file_state
from cardiobench.data.media.content import note_array
from cardiobench.data.media.file import COPY_AGAIN, refuse_special, unreadable
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require
from cardiobench.data.media.signal import lead_order, twelve_leads
from cardiobench.data.media.types import LEADS, Ecg

COMPONENT = "reader hdf5"
VERSION = 1

MAGIC = b"\x89HDF\r\n\x1a\n"

# The file states neither. 400 Hz comes from the description of the release. Sources disagree about the unit, but real
# records peak at 1-5 in lead II, which is only plausible for mV.
FS = 400.0


def read_hdf5(path: Path, record: int | str | None, leads: Sequence[str] | None = None) -> Ecg:
    """Read one exam of a CODE-15% file at 400 Hz in mV, without the zeros that pad it to 4096 samples.

    A record has the same number of padding zeros on both sides, so the same number is removed on both sides.

    Args:
        path: File with `tracings` (N, samples, 12) and `exam_id` (N,).
        record: Row number (int, 0-based) or exam id (str).
        leads: Names of the 12 channels in stored order; default I II III aVR aVL aVF V1-V6.

    Raises:
        BadMedia: The layout differs, the record does not exist, or the signal is not an ECG (the release ends with a
            row of zeros).
    """
    try:
        stored = open_tracings(path)
        signal = note_array(stored.signal(stored.row(record)))
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise unreadable(path, "HDF5", error) from error
    name = f"record {record} of {path}"
    names = LEADS if leads is None else leads
    if len(names) != signal.shape[1]:
        raise BadMedia(f"{name}: {signal.shape[1]} channels, but {len(names)} leads were named: {', '.join(names)}.")
    signal = _without_padding(signal)
    return twelve_leads(signal if names is LEADS else signal[:, lead_order(names, name)], FS, name)


def read_single_hdf5(path: Path, fs: float) -> Ecg:
    """Read a file with a single record, as in SPH (figshare 5779802): a dataset `ecg` of shape (12, samples) in mV.

    Args:
        path: The file.
        fs: Sampling rate in Hz, which the file does not state.

    Raises:
        BadMedia: The layout differs, or the signal is not an ECG.
    """
    try:
        refuse_special(path)
        with require("h5py", "reading HDF5").File(path, "r") as file:
            stored = _own_dataset(str(path), file, "ecg")
            if getattr(stored, "ndim", None) != 2:
                raise BadMedia(
                    f"{path} has no `ecg` of shape (12, samples); it has {', '.join(map(str, file)) or 'nothing'}. {COPY_AGAIN}"
                )
            _check_numbers(str(path), stored, math.prod(stored.shape))
            signal = note_array(stored[:])
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise unreadable(path, "HDF5", error) from error
    return twelve_leads(signal.T, fs, str(path))


def open_tracings(path: Path) -> "Tracings":
    """Return the open file, cached per process while it is unchanged; raises `OSError` or `BadMedia`."""
    name = str(path)
    return _opened(name, file_state(name))


@lru_cache(maxsize=32)
def _opened(path: str, state: FileState) -> "Tracings":
    """Return an open file with a checked layout. Files are cached, because opening takes longer than reading a record.

    Args:
        path: The file.
        state: State of the file, so that a replaced file is opened again.
    """
    file = require("h5py", "reading HDF5").File(path, "r")
    tracings, ids = _own_dataset(path, file, "tracings"), _own_dataset(path, file, "exam_id")
    if getattr(tracings, "ndim", None) != 3:
        raise BadMedia(
            f"{path} has no `tracings` of shape (records, samples, 12); it has {', '.join(map(str, file)) or 'nothing'}. "
            f"{COPY_AGAIN}"
        )
    _check_numbers(f"a record of {path}", tracings, math.prod(tracings.shape[1:]))
    if ids is not None:
        _check_numbers(f"exam_id of {path}", ids, ids.size or 0)
    offset = tracings.id.get_offset()
    # In a contiguous, uncompressed file, as in the release, a record is a range of bytes and is read twice as fast as
    # by h5py.
    plain = offset is not None and not file.userblock_size and tracings.dtype.kind in "iuf"
    return Tracings(
        path,
        tracings,
        ids[:] if ids is not None and ids.shape == tracings.shape[:1] else None,
        Path(path).open("rb", buffering=0) if plain else None,
        offset,
    )


def _own_dataset(path: str, file: Any, name: str) -> Any:
    """Return a dataset by name, None if it does not exist; refuse a dataset stored in another file.

    Raises:
        BadMedia: The dataset is a link, or its values are stored outside the file.
    """
    h5py = require("h5py", "reading HDF5")
    link = file.get(name, getlink=True)
    if link is None:
        return None
    dataset = file.get(name) if isinstance(link, h5py.HardLink) else None
    if not isinstance(dataset, h5py.Dataset):
        kind = "group" if isinstance(link, h5py.HardLink) else "link"
        raise BadMedia(f"{path}: `{name}` is a {kind}, not a dataset of the file itself. {COPY_AGAIN}")
    if dataset.external or dataset.is_virtual:
        raise BadMedia(f"{path}: `{name}` is stored in another file, which is not read. {COPY_AGAIN}")
    return dataset


def _check_numbers(name: str, dataset: Any, count: int) -> None:
    """Refuse values of unknown size, and arrays or chunks above the size limit.

    Raises:
        BadMedia: The values are not numbers or exceed the limit.
    """
    if dataset.dtype.kind not in "iuf":
        raise BadMedia(f"{name} is of type {dataset.dtype}; expected numbers. {COPY_AGAIN}")
    check_size(name, dataset.dtype.itemsize * max(count, math.prod(dataset.chunks or ())))


os.register_at_fork(after_in_child=_opened.cache_clear)  # Handles of h5py must not be shared with worker processes.


@dataclass(frozen=True, eq=False)
class Tracings:
    """Tracings of an open file, read on demand.

    Attributes:
        path: The file.
        tracings: Dataset of h5py, (records, samples, 12).
        exam_ids: Exam ids, (records,); None unless the file has one per record.
        plain: The same file for reading bytes; None unless the tracings are contiguous and uncompressed.
        offset: Byte offset of the tracings.
    """

    path: str
    tracings: Any
    exam_ids: np.ndarray | None
    plain: FileIO | None
    offset: int | None

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Shape: (records, samples, leads)."""
        return self.tracings.shape

    @cached_property
    def dtype(self) -> np.dtype:
        """Data type of the stored numbers."""
        return self.tracings.dtype

    def signal(self, row: int) -> np.ndarray:
        """Return a copy (samples, 12) of one record; raises `OSError` if the file ends too early."""
        if self.plain is None or self.offset is None:
            return self.tracings[row]
        signal = np.empty(self.shape[1:], self.dtype)
        read = os.preadv(self.plain.fileno(), [signal.data], self.offset + row * signal.nbytes)
        if read != signal.nbytes:
            raise OSError(f"record {row} ends after {read} of {signal.nbytes} bytes")
        return signal

    @cached_property
    def _rows(self) -> dict[int, int]:
        exam_ids = [] if self.exam_ids is None else self.exam_ids.tolist()
        return {exam: row for row, exam in enumerate(exam_ids)}

    def row(self, record: int | str | None) -> int:
        """Return the row of a record, given its row number (int) or exam id (str)."""
        count = self.shape[0]
        if isinstance(record, str):
            return self._row_of(record)
        if isinstance(record, int | np.integer) and not isinstance(record, bool):
            if not 0 <= record < count:
                raise BadMedia(
                    f"{self.path} has records 0 to {count - 1}, but {record} was requested. Check the dataset's table."
                )
            return int(record)
        raise BadMedia(f"{self.path} has {count} records. Give a row number (int) or an exam id (str), got {record!r}.")

    def _row_of(self, exam: str) -> int:
        if self.exam_ids is None:
            raise BadMedia(
                f"{self.path} does not have one `exam_id` for each of its {self.shape[0]} records. Give a row number instead."
            )
        row = self._rows.get(int(exam)) if exam.isdecimal() else None
        if row is None or len(self._rows) < len(self.exam_ids):  # Some ids are repeated; check whether this one is.
            count = 0 if row is None else int((self.exam_ids == int(exam)).sum())
            if row is None or count != 1:
                raise BadMedia(
                    f"{self.path} has {count} records with exam id {exam}; expected 1. Check the dataset's table."
                )
        return row


def _without_padding(signal: np.ndarray) -> np.ndarray:
    """Return the rows of a signal (samples, leads) without the zeros that pad both ends equally."""
    padding = _first_filled(signal) if signal.size else 0
    if padding == 0:
        return signal
    end = len(signal) - padding
    if padding <= end and signal[end:].tobytes() == bytes(
        signal[end:].nbytes
    ):  # The padding of the release is symmetric.
        return signal[padding:end]
    rows = np.flatnonzero((signal != 0).any(axis=1))
    padding = min(int(rows[0]), len(signal) - 1 - int(rows[-1])) if len(rows) else 0
    return signal[padding : len(signal) - padding]


def _first_filled(signal: np.ndarray) -> int:
    """Return the row of the first non-zero byte; the number of rows if there is none."""
    data = np.ascontiguousarray(signal).view(np.bool_)
    first = int(data.argmax())  # Stopping at the first difference takes a tenth of the time of comparing all numbers.
    return first // data.shape[1] if data.item(first) else len(signal)
