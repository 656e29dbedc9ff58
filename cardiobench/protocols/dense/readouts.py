"""Read-outs: what answers a frame with a mask or with points, fitted on the tokens of training frames."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.pipeline import Pipeline

from cardiobench.core.errors import NotApplicable
from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.protocols.dense.cells import CellGrid
from cardiobench.protocols.dense.data import DenseData, frame_id
from cardiobench.protocols.dense.geometry import WHOLE_SQUARE, Window
from cardiobench.protocols.dense.head import (
    CELLS,
    SubcellHead,
    cells_per_token,
    fit_path,
    prior_head,
    split_cells,
)
from cardiobench.protocols.dense.landmarks import fit_global, heatmaps, peaks


class ReadOut(Protocol):
    """A fitted read-out."""

    def predict(self, box: Letterbox, window: Window, tokens: np.ndarray) -> np.ndarray:
        """Answer one frame.

        Args:
            box: of the frame.
            window: the part of the square that the tokens divide.
            tokens: (rows, columns, width).

        Returns:
            A mask uint8 (H, W), or points (k, 2), x and y in pixels.
        """
        ...


@dataclass(frozen=True)
class MeanMask:
    """The mean of the training masks over the letterboxed square.

    Attributes:
        shares: of each class, float32 (cells, cells, K).
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
        head: of the cells in the window.
        mean: of the training masks.
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


@dataclass(frozen=True)
class TrainingFrames:
    """Targets and tokens of the training frames, without their masks.

    Attributes:
        tokens: (n, rows, columns, d).
        targets: of the cells in the window, sorted by token, float32 (n, L, s * s, K).
        mean: read-out of the mean mask or points.
        points: in shares of the square, (n, k, 2); empty for masks.
    """

    tokens: np.ndarray
    targets: np.ndarray
    mean: MeanMask | MeanPoints
    points: np.ndarray


def training_frames(data: DenseData, patients: Sequence[str]) -> TrainingFrames:
    """Read labels and tokens of the training frames of some patients, each mask once.

    Raises:
        NotApplicable: there is none.
    """
    ids, targets, points = [], [], []
    s, structures = cells_per_token(data.grid), len(data.task.structures)
    rows, columns = (s * side for side in data.grid)
    total = np.zeros((CELLS, CELLS, 1 + structures))
    for label in data.select("train", set(patients)):
        box = data.box(label)
        grid = CellGrid(box, data.window(box.side), rows, columns)
        if label.mask is not None:
            cells = grid.coverage(label.mask, structures)
            total += CellGrid(box, WHOLE_SQUARE, CELLS, CELLS).coverage(label.mask, structures)
        else:
            assert label.points is not None
            cells = heatmaps(grid.to_cells(label.points), (rows, columns))
            points.append(shares_of_square(label.points, box))
        targets.append(split_cells(cells[None], data.grid)[0])
        ids.append(frame_id(label))
    if not ids:
        raise NotApplicable(f"{data.task.name} has no labelled training frames here, and a read-out learns from them")
    every = np.array(points).reshape(len(points), structures, 2)
    mean = MeanPoints(np.nanmean(every, axis=0)) if points else MeanMask((total / len(ids)).astype(np.float32))
    return TrainingFrames(data.tokens(ids), np.stack(targets), mean, every)


def read_outs(
    data: DenseData, frames: TrainingFrames, variant: str, penalties: Sequence[float]
) -> Mapping[float, ReadOut]:
    """Fit the read-out of a variant for every penalty.

    Args:
        data: of the task.
        frames: to learn from.
        variant: "" for masks, "heatmap" or "global" for points.
        penalties: on squared coefficients.
    """
    if variant == "global":
        whole = np.isfinite(frames.points).all(axis=(1, 2))
        means = np.array([mean_token(tokens) for tokens in frames.tokens[whole]])
        fitted = fit_global(means, frames.points[whole], penalties)
        return {penalty: GlobalReadOut(regression) for penalty, regression in fitted.items()}
    start = prior_head(frames.tokens, frames.targets, data.grid, "places" if variant else "classes")
    path = fit_path(start, frames.tokens, frames.targets, penalties)
    if isinstance(frames.mean, MeanMask):
        return {penalty: MaskReadOut(head, frames.mean) for penalty, head in path}
    return {penalty: PeakReadOut(head) for penalty, head in path}
