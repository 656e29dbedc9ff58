"""Fit linear read-outs of frozen tokens for the protocol `dense`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.core.setting import Positive
from cardiobench.data.spec import Task
from cardiobench.extensions.dense.data import DenseData, first_by_hash
from cardiobench.extensions.dense.variants import USUAL, DenseVariant, Further
from cardiobench.metrics.load import load_formula
from cardiobench.protocols.frame import FrameOutput, FrameProtocol
from cardiobench.protocols.options import Penalty
from cardiobench.tasks.dense_label import DenseLabel

if TYPE_CHECKING:
    from cardiobench.extensions.dense.readouts import FittedReadOut, ReadOut
    from cardiobench.extensions.dense.tokens import FramePlan

COMPONENT = "protocol dense"
VERSION = 1

PATIENCE = 2  # Number of consecutive penalties without improvement before the search stops.
HELD_OUT = 0.15  # Fraction of training patients used for validation if a release has no validation split.


@dataclass(frozen=True)
class DensePrediction(FrameProtocol):
    """Predict masks and landmarks of single frames from the last-block tokens of a frozen network.

    Only the labelled frame is shown, letterboxed; a video model sees it as a static clip. Each token predicts s x s
    cells by multinomial logistic regression around the mean training frame, and probabilities are interpolated at the
    original pixels. Landmarks are peaks of one map each (`heatmap`), or are predicted by ridge regression from the mean
    token (`global`). There is no augmentation, ensemble or largest-component filter. Scores measure linearly readable
    information and cannot be compared with those of fine-tuned networks.

    Optional results: with `further`, `clip` shows a video model the moving clip around the frame and reads the token
    time step that contains the frame; `ridge` replaces logistic regression by least squares from running sums, so that
    memory does not grow with the number of frames. With `patients`, the read-out is also fitted on the first N training
    patients in hash order.

    Attributes:
        penalties: Candidate penalties on the squared weights of standardised tokens.
        ridge_penalties: Candidate penalties for `ridge`, whose weights are small.
        train_frames: Maximum number of training frames; patients are selected in hash order.
        validation_frames: Number of validation frames on which the penalty is chosen; None for all.
        full: Whether to keep grids of more than 16 rows or columns at full size.
        further: Additional variants to score.
        patients: Additional numbers of training patients, such as 5, 20 and 100.
    """

    penalties: tuple[Penalty, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    train_frames: Positive = 2000
    validation_frames: Positive = 600
    ridge_penalties: tuple[Penalty, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    full: bool = False
    further: tuple[Further, ...] = ()
    patients: tuple[Positive, ...] = ()

    name = "dense"

    def read_outs(self, task: Task) -> tuple[DenseVariant, ...]:
        """Return the read-outs of a task; ridge regression from the mean token equals `global`."""
        kinds = ("heatmap", "global") if task.rules.frame_label == "points" else ("",)
        usual = [DenseVariant(kind) for kind in kinds]
        others = [
            DenseVariant(kind, further)
            for further in self.further
            for kind in kinds
            if (kind, further) != ("global", "ridge")
        ]
        return (*usual, *others, *(DenseVariant(kind, patients=count) for count in self.patients for kind in kinds))

    def predict(self, plan: "FramePlan", variant: str) -> FrameOutput:
        """Fit the given read-out and predict the labelled test frames."""
        from cardiobench.extensions.dense.answer import predict_frames

        read_outs = {one.name: one for one in self.read_outs(plan.task)}
        return predict_frames(plan, self.fit, read_outs[variant])

    def select(self, labels: Sequence[DenseLabel]) -> list[DenseLabel]:
        """Return all test frames and the selected training and validation frames, in order."""
        kept: set[tuple[str, str]] = set()
        for split, most in (("train", self.train_frames), ("validation", self.validation_frames), ("test", None)):
            patients = [label.patient for label in labels if label.split == split and not label.reason]
            kept |= {(split, patient) for patient in first_by_hash(patients, most)}
        return [label for label in labels if not label.reason and (label.split, label.patient) in kept]

    def split_patients(self, data: DenseData, most: int | None = None) -> tuple[list[str], list[str], str]:
        """Return training patients, validation patients and the split that the latter come from.

        Args:
            data: Data of the task.
            most: Number of training patients, excluding those held out for validation; None for all.

        Raises:
            NotApplicable: There are too few training patients.
        """
        train, valid, split = data.patients("train"), data.patients("validation"), "validation"
        if not valid:
            count = max(1, round(HELD_OUT * len(train)))
            if len(train) < 2:
                raise NotApplicable(
                    f"{data.task.name} has {len(train)} training patients here; at least two are required"
                )
            train, valid, split = train[count:], train[:count], "train"
        if most is not None and most >= len(train):
            raise NotApplicable(f"{data.task.name} has {len(train)} training patients here, not more than {most}")
        return train[:most], valid, split

    def fit(self, data: DenseData, variant: DenseVariant = USUAL) -> "FittedReadOut":
        """Fit one read-out per penalty and keep the one with the smallest validation error.

        The search starts with the largest penalty and stops after `PATIENCE` penalties without improvement.

        Raises:
            NotApplicable: There are no training frames, or too few patients.
        """
        from cardiobench.extensions.dense.head import cells_per_token
        from cardiobench.extensions.dense.readouts import FittedReadOut, fit_read_outs

        train, valid, split = self.split_patients(data, variant.patients)
        penalties = self.ridge_penalties if variant.further == "ridge" else self.penalties
        fitted = fit_read_outs(data, train, variant, penalties)
        errors: dict[float, float] = {}
        best, read_out = np.nan, None
        for penalty, candidate in fitted.path:
            errors[penalty] = validation_error(candidate, data, split, set(valid))
            if read_out is None or errors[penalty] < errors[best]:
                best, read_out = penalty, candidate
            elif all(error > errors[best] for error in list(errors.values())[-PATIENCE:]):
                break
        assert read_out is not None
        s = cells_per_token(data.grid)
        details = {
            "grid": list(data.grid),
            "width": fitted.width,
            "cells": [s * side for side in data.grid],
            "penalty": best,
            "penalties_tried": list(errors),
            "train_patients": len(train),
            "train_frames": fitted.frames,
            "chosen_on": f"{len(valid)} {'validation' if split == 'validation' else 'held-out training'} patients",
            "validation_error": errors[best],
        }
        return FittedReadOut(read_out, fitted.mean, details)


def validation_error(read_out: "ReadOut", data: DenseData, split: str, patients: set[str]) -> float:
    """Return the mean error of a read-out: 1 - mean Dice over structures, or the mean distance of points.

    Distances are fractions of the square's side, so frames of any size have equal weight.
    """
    structures = len(data.task.structures)
    errors = [
        selection_error(label, read_out.predict(box, window, tokens), structures, box.side)
        for label, box, window, tokens in data.with_tokens(split, patients)
    ]
    return float(np.nanmean(errors)) if errors else np.inf


def selection_error(label: DenseLabel, prediction: np.ndarray, structures: int, side: int) -> float:
    """Return the error of one answer; see `validation_error`."""
    if label.mask is not None:
        return 1.0 - float(np.nanmean(load_formula("dice").dice_of_frame(label.mask, prediction, structures)))
    distances = load_formula("landmark_error").radial_errors(label.points, prediction, (1.0, 1.0))
    return float(np.nanmean(distances)) / side
