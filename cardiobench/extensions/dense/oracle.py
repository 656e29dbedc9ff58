"""Compute the best masks and points that a grid of cells can represent."""

from dataclasses import dataclass

import numpy as np

from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.cells import CellGrid
from cardiobench.extensions.dense.geometry import Window
from cardiobench.extensions.dense.landmarks import heatmaps, peaks
from cardiobench.extensions.dense.readouts import MeanMask, decode_cells
from cardiobench.tasks.dense_label import DenseLabel


@dataclass(frozen=True)
class GridOracle:
    """Oracle that knows the true content of every cell, to measure the error of the grid itself.

    Attributes:
        rows: Number of rows of cells.
        columns: Number of columns of cells.
        structures: Number of structures K.
        mean: Mean training mask for pixels that the model cannot see; None for points.
    """

    rows: int
    columns: int
    structures: int
    mean: MeanMask | None

    def predict(self, label: DenseLabel, box: Letterbox, window: Window) -> np.ndarray:
        """Return the label at the resolution of the grid, a mask uint8 (H, W) or points (k, 2)."""
        grid = CellGrid(box, window, self.rows, self.columns)
        if label.mask is not None and self.mean is not None:
            return decode_cells(grid.coverage(label.mask, self.structures), grid, self.mean)
        assert label.points is not None
        maps = heatmaps(grid.to_cells(label.points), (self.rows, self.columns))
        # A point outside the window has no map; predict the centre of the window.
        return grid.from_cells(peaks(np.where(maps.any(axis=(0, 1)), maps, 1.0)))
