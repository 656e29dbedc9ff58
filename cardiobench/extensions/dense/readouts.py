"""Fit read-outs that predict masks or points from the tokens of a frame."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.pipeline import Pipeline

from cardiobench.core.errors import NotApplicable
from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.cells import CellGrid
from cardiobench.extensions.dense.data import DenseData, frame_id
from cardiobench.extensions.dense.geometry import WHOLE_SQUARE, Window
from cardiobench.extensions.dense.head import (
    CELLS,
    SubcellHead,
    cells_per_token,
    prior_head,
    split_cells,
)
from cardiobench.extensions.dense.landmarks import fit_global, heatmaps, peaks
from cardiobench.extensions.dense.ridge import RidgeSums
from cardiobench.extensions.dense.solver import fit_path
from cardiobench.extensions.dense.variants import DenseVariant
from cardiobench.tasks.dense_label import DenseLabel


class ReadOut(Protocol):
    """Fitted read-out."""

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Predict one frame.

        Args:
            box: Letterbox of the frame.
            window: Window of the square that the tokens divide evenly.
            tokens: Tokens, (rows, columns, width).

        Returns:
            Mask, uint8 (H, W), or points, (k, 2), as x and y in pixels.
        """
        ...


@dataclass(frozen=True)
class MeanMask:
    """Mean training mask over the letterboxed square.

    Attributes:
        shares: Fraction of each class, float32 (cells, cells, K).
    """

    shares: np.ndarray

    def probabilities(self, box: Letterbox) -> np.ndarray:
        """Return the class fractions at frame pixels. The shape is (H, W, K)."""
        return CellGrid(box, WHOLE_SQUARE, *self.shares.shape[:2]).to_pixels(self.shares)

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Predict the most frequent class of each pixel. Returns uint8 (H, W)."""
        return self.probabilities(box).argmax(axis=2).astype(np.uint8)


@dataclass(frozen=True)
class MaskReadOut:
    """Sub-cell head for masks; invisible pixels use the mean training mask.

    Attributes:
        head: Head for the cells in the window.
        mean: Mean training mask.
    """

    head: SubcellHead
    mean: MeanMask

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Predict the most probable class of each pixel. Returns uint8 (H, W)."""
        cells = self.head.predict(tokens[None])[0]
        return decode_cells(cells, CellGrid(box, window, *cells.shape[:2]), self.mean)


def decode_cells(cells: np.ndarray, grid: CellGrid, mean: MeanMask) -> np.ndarray:
    """Interpolate cell probabilities (rows, columns, K) and return the most probable classes. Returns uint8 (H, W)."""
    mask = grid.to_pixels(cells).argmax(axis=2).astype(np.uint8)
    seen = grid.seen()
    return mask if seen.all() else np.where(seen, mask, mean.predict(grid.box, grid.window, cells))


@dataclass(frozen=True)
class MeanPoints:
    """Mean training points, (k, 2), as fractions of the square's side."""

    shares: np.ndarray

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Predict the mean points (k, 2), x and y in pixels."""
        return self.shares * box.side - [box.left, box.top] - 0.5


@dataclass(frozen=True)
class FittedReadOut:
    """Read-out with the penalty selected on validation patients.

    Attributes:
        read_out: Selected read-out.
        mean: Mean training mask or points, used as the floor.
        details: Choices made during fitting, stored in the result.
    """

    read_out: ReadOut
    mean: MeanMask | MeanPoints
    details: Mapping[str, Any]


@dataclass(frozen=True)
class PeakReadOut:
    """Sub-cell head with one heatmap per point."""

    head: SubcellHead

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Predict the peak of each map. Returns points (k, 2), x and y in pixels."""
        maps = self.head.predict(tokens[None])[0]
        return CellGrid(box, window, *maps.shape[:2]).from_cells(peaks(maps))


@dataclass(frozen=True)
class GlobalReadOut:
    """Ridge regression from the mean token to all coordinates, as fractions of the square's side."""

    regression: Pipeline

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Predict the points (k, 2), x and y in pixels."""
        shares = self.regression.predict(mean_token(tokens)[None]).reshape(-1, 2)
        return MeanPoints(shares).predict(box, window, tokens)


def mean_token(tokens: np.ndarray) -> np.ndarray:
    """Average the tokens of a frame (rows, columns, d) to float64 (d,)."""
    return tokens.reshape(-1, tokens.shape[-1]).mean(axis=0, dtype=np.float64)


def shares_of_square(points: np.ndarray, box: Letterbox) -> np.ndarray:
    """Return points (k, 2) as fractions of the letterbox side."""
    return (points + 0.5 + [box.left, box.top]) / box.side


class TargetReader:
    """Convert training labels to cell targets and accumulate the mean mask or points.

    Args:
        data: Labels and tokens of the task.
    """

    def __init__(self, data: DenseData):
        self.data, self.structures = data, len(data.task.structures)
        s = cells_per_token(data.grid)
        self.rows, self.columns = (s * side for side in data.grid)
        self.points: list[np.ndarray] = []
        self._total = np.zeros((CELLS, CELLS, 1 + self.structures))
        self._count = 0

    def read(self, label: DenseLabel, box: Letterbox) -> np.ndarray:
        """Return the cell targets of a frame grouped by token. The array is float32 (L, s * s, K)."""
        grid = CellGrid(box, self.data.window(box.side), self.rows, self.columns)
        self._count += 1
        if label.mask is not None:
            cells = grid.coverage(label.mask, self.structures)
            self._total += CellGrid(box, WHOLE_SQUARE, CELLS, CELLS).coverage(label.mask, self.structures)
        else:
            assert label.points is not None
            cells = heatmaps(grid.to_cells(label.points), (self.rows, self.columns))
            self.points.append(shares_of_square(label.points, box))
        return split_cells(cells[None], self.data.grid)[0]

    def mean(self) -> MeanMask | MeanPoints:
        """Return the mean-mask or mean-point read-out.

        Raises:
            NotApplicable: No frame was read, or no frame contains one of the points.
        """
        if not self._count:
            raise NotApplicable(f"{self.data.task.name} has no labelled training frames here; a read-out requires them")
        if self.points:
            unseen = np.flatnonzero(~np.isfinite(self.points).all(axis=2).any(axis=0))
            lacking = [self.data.task.structures[number] for number in unseen]
            if lacking:
                raise NotApplicable(
                    f"no training frame of {self.data.task.name} here has {', '.join(lacking)}; a read-out cannot be fitted without them"
                )
            return MeanPoints(np.nanmean(self.points, axis=0))
        return MeanMask((self._total / self._count).astype(np.float32))


@dataclass(frozen=True)
class Candidates:
    """Read-outs for all penalties with shared training data.

    Attributes:
        path: Iterator of penalties, largest first, and read-outs fitted on demand.
        mean: Mean-mask or mean-point read-out.
        frames: Number of training frames.
        width: Width of a token.
    """

    path: Iterator[tuple[float, ReadOut]]
    mean: MeanMask | MeanPoints
    frames: int
    width: int


def fit_read_outs(
    data: DenseData, patients: Sequence[str], variant: DenseVariant, penalties: Sequence[float]
) -> Candidates:
    """Read training labels and tokens, each mask once, and prepare one read-out per penalty.

    Raises:
        NotApplicable: There are no training frames.
    """
    reader = TargetReader(data)
    if variant.further == "ridge":
        return _fit_ridge(data, reader, patients, penalties)
    ids, targets = [], []
    for label in data.select("train", set(patients)):
        targets.append(reader.read(label, data.box(label)))
        ids.append(frame_id(label))
    mean = reader.mean()
    tokens = data.tokens(ids)
    path: Iterator[tuple[float, ReadOut]]
    if variant.points == "global":
        points = np.array(reader.points)
        whole = np.isfinite(points).all(axis=(1, 2))
        if not whole.any():
            raise NotApplicable(
                f"no training frame of {data.task.name} here has all points; `global` requires such frames"
            )
        means = np.array([mean_token(one) for one in tokens[whole]])
        path = ((penalty, GlobalReadOut(one)) for penalty, one in fit_global(means, points[whole], penalties))
    else:
        every = np.stack(targets)
        start = prior_head(tokens, every, data.grid, "places" if variant.points else "classes")
        path = ((penalty, read_out_of(head, mean)) for penalty, head in fit_path(start, tokens, every, penalties))
    return Candidates(path, mean, len(ids), tokens.shape[-1])


def _fit_ridge(
    data: DenseData, reader: TargetReader, patients: Sequence[str], penalties: Sequence[float]
) -> Candidates:
    sums = RidgeSums(data.grid)
    for label, box, _, tokens in data.with_tokens("train", set(patients)):
        sums.update(tokens, reader.read(label, box))
    mean = reader.mean()
    path = ((penalty, read_out_of(head, mean)) for penalty, head in sums.fit(penalties))
    return Candidates(path, mean, sums.frames, sums.xx.shape[0])


def read_out_of(head: SubcellHead, mean: MeanMask | MeanPoints) -> ReadOut:
    """Return the read-out of a head, for masks or heatmap peaks."""
    return MaskReadOut(head, mean) if isinstance(mean, MeanMask) else PeakReadOut(head)
