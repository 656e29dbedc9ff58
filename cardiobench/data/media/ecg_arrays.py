"""ECGs as NPY and HDF5 arrays, with one or several recordings per file, (records, samples, leads)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cardiobench.core.errors import BadMedia, first_n
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.content import note_array
from cardiobench.data.media.ecg_npy import open_numbers
from cardiobench.data.media.file import refuse_special, unreadable
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require
from cardiobench.data.media.types import LEADS

COMPONENT = "reader ecg arrays"
VERSION = 1

RATES = ("fs", "sampling_rate", "sampling_frequency", "sample_rate")
UNITS = ("unit", "units")
LEAD_NAMES = ("leads", "lead_names", "channels", "sig_name")


def read_npy_ecg(path: Path, record: int | None, leads: Sequence[str] | None) -> Channels:
    """Read a recording of a NumPy array: (samples, leads), (leads, samples), or the same with records as the first axis.

    Args:
        path: The file.
        record: Row number in an array of several recordings; None for a single recording.
        leads: Names of the channels; their number determines the axis of leads. By default twelve leads.

    Raises:
        BadMedia: The file is not an array of numbers, lacks the row, or has no axis of that length.
    """
    array = open_numbers(path)
    if array.ndim == 1 and leads is not None and len(leads) == 1:
        array = array[:, None]  # A single lead needs no axis of leads.
    return Channels(_two_axes(array, record, leads, str(path)))


def read_hdf5_ecg(
    path: Path, record: int | str | None, leads: Sequence[str] | None, array: str | None = None, ids: str | None = None
) -> Channels:
    """Read a recording of an HDF5 file, with rate, unit and leads from attributes of the file or dataset, if stated.

    Args:
        path: The file.
        record: Row number, or an id in the dataset `ids`; None for a single recording.
        leads: Names of the channels, as for `read_npy_ecg`.
        array: Name of the dataset with the samples; None means the only dataset with two or three axes.
        ids: Name of the dataset with ids.

    Raises:
        BadMedia: The file is damaged, lacks the record, or has no or several such datasets.
    """
    h5py = require("h5py", "reading HDF5")
    try:
        refuse_special(path)
        with h5py.File(path, "r") as file:
            stored = _signal(file, array, path)
            number = _row(file, ids, record, path) if isinstance(record, str) else record
            attributes = {**file.attrs, **stored.attrs}
            fs, units, names = (_first(attributes, keys) for keys in (RATES, UNITS, LEAD_NAMES))
            channels = tuple(map(_text, np.atleast_1d(names))) if names is not None else None
            beside = repr((fs, units, names))
            signal = _two_axes(stored, number, leads or channels, str(path), beside)
            return Channels(
                signal,
                channels,
                float(np.ravel(fs)[0]) if fs is not None else None,
                tuple(map(_text, np.atleast_1d(units))) if units is not None else None,
            )
    except (OSError, KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise unreadable(path, "HDF5", error) from error


def hdf5_ids(path: Path, ids: str) -> list[str]:
    """Return the ids of the records of an HDF5 file; raises `BadMedia` if it has no such dataset."""
    h5py = require("h5py", "reading HDF5")
    try:
        with h5py.File(path, "r") as file:
            return [_text(one) for one in _own(file, ids, path)[:].ravel()]
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise unreadable(path, "HDF5", error) from error


def records_in(path: Path, array: str | None = None) -> int | None:
    """Return the number of recordings in an array with three axes; None for a single recording.

    Raises:
        BadMedia: The file is damaged or has no such array.
    """
    if path.suffix.lower() == ".npy":
        shape = open_numbers(path).shape
    else:
        h5py = require("h5py", "reading HDF5")
        try:
            with h5py.File(path, "r") as file:
                shape = _signal(file, array, path).shape
        except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise unreadable(path, "HDF5", error) from error
    return int(shape[0]) if len(shape) == 3 else None


def _own(file: Any, name: str, path: Path) -> Any:
    """Return a dataset stored in the file itself; links are refused, because they could name other files."""
    h5py = require("h5py", "reading HDF5")
    node = file
    for part in filter(None, name.split("/")):
        link = node.get(part, getlink=True) if hasattr(node, "get") else None
        if not isinstance(link, h5py.HardLink):
            raise BadMedia(f"{path} has no dataset '{name}'; it has {first_n(file) or 'nothing'}. Name one of these.")
        node = node[part]
    if not isinstance(node, h5py.Dataset) or node.external or node.is_virtual:
        raise BadMedia(f"{path}: '{name}' is not a dataset stored in this file. Name another.")
    return node


def _signal(file: Any, array: str | None, path: Path) -> Any:
    if array is None:
        h5py = require("h5py", "reading HDF5")
        found = [
            name
            for name in file
            if isinstance(file.get(name, getlink=True), h5py.HardLink)
            and isinstance(file[name], h5py.Dataset)
            and file[name].ndim in (2, 3)
            and file[name].dtype.kind in "iuf"
        ]
        if len(found) != 1:
            names = first_n(found) if found else "none"
            raise BadMedia(
                f"{path} has {len(found)} datasets of two or three axes ({names}). Name the one with the samples (array)."
            )
        array = found[0]
    stored = _own(file, array, path)
    if stored.ndim not in (2, 3) or stored.dtype.kind not in "iuf":
        raise BadMedia(
            f"{path}: '{array}' is {stored.dtype} of shape {stored.shape}; expected numbers of two or three axes."
        )
    return stored


def _row(file: Any, ids: str | None, record: str, path: Path) -> int:
    if ids is None:
        raise BadMedia(
            f"{path}: record '{record}' is not a row number. Give row numbers, or name the dataset of ids (records)."
        )
    known = [_text(one) for one in _own(file, ids, path)[:].ravel()]
    if known.count(record) != 1:
        raise BadMedia(
            f"{path} has record '{record}' {known.count(record)} times in '{ids}'. Correct the table that names it."
        )
    return known.index(record)


def _two_axes(array: Any, record: int | None, leads: Sequence[str] | None, name: str, beside: str = "") -> np.ndarray:
    """Return one recording as (samples, channels), given either order of the two axes."""
    if (array.ndim == 3) != (record is not None) or array.ndim not in (2, 3):
        raise BadMedia(
            f"{name} has the shape {array.shape}, but {'no record' if record is None else f'record {record}'} was requested."
        )
    if record is not None:
        if not 0 <= record < len(array):
            raise BadMedia(
                f"{name} has rows 0 to {len(array) - 1}, but {record} was requested. Correct the table that names it."
            )
    rows, columns = array.shape[-2:]
    check_size(name, 8 * rows * columns)
    width = len(leads) if leads is not None else len(LEADS)
    if (rows == width) == (columns == width):
        raise BadMedia(
            f"{name} has the shape {array.shape}: one axis must have the {width} leads. Name the channels (leads)."
        )
    stored = note_array(np.array(array[record] if record is not None else array[:]), beside)
    signal = stored.astype(np.float64)
    return signal if columns == width else signal.T


def _first(attributes: dict[str, Any], names: Sequence[str]) -> Any:
    return next((attributes[name] for name in names if name in attributes), None)


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
