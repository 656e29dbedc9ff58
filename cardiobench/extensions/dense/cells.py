"""Masks and points between the pixels of a frame and the cells of a grid that covers a window of it."""

from dataclasses import dataclass

import numpy as np

from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.geometry import Window, inside


@dataclass(frozen=True)
class CellGrid:
    """Rows x columns cells that divide a window of a frame evenly.

    Attributes:
        box: Box of the frame.
        window: Window in fractions of the letterboxed square.
        rows: Rows of cells.
        columns: Columns of cells.
    """

    box: Letterbox
    window: Window
    rows: int
    columns: int

    def coverage(self, mask: np.ndarray, structures: int) -> np.ndarray:
        """Return the share of each cell that each class covers.

        Args:
            mask: Uint8 (H, W), 0 = background, 1 to `structures`; what lies beside the frame is background.
            structures: Classes beside the background.

        Returns:
            float32 (rows, columns, 1 + structures), summing to 1.
        """
        window = self.window.in_pixels(self.box)
        down = _overlap(window.top, window.height, self.rows, mask.shape[0])
        across = _overlap(window.left, window.width, self.columns, mask.shape[1])
        shares = [down @ (mask == value) @ across.T for value in range(1, 1 + structures)]
        return np.stack([1 - np.sum(shares, axis=0), *shares], axis=-1).astype(np.float32).clip(0, 1)

    def to_pixels(self, cells: np.ndarray) -> np.ndarray:
        """Interpolate values of cells (rows, columns, K) bilinearly at the pixels of the frame, (H, W, K), float32."""
        window = self.window.in_pixels(self.box)
        down = _interpolation(window.top, window.height, self.rows, self.box.height)
        across = _interpolation(window.left, window.width, self.columns, self.box.width)
        return np.einsum("hr,rck,wc->hwk", down, cells.astype(np.float32), across, optimize=True)

    def seen(self) -> np.ndarray:
        """Return which pixels of the frame lie in the window, bool (H, W)."""
        window = self.window.in_pixels(self.box)
        rows = inside(window.top, window.height, self.box.height)
        return rows[:, None] & inside(window.left, window.width, self.box.width)

    def to_cells(self, points: np.ndarray) -> np.ndarray:
        """Return points (k, 2), x and y in pixels (the middle of the first pixel is 0), in cells: 0 is the first cell's middle."""
        window = self.window.in_pixels(self.box)
        size = np.array([window.width / self.columns, window.height / self.rows])
        return (np.asarray(points) + 0.5 - [window.left, window.top]) / size - 0.5

    def from_cells(self, points: np.ndarray) -> np.ndarray:
        """Return points (k, 2) in cells as x and y in pixels of the frame."""
        window = self.window.in_pixels(self.box)
        size = np.array([window.width / self.columns, window.height / self.rows])
        return (np.asarray(points) + 0.5) * size + [window.left, window.top] - 0.5


def _overlap(start: float, extent: float, cells: int, pixels: int) -> np.ndarray:
    """Return the share of each cell that lies on each pixel, (cells, pixels)."""
    edges = start + extent * np.arange(cells + 1) / cells
    left = np.maximum(edges[:-1, None], np.arange(pixels))
    right = np.minimum(edges[1:, None], np.arange(1, pixels + 1))
    return np.clip(right - left, 0, None) * cells / extent


def _interpolation(start: float, extent: float, cells: int, pixels: int) -> np.ndarray:
    """Return the weight of each cell in each pixel, float32 (pixels, cells); pixels beyond the outer middles get the outer cell."""
    middles = ((np.arange(pixels) + 0.5 - start) / extent * cells - 0.5).clip(0, cells - 1)
    return np.maximum(0, 1 - np.abs(middles[:, None] - np.arange(cells))).astype(np.float32)
