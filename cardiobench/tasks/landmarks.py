"""Landmarks: points in each labelled frame."""

from collections.abc import Sequence

import numpy as np

from cardiobench.metrics.load import load_formula
from cardiobench.tasks.dense_information import distances
from cardiobench.tasks.dense_label import LENGTHS, DenseLabel
from cardiobench.tasks.floors import COLLAPSED_SPREAD
from cardiobench.tasks.frame_numbers import LENGTH_ERRORS
from cardiobench.tasks.frames import FrameKind, Measured
from cardiobench.tasks.task import Task


class Landmarks(FrameKind):
    """Rules of a task whose labels are points (k, 2), x and y in pixels."""

    frame_label = "points"
    hub_type = "keypoint-detection"
    frame_metrics = ("landmark_error",)
    mean_answer = "the mean points of the train frames"

    def measure(self, label: DenseLabel, prediction: np.ndarray, task: Task) -> Measured:
        """Compute the distance of each point, whether it is within the limits, and the errors of the lengths between points."""
        if label.points is None:
            raise ValueError(f"{label.recording}, frame {label.frame} has no label to score: {label.reason}")
        points, sides, names = label.points, label.spacing or (1.0, 1.0), task.structures
        formula = load_formula("landmark_error")
        errors = formula.radial_errors(points, prediction, sides)
        numbers = {f"landmark_error_{name}": value for name, value in zip(names, errors, strict=True)}
        for radius in formula.RADII:
            found = np.where(np.isnan(errors), np.nan, errors <= radius)
            numbers |= {f"within_{radius:g}_{name}": value for name, value in zip(names, found, strict=True)}
        place = {name: number for number, name in enumerate(names)}
        for length, (one, other) in LENGTHS.items():
            if {one, other} <= set(place):
                spans = [(ends[place[other]] - ends[place[one]]) * sides[::-1] for ends in (points, prediction)]
                numbers[LENGTH_ERRORS[length].key] = abs(float(np.hypot(*spans[1]) - np.hypot(*spans[0])))
        truth, answer = points * sides[::-1], prediction * sides[::-1]
        # The image extends at least from its corner, 0, to the farthest point in it.
        diagonal = float(np.hypot(*np.nanmax(np.concatenate([truth, answer]), axis=0)))
        return Measured(numbers, truth, answer, diagonal)

    def closeness(self, truth: np.ndarray, answer: np.ndarray, structures: int) -> np.ndarray:
        """Return minus the sum of the distances of labelled points (n, k, 2) and answers (m, k, 2) for all pairs, (n, m)."""
        return distances(truth, answer)

    def all_same(self, truths: Sequence[np.ndarray], answers: Sequence[np.ndarray]) -> bool:
        """Return whether the points hardly vary, compared with the labelled ones."""
        return bool(np.std(answers, axis=0).max() <= COLLAPSED_SPREAD * np.nanstd(truths, axis=0).max())
