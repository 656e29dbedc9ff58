"""Segmentation: a mask of the structures of each labelled frame."""

from collections.abc import Sequence

import numpy as np

from cardiobench.metrics.load import load_formula
from cardiobench.tasks.dense_information import overlap, shrunk
from cardiobench.tasks.dense_label import DenseLabel
from cardiobench.tasks.frames import FrameKind, Measured
from cardiobench.tasks.task import Task


class Segmentation(FrameKind):
    """Rules of a task whose labels are masks, uint8 (H, W): 0 background, then the structures in order."""

    frame_metrics = ("dice", "hausdorff95")
    frame_label = "mask"
    hub_type = "image-segmentation"
    link = "softmax"
    mean_answer = "the mean mask of the train frames"

    def measure(self, label: DenseLabel, prediction: np.ndarray, task: Task) -> Measured:
        """Compute the Dice of each structure and, if the pixel size is known, the distance of the outlines."""
        if label.mask is None:
            raise ValueError(f"{label.recording}, frame {label.frame} has no label to score: {label.reason}")
        names = task.structures
        values = load_formula("dice").dice_of_frame(label.mask, prediction, len(names))
        numbers = {f"dice_{name}": value for name, value in zip(names, values, strict=True)}
        diagonal = np.nan
        if label.spacing is not None:
            diagonal = float(np.hypot(*np.multiply(label.mask.shape, label.spacing)))
            values = load_formula("hausdorff95").hausdorff95_of_frame(label.mask, prediction, len(names), label.spacing)
            numbers |= {f"hausdorff95_{name}": value for name, value in zip(names, values, strict=True)}
        return Measured(numbers, shrunk(label.mask), shrunk(prediction), diagonal)

    def closeness(self, truth: np.ndarray, answer: np.ndarray, structures: int) -> np.ndarray:
        """Return the sum of the Dice over structures for all pairs of masks (n, pixels) and (m, pixels), (n, m)."""
        return overlap(truth, answer, structures)

    def all_same(self, truths: Sequence[np.ndarray], answers: Sequence[np.ndarray]) -> bool:
        """Return whether all small masks are the same."""
        return all(np.array_equal(answer, answers[0]) for answer in answers[1:])
