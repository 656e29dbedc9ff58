"""Convert masks and points between frame pixels and grid cells."""

from dataclasses import dataclass

import numpy as np

from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.geometry import Window, inside


@dataclass(frozen=True)
class CellGrid:
    """Grid of cells that divides a window of a frame evenly.

    Attributes:
        box: Letterbox of the frame.
        window: Window as fractions of the letterboxed square.
        rows: Number of cells from top to bottom.
        columns: Number of cells from left to right.
    """

    box: Letterbox
    window: Window
    rows: int
    columns: int

    def coverage(self, mask: np.ndarray, structures: int) -> np.ndarray:
        """Return the fraction of each cell that each class covers.

        Args:
            mask: Class mask, uint8 (H, W): 0 for background, 1 to `structures` otherwise. The area outside the frame is
                background.
            structures: Number of classes without the background.

        Returns:
            Class fractions, float32 (rows, columns, 1 + structures), which sum to 1 in each cell.
        """
        window = self.window.in_pixels(self.box)
        down = _overlap(window.top, window.height, self.rows, mask.shape[0])
        across = _overlap(window.left, window.width, self.columns, mask.shape[1])
        shares = [down @ (mask == value) @ across.T for value in range(1, 1 + structures)]
        return np.stack([1 - np.sum(shares, axis=0), *shares], axis=-1).astype(np.float32).clip(0, 1)

    def to_pixels(self, cells: np.ndarray) -> np.ndarray:
        """Interpolate cell values (rows, columns, K) bilinearly at frame pixels. Returns float32 (H, W, K)."""
        window = self.window.in_pixels(self.box)
        down = _interpolation(window.top, window.height, self.rows, self.box.height)
        across = _interpolation(window.left, window.width, self.columns, self.box.width)
        return np.einsum("hr,rck,wc->hwk", down, cells.astype(np.float32), across, optimize=True)

    def seen(self) -> np.ndarray:
        """Return a mask of the frame pixels inside the window. The array is bool (H, W)."""
        window = self.window.in_pixels(self.box)
        rows = inside(window.top, window.height, self.box.height)
        return rows[:, None] & inside(window.left, window.width, self.box.width)

    def to_cells(self, points: np.ndarray) -> np.ndarray:
        """Convert points (k, 2) from pixels to cells; integer coordinates are centres, and both start at 0."""
        window = self.window.in_pixels(self.box)
        size = np.array([window.width / self.columns, window.height / self.rows])
        return (np.asarray(points) + 0.5 - [window.left, window.top]) / size - 0.5

    def from_cells(self, points: np.ndarray) -> np.ndarray:
        """Convert points (k, 2) from cells to x and y in frame pixels."""
        window = self.window.in_pixels(self.box)
        size = np.array([window.width / self.columns, window.height / self.rows])
        return (np.asarray(points) + 0.5) * size + [window.left, window.top] - 0.5


def _overlap(start: float, extent: float, cells: int, pixels: int) -> np.ndarray:
    """Return the fraction of each cell that overlaps each pixel. The shape is (cells, pixels)."""
    edges = start + extent * np.arange(cells + 1) / cells
    left = np.maximum(edges[:-1, None], np.arange(pixels))
    right = np.minimum(edges[1:, None], np.arange(1, pixels + 1))
    return np.clip(right - left, 0, None) * cells / extent


def _interpolation(start: float, extent: float, cells: int, pixels: int) -> np.ndarray:
    """Return interpolation weights, float32 (pixels, cells), clamped at the outer cell centres."""
    middles = ((np.arange(pixels) + 0.5 - start) / extent * cells - 0.5).clip(0, cells - 1)
    return np.maximum(0, 1 - np.abs(middles[:, None] - np.arange(cells))).astype(np.float32)
