"""Read-outs that answer a frame with a mask or points, fitted on the tokens of training frames."""

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
    """A fitted read-out."""

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Answer one frame.

        Args:
            box: Box of the frame.
            window: The part of the square that the tokens divide.
            tokens: (rows, columns, width).

        Returns:
            A mask uint8 (H, W), or points (k, 2), x and y in pixels.
        """
        ...


@dataclass(frozen=True)
class MeanMask:
    """The mean of the training masks over the letterboxed square.

    Attributes:
        shares: Share of each class, float32 (cells, cells, K).
    """

    shares: np.ndarray

    def probabilities(self, box: Letterbox) -> np.ndarray:
        """Return the share of each class at the pixels of a frame, (H, W, K)."""
        return CellGrid(box, WHOLE_SQUARE, *self.shares.shape[:2]).to_pixels(self.shares)

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Answer with the most frequent class of each pixel."""
        return self.probabilities(box).argmax(axis=2).astype(np.uint8)


@dataclass(frozen=True)
class MaskReadOut:
    """The sub-cell head; pixels that the model cannot see get the mean of the training masks.

    Attributes:
        head: Head of the cells in the window.
        mean: Mean of the training masks.
    """

    head: SubcellHead
    mean: MeanMask

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Answer with the most probable class of each pixel."""
        cells = self.head.predict(tokens[None])[0]
        return decode_cells(cells, CellGrid(box, window, *cells.shape[:2]), self.mean)


def decode_cells(cells: np.ndarray, grid: CellGrid, mean: MeanMask) -> np.ndarray:
    """Interpolate probabilities of cells (rows, columns, K) at the pixels and return the most probable class, uint8 (H, W)."""
    mask = grid.to_pixels(cells).argmax(axis=2).astype(np.uint8)
    seen = grid.seen()
    return mask if seen.all() else np.where(seen, mask, mean.predict(grid.box, grid.window, cells))


@dataclass(frozen=True)
class MeanPoints:
    """The mean of the training points, in shares of the square's side, (k, 2)."""

    shares: np.ndarray

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Answer with the mean points."""
        return self.shares * box.side - [box.left, box.top] - 0.5


@dataclass(frozen=True)
class FittedReadOut:
    """A read-out with the penalty that did best on validation patients.

    Attributes:
        read_out: Read-out that answers.
        mean: Mean of the training masks or points: the floor.
        details: Choices made during fitting; stamped into the result.
    """

    read_out: ReadOut
    mean: MeanMask | MeanPoints
    details: Mapping[str, Any]


@dataclass(frozen=True)
class PeakReadOut:
    """The sub-cell head, one map per point."""

    head: SubcellHead

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Answer with the peak of each map."""
        maps = self.head.predict(tokens[None])[0]
        return CellGrid(box, window, *maps.shape[:2]).from_cells(peaks(maps))


@dataclass(frozen=True)
class GlobalReadOut:
    """Ridge regression from the mean token to all coordinates, in shares of the square's side."""

    regression: Pipeline

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Answer with the predicted coordinates."""
        shares = self.regression.predict(mean_token(tokens)[None]).reshape(-1, 2)
        return MeanPoints(shares).predict(box, window, tokens)


def mean_token(tokens: np.ndarray) -> np.ndarray:
    """Average the tokens of a frame (rows, columns, d), (d,) float64."""
    return tokens.reshape(-1, tokens.shape[-1]).mean(axis=0, dtype=np.float64)


def shares_of_square(points: np.ndarray, box: Letterbox) -> np.ndarray:
    """Return points in shares of the side of the square around their frame, (k, 2)."""
    return (points + 0.5 + [box.left, box.top]) / box.side


class TargetReader:
    """Turns labels of training frames into targets of cells, and accumulates the mean mask or mean points.

    Args:
        data: Data of the task.
    """

    def __init__(self, data: DenseData):
        self.data, self.structures = data, len(data.task.structures)
        s = cells_per_token(data.grid)
        self.rows, self.columns = (s * side for side in data.grid)
        self.points: list[np.ndarray] = []
        self._total = np.zeros((CELLS, CELLS, 1 + self.structures))
        self._count = 0

    def read(self, label: DenseLabel, box: Letterbox) -> np.ndarray:
        """Return the targets of a frame's cells, sorted by token, float32 (L, s * s, K)."""
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
        """Return the read-out of the mean mask or of the mean points.

        Raises:
            NotApplicable: No frame was read, or none with one of the points.
        """
        if not self._count:
            raise NotApplicable(f"{self.data.task.name} has no labelled training frames here, which a read-out needs")
        if self.points:
            unseen = np.flatnonzero(~np.isfinite(self.points).all(axis=2).any(axis=0))
            lacking = [self.data.task.structures[number] for number in unseen]
            if lacking:
                raise NotApplicable(
                    f"no training frame of {self.data.task.name} here has {', '.join(lacking)}, and a read-out learns from them"
                )
            return MeanPoints(np.nanmean(self.points, axis=0))
        return MeanMask((self._total / self._count).astype(np.float32))


@dataclass(frozen=True)
class Candidates:
    """Read-outs of all penalties with their shared training data.

    Attributes:
        path: Penalties, the largest first, with their read-outs; each is fitted when it is asked for.
        mean: Read-out of the mean mask or points.
        frames: Training frames.
        width: Numbers per token.
    """

    path: Iterator[tuple[float, ReadOut]]
    mean: MeanMask | MeanPoints
    frames: int
    width: int


def fit_read_outs(
    data: DenseData, patients: Sequence[str], variant: DenseVariant, penalties: Sequence[float]
) -> Candidates:
    """Read labels and tokens of the training frames of some patients, each mask once; a read-out is fitted per penalty.

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
                f"no training frame of {data.task.name} here has all points, and `global` learns from such"
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
    """Return the read-out of a head: masks, or the peaks of maps."""
    return MaskReadOut(head, mean) if isinstance(mean, MeanMask) else PeakReadOut(head)
