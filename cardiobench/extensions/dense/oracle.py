"""The ceiling of a grid: the best masks and points that its cells can express."""

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
    """Answer of a head that knows the true content of every cell: the error of the grid itself.

    Attributes:
        rows: Rows of the cells.
        columns: Columns of the cells.
        structures: K.
        mean: Mean of the training masks, for pixels that the model cannot see; None for points.
    """

    rows: int
    columns: int
    structures: int
    mean: MeanMask | None

    def predict(self, label: DenseLabel, box: Letterbox, window: Window) -> np.ndarray:
        """Return the label as the grid can express it: a mask uint8 (H, W), or points (k, 2)."""
        grid = CellGrid(box, window, self.rows, self.columns)
        if label.mask is not None and self.mean is not None:
            return decode_cells(grid.coverage(label.mask, self.structures), grid, self.mean)
        assert label.points is not None
        maps = heatmaps(grid.to_cells(label.points), (self.rows, self.columns))
        # A point that is not in the window has no map: the middle of the window answers for it.
        return grid.from_cells(peaks(np.where(maps.any(axis=(0, 1)), maps, 1.0)))
