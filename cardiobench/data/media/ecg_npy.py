"""Rows of a NumPy array (`.npy`), read through a memory map so that the array may exceed the memory."""

from pathlib import Path
from tokenize import TokenError

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.content import note_array
from cardiobench.data.media.file import COPY_AGAIN, refuse_special, unreadable
from cardiobench.data.media.limits import check_size

COMPONENT = "reader npy"
VERSION = 1


def open_numbers(path: Path) -> np.ndarray:
    """Return the array of a file as a memory map, released with the array so that pages do not accumulate.

    Raises:
        BadMedia: The file is missing, cut short, or not an array of numbers.
    """
    try:
        refuse_special(path)
        # Unlike np.load, this accepts neither archives (.npz) nor pickles.
        array = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, TypeError, OverflowError, TokenError) as error:
        raise unreadable(path, "a NumPy array", error) from error
    if array.dtype.kind not in "iuf":
        raise BadMedia(f"{path}: expected numbers, got {array.dtype} of shape {array.shape}. {COPY_AGAIN}")
    return array


def open_array(path: Path, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return the array of a file, as `open_numbers`, after checking its shape.

    Args:
        path: The file.
        shape: Expected shape; None means any length.

    Raises:
        BadMedia: The file is missing, cut short, not an array of numbers, or has an unexpected shape.
    """
    array = open_numbers(path)
    matches = array.ndim == len(shape) and all(want in (None, n) for want, n in zip(shape, array.shape, strict=True))
    if not matches:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise BadMedia(
            f"{path}: expected numbers of shape ({wanted}), got {array.dtype} of shape {array.shape}. {COPY_AGAIN}"
        )
    return array


def read_row(path: Path, row: int, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a copy of one row of an array.

    Args:
        path: The file.
        row: Row number, 0-based.
        shape: Shape of the whole array, as for `open_array`.

    Raises:
        BadMedia: The row does not exist, or `open_array` raised the error.
    """
    array = open_array(path, shape)
    if not 0 <= row < len(array):
        raise BadMedia(f"{path} has rows 0 to {len(array) - 1}, but {row} was requested. Check the dataset's table.")
    check_size(f"a row of {path}", array.nbytes // len(array))
    return note_array(np.array(array[row]))
