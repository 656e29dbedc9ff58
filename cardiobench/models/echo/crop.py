"""Frames cropped and resized exactly as OpenCV does it, because networks were trained on its rounding and its rules."""

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
}  # Rounding of a border's width to whole pixels.
FILTERS = {"cubic": "INTER_CUBIC", "area": "INTER_AREA"}


def crop_and_scale(
    frame: np.ndarray,
    size: tuple[int, int] = (224, 224),
    zoom: float = 0.1,
    border: Border = "truncate",
) -> np.ndarray:
    """Cut a frame to the target's aspect ratio around its middle, cut off a border, resize with a bicubic filter.

    EchoCLIP and EchoPrime cut the border off at the next lower whole pixel, arXiv 2510.00520 rounds it; on frames of odd
    size that is another picture. The code of the former fails on frames that are almost square (100 x 101) or tiny: here
    a surplus or border of less than half a pixel is left in, and one pixel always stays.

    Args:
        frame: Uint8, (H, W, 3).
        size: (width, height) of what comes out.
        zoom: Border on every side as a share of the side; 0 for none.
        border: "truncate" or "round".

    Returns:
        uint8, (height, width, 3).
    """
    ratio = size[0] / size[1]
    height, width = frame.shape[:2]
    frame = _without(frame, max(round((height - width / ratio) / 2), 0), max(round((width - ratio * height) / 2), 0))
    whole = BORDERS[border]
    frame = _without(frame, whole(frame.shape[0] * zoom), whole(frame.shape[1] * zoom))
    return resized(frame, size, "cubic")


def centre(frame: np.ndarray, size: int) -> np.ndarray:
    """Crop the central size x size pixels of a frame (H, W, 3); of an odd margin the larger half is at the bottom and right."""
    top, left = (frame.shape[0] - size) // 2, (frame.shape[1] - size) // 2
    return frame[top : top + size, left : left + size]


def resized(frame: np.ndarray, size: tuple[int, int], how: Literal["cubic", "area"]) -> np.ndarray:
    """Resize a frame uint8 (H, W, 3) to (width, height) without keeping its aspect ratio.

    "cubic" is a cubic convolution (a = -0.75) without antialias. "area" averages boxes where both sides shrink; where one
    grows it is a two-tap blend with places of its own, which is not bilinear (up to 110 grey levels apart on noise).
    """
    cv2 = opencv()
    return cv2.resize(frame, size, interpolation=getattr(cv2, FILTERS[how]))


def _without(frame: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Cut the given number of rows off top and bottom and of columns off left and right."""
    height, width = frame.shape[:2]
    rows, columns = min(rows, (height - 1) // 2), min(columns, (width - 1) // 2)
    return frame[rows : height - rows, columns : width - columns]


@cache
def opencv() -> ModuleType:
    """Import OpenCV and keep it to one thread."""
    try:
        import cv2
    except ImportError as error:
        feature = "cropping and resizing frames as EchoCLIP, EchoPrime and PanEcho do"
        raise MissingExtra(feature, "models", "opencv-python-headless") from error
    cv2.setNumThreads(1)  # Frames are prepared in forked loader workers, in which the thread pool does not survive.
    return cv2
