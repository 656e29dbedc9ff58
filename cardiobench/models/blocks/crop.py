"""Cropping and resizing of frames exactly as in OpenCV, because networks were trained with its rounding."""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Literal

import numpy as np

from cardiobench.core.errors import MissingExtra

Border = Literal["truncate", "round"]
BORDERS: dict[str, Callable[[float], int]] = {
    "truncate": int,
    "round": round,
}  # Rounding of the border width to whole pixels.
FILTERS = {"cubic": "INTER_CUBIC", "area": "INTER_AREA"}


def crop_and_scale(
    frame: np.ndarray,
    size: tuple[int, int] = (224, 224),
    zoom: float = 0.1,
    border: Border = "truncate",
) -> np.ndarray:
    """Crop the centre of a frame to the target's aspect ratio, remove a border, and resize with a bicubic filter.

    EchoCLIP and EchoPrime truncate the border to whole pixels; arXiv 2510.00520 rounds it, which differs for frames of
    odd size. The code of EchoCLIP and EchoPrime fails on frames that are almost square (100 x 101) or tiny. Here, a
    surplus or border of less than half a pixel is not removed, and at least one pixel remains.

    Args:
        frame: Uint8, (H, W, 3).
        size: Width and height of the output.
        zoom: Border on every side as a fraction of the side; 0 for none.
        border: "truncate" or "round".

    Returns:
        Frame, uint8 (height, width, 3).
    """
    ratio = size[0] / size[1]
    height, width = frame.shape[:2]
    frame = _without(frame, max(round((height - width / ratio) / 2), 0), max(round((width - ratio * height) / 2), 0))
    whole = BORDERS[border]
    frame = _without(frame, whole(frame.shape[0] * zoom), whole(frame.shape[1] * zoom))
    return resized(frame, size, "cubic")


def centre(frame: np.ndarray, size: int) -> np.ndarray:
    """Crop the central size x size pixels of a frame (H, W, 3); odd margins are larger at the bottom and right."""
    top, left = (frame.shape[0] - size) // 2, (frame.shape[1] - size) // 2
    return frame[top : top + size, left : left + size]


def resized(frame: np.ndarray, size: tuple[int, int], how: Literal["cubic", "area"]) -> np.ndarray:
    """Resize a frame uint8 (H, W, 3) to (width, height) without keeping its aspect ratio.

    "cubic" is a cubic convolution (a = -0.75) without antialias. "area" averages boxes if both sides shrink; if one
    grows, it interpolates between two pixels at positions that differ from bilinear interpolation (by up to 110 grey
    levels on noise).
    """
    cv2 = opencv()
    return cv2.resize(frame, size, interpolation=getattr(cv2, FILTERS[how]))


def _without(frame: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Remove the given number of rows at top and bottom and of columns at left and right."""
    height, width = frame.shape[:2]
    rows, columns = min(rows, (height - 1) // 2), min(columns, (width - 1) // 2)
    return frame[rows : height - rows, columns : width - columns]


@cache
def opencv() -> ModuleType:
    """Import OpenCV and limit it to one thread."""
    try:
        import cv2
    except ImportError as error:
        feature = "cropping and resizing frames as in EchoCLIP, EchoPrime and PanEcho"
        raise MissingExtra(feature, "models", "opencv-python-headless") from error
    cv2.setNumThreads(1)  # The thread pool does not work in forked worker processes.
    return cv2
