"""Measure the part of a frame that a network sees by passing coordinate images through its transform."""

from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.embeddings.frame_tokens import Letterbox, prepare_still
from cardiobench.models.base import Encoder

TOLERANCE = 1.0  # Tolerance in frame pixels, or in input pixels if these are larger.


@dataclass(frozen=True)
class Window:
    """Rectangle in the letterboxed square, in fractions of its side, with the origin at the upper left.

    Attributes:
        left: Left edge.
        top: Top edge.
        width: Distance from the left to the right edge.
        height: Distance from the top to the bottom edge.
        residual: Largest distance between even division of the rectangle and measured positions, in frame pixels.
    """

    left: float = 0.0
    top: float = 0.0
    width: float = 1.0
    height: float = 1.0
    residual: float = 0.0

    def in_pixels(self, box: Letterbox) -> "Window":
        """Return the rectangle in frame pixels, with the origin at the upper left corner of the frame."""
        side = box.side
        left, top = self.left * side - box.left, self.top * side - box.top
        return Window(left, top, self.width * side, self.height * side, self.residual)

    def unseen(self, box: Letterbox) -> float:
        """Return the fraction of frame pixels with their centre outside the rectangle."""
        window = self.in_pixels(box)
        columns = inside(window.left, window.width, box.width)
        rows = inside(window.top, window.height, box.height)
        return 1.0 - columns.mean() * rows.mean()


WHOLE_SQUARE = Window()


def inside(start: float, extent: float, pixels: int) -> np.ndarray:
    """Return which pixel centres lie between `start` and `start + extent`. The array is bool (pixels,)."""
    middles = np.arange(pixels) + 0.5
    return (middles >= start) & (middles <= start + extent)


def measure(encoder: Encoder, side: int, grid: tuple[int, int]) -> Window:
    """Measure the part of a square image that is visible to an encoder.

    A black and a white image calibrate the grey levels; two ramps then give the x and y position of every input value.
    The layout of the input need not be known.

    Args:
        encoder: Encoder with its transform.
        side: Side length of the square in pixels.
        grid: Token rows and columns, for transforms that return a flat list of patches.

    Returns:
        Rectangle that the input divides evenly.

    Raises:
        NotApplicable: No rectangle fits within one pixel.
    """
    x, y = _coordinates(encoder, side)
    columns, rows = _axis(x), _axis(y)
    if columns == rows:  # The patches form one list, row by row.
        along_x, along_y = _line(x, columns, grid).mean(axis=0), _line(y, rows, grid).mean(axis=1)
        deviation = 0.0
    else:
        along_x, along_y = _profile(x, columns), _profile(y, rows)
        deviation = max(_spread(x, columns), _spread(y, rows))
    (left, width, off_x), (top, height, off_y) = _fit(along_x), _fit(along_y)
    residual = side * max(off_x, off_y, deviation)
    coarse = side * max(width / len(along_x), height / len(along_y), 1 / side)
    if not residual <= TOLERANCE * coarse + side / 255:  # Allow for the quantisation of a ramp to 256 levels.
        raise NotApplicable(
            f"{encoder.name}: the preprocessing is not a scaled crop, as positions deviate by up to {residual:.1f} of {side} pixels"
        )
    return Window(left, top, width, height, residual)


def _coordinates(encoder: Encoder, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of every input value as fractions of the side; NaN where no image content is shown."""
    ramp = np.tile(np.round((np.arange(side) + 0.5) / side * 255), (side, 1))
    black, white, across, down = (
        prepare_still(encoder, np.repeat(grey.astype(np.uint8)[..., None], 3, axis=-1))[0].float().numpy()
        for grey in (np.zeros_like(ramp), np.full_like(ramp, 255), ramp, ramp.T)
    )
    contrast = np.where(white != black, white - black, np.nan)
    if np.isnan(contrast).all():
        raise NotApplicable(f"{encoder.name}: the preprocessing gives the same output for a black and a white frame")
    return (across - black) / contrast, (down - black) / contrast


def _profile(values: np.ndarray, axis: int) -> np.ndarray:
    """Average over all other axes, ignoring NaN."""
    others = tuple(number for number in range(values.ndim) if number != axis)
    counts = (~np.isnan(values)).sum(axis=others)
    sums = np.asarray(np.nansum(values, axis=others, dtype=np.float64))
    return sums[counts > 0] / counts[counts > 0]


def _axis(values: np.ndarray) -> int:
    """Return the axis along which values change most."""
    return int(np.argmax([np.ptp(_profile(values, axis)) for axis in range(values.ndim)]))


def _spread(values: np.ndarray, axis: int) -> float:
    """Return the largest deviation along the other axes."""
    moved = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    moved = moved[~np.isnan(moved).all(axis=1)]
    return float((np.nanmax(moved, axis=1) - np.nanmin(moved, axis=1)).max() / 2)


def _line(values: np.ndarray, axis: int, grid: tuple[int, int]) -> np.ndarray:
    profile = _profile(values, axis)
    rows = round(np.sqrt(len(profile) * grid[0] / grid[1]))
    return profile.reshape(rows, -1)


def _fit(places: np.ndarray) -> tuple[float, float, float]:
    """Fit the centres of an evenly divided range; return start, extent and largest deviation."""
    middles = (np.arange(len(places)) + 0.5) / len(places)
    extent, start = np.polyfit(middles, places, 1)
    return float(start), float(extent), float(np.abs(start + extent * middles - places).max())
