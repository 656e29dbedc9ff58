"""The part of a frame that a network sees, measured by sending pictures of the coordinates through its own transform."""

from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.embeddings.frame_tokens import Letterbox, prepare_still
from cardiobench.models.base import Encoder

TOLERANCE = 1.0  # Pixels of the frame, or of the network's input where its pixels are larger.


@dataclass(frozen=True)
class Window:
    """A rectangle of the letterboxed square, in shares of its side; x and y are 0 at its left and upper edge.

    Attributes:
        left: Edge.
        top: Edge.
        width: Extent.
        height: Extent.
        residual: Largest distance between the rectangle's even division and the measured places, pixels of the frame.
    """

    left: float = 0.0
    top: float = 0.0
    width: float = 1.0
    height: float = 1.0
    residual: float = 0.0

    def in_pixels(self, box: Letterbox) -> "Window":
        """Return the rectangle in pixels of the frame itself, whose upper left corner is 0."""
        side = box.side
        left, top = self.left * side - box.left, self.top * side - box.top
        return Window(left, top, self.width * side, self.height * side, self.residual)

    def unseen(self, box: Letterbox) -> float:
        """Return the share of a frame's pixels whose middle lies outside."""
        window = self.in_pixels(box)
        columns = inside(window.left, window.width, box.width)
        rows = inside(window.top, window.height, box.height)
        return 1.0 - columns.mean() * rows.mean()


WHOLE_SQUARE = Window()


def inside(start: float, extent: float, pixels: int) -> np.ndarray:
    """Return which of a row of pixels have their middle between `start` and `start + extent`, (pixels,)."""
    middles = np.arange(pixels) + 0.5
    return (middles >= start) & (middles <= start + extent)


def measure(encoder: Encoder, side: int, grid: tuple[int, int]) -> Window:
    """Measure the part of a square picture visible to an encoder.

    A black and a white picture tell what its transform makes of the grey levels; two ramps then give the x and the y of
    every number of its input. Nothing has to be known of the layout.

    Args:
        encoder: Encoder with its transform.
        side: Side of the square in pixels.
        grid: Rows and columns of its tokens, for a transform that gives patches in one line.

    Returns:
        The rectangle that its input divides evenly.

    Raises:
        NotApplicable: No rectangle fits to within a pixel.
    """
    x, y = _coordinates(encoder, side)
    columns, rows = _axis(x), _axis(y)
    if columns == rows:  # Patches in one line, row by row.
        along_x, along_y = _line(x, columns, grid).mean(axis=0), _line(y, rows, grid).mean(axis=1)
        deviation = 0.0
    else:
        along_x, along_y = _profile(x, columns), _profile(y, rows)
        deviation = max(_spread(x, columns), _spread(y, rows))
    (left, width, off_x), (top, height, off_y) = _fit(along_x), _fit(along_y)
    residual = side * max(off_x, off_y, deviation)
    coarse = side * max(width / len(along_x), height / len(along_y), 1 / side)
    if not residual <= TOLERANCE * coarse + side / 255:  # A ramp has 256 levels.
        raise NotApplicable(
            f"{encoder.name}: its preprocessing is no crop and scaling: places are up to {residual:.1f} pixels of {side} off"
        )
    return Window(left, top, width, height, residual)


def _coordinates(encoder: Encoder, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y, in shares of the side, of every number of an encoder's input; NaN where it shows no picture."""
    ramp = np.tile(np.round((np.arange(side) + 0.5) / side * 255), (side, 1))
    black, white, across, down = (
        prepare_still(encoder, np.repeat(grey.astype(np.uint8)[..., None], 3, axis=-1))[0].float().numpy()
        for grey in (np.zeros_like(ramp), np.full_like(ramp, 255), ramp, ramp.T)
    )
    contrast = np.where(white != black, white - black, np.nan)
    if np.isnan(contrast).all():
        raise NotApplicable(f"{encoder.name}: its preprocessing gives the same for a black and a white frame")
    return (across - black) / contrast, (down - black) / contrast


def _profile(values: np.ndarray, axis: int) -> np.ndarray:
    """Average over all other axes; places without any value are left out."""
    others = tuple(number for number in range(values.ndim) if number != axis)
    counts = (~np.isnan(values)).sum(axis=others)
    sums = np.asarray(np.nansum(values, axis=others, dtype=np.float64))
    return sums[counts > 0] / counts[counts > 0]


def _axis(values: np.ndarray) -> int:
    """Return the axis along which values change most."""
    return int(np.argmax([np.ptp(_profile(values, axis)) for axis in range(values.ndim)]))


def _spread(values: np.ndarray, axis: int) -> float:
    """Return how far values deviate along the other axes."""
    moved = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    moved = moved[~np.isnan(moved).all(axis=1)]
    return float((np.nanmax(moved, axis=1) - np.nanmin(moved, axis=1)).max() / 2)


def _line(values: np.ndarray, axis: int, grid: tuple[int, int]) -> np.ndarray:
    profile = _profile(values, axis)
    rows = round(np.sqrt(len(profile) * grid[0] / grid[1]))
    return profile.reshape(rows, -1)


def _fit(places: np.ndarray) -> tuple[float, float, float]:
    """Fit the middles of an evenly divided range; returns its start, its extent and the largest deviation."""
    middles = (np.arange(len(places)) + 0.5) / len(places)
    extent, start = np.polyfit(middles, places, 1)
    return float(start), float(extent), float(np.abs(start + extent * middles - places).max())
