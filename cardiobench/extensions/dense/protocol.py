"""The protocol `dense`: a linear read-out of frozen tokens, its penalty chosen on validation patients."""

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

PATIENCE = 2  # Number of consecutive penalties.
HELD_OUT = 0.15  # Fraction of the training patients used for validation where a release has no validation split.


@dataclass(frozen=True)
class DensePrediction(FrameProtocol):
    """Masks and landmarks of single frames, from the tokens of a frozen network's last block.

    The labelled frame alone is shown, letterboxed; a video model sees it as a clip that stands still. Each token answers
    for s x s cells by multinomial logistic regression around the mean of the training frames; probabilities are
    interpolated at the frame's own pixels. Landmarks are the peaks of one map each (`heatmap`), or come by ridge
    regression from the mean token (`global`). No augmentation, no ensemble, no largest component. This says what a
    linear read-out finds in the tokens, and cannot be compared with a fine-tuned network.

    Further results are made where they are asked for. `further`: `clip` shows a video model the moving clip around the
    frame and reads the time that holds it; `ridge` solves least squares instead of logistic regression, from sums over the
    training frames, so that memory does not grow with them. `patients`: the read-out again, learned from the first so many
    training patients by the same hash.

    Attributes:
        penalties: Candidate penalties on the squared weights of standardised tokens.
        ridge_penalties: The same of `ridge`, whose weights are small.
        train_frames: Labelled frames to learn from at most, of the first patients by a hash of their ids.
        validation_frames: Number of validation frames on which the penalty is chosen; None for all.
        full: Keep grids of more than 16 rows or columns as they are.
        further: Variants that are scored too.
        patients: Numbers of training patients that are scored too, such as 5, 20 and 100.
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
        """Return the read-outs of a task; ridge regression of the mean token equals `global`."""
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
        """Fit the read-out of that name and answer the labelled test frames."""
        from cardiobench.extensions.dense.answer import predict_frames

        read_outs = {one.name: one for one in self.read_outs(plan.task)}
        return predict_frames(plan, self.fit, read_outs[variant])

    def select(self, labels: Sequence[DenseLabel]) -> list[DenseLabel]:
        """Return the frames that take part, in their order: all test frames, and those of the first patients to learn from."""
        kept: set[tuple[str, str]] = set()
        for split, most in (("train", self.train_frames), ("validation", self.validation_frames), ("test", None)):
            patients = [label.patient for label in labels if label.split == split and not label.reason]
            kept |= {(split, patient) for patient in first_by_hash(patients, most)}
        return [label for label in labels if not label.reason and (label.split, label.patient) in kept]

    def split_patients(self, data: DenseData, most: int | None = None) -> tuple[list[str], list[str], str]:
        """Return the patients to learn from, those to choose the penalty on, and the split of the latter.

        Args:
            data: Data of the task.
            most: Training patients, of whom those that stand in for validation patients are no part; None for all.

        Raises:
            NotApplicable: There are fewer.
        """
        train, valid, split = data.patients("train"), data.patients("validation"), "validation"
        if not valid:
            count = max(1, round(HELD_OUT * len(train)))
            if len(train) < 2:
                raise NotApplicable(f"{data.task.name} has {len(train)} training patients here, but dense needs two")
            train, valid, split = train[count:], train[:count], "train"
        if most is not None and most >= len(train):
            raise NotApplicable(f"{data.task.name} has {len(train)} training patients here, not more than {most}")
        return train[:most], valid, split

    def fit(self, data: DenseData, variant: DenseVariant = USUAL) -> "FittedReadOut":
        """Fit the read-out for one penalty after the other and keep the one that answers validation patients best.

        The search goes from the stiffest penalty on and ends where `PATIENCE` in a row did worse than the best.

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
    """Return the mean error of a read-out: 1 minus the mean Dice of a frame's structures, or the distance of its points.

    Distances are in shares of the square's side, so that frames of any size count alike.
    """
    structures = len(data.task.structures)
    errors = [
        selection_error(label, read_out.predict(box, window, tokens), structures, box.side)
        for label, box, window, tokens in data.with_tokens(split, patients)
    ]
    return float(np.nanmean(errors)) if errors else np.inf


def selection_error(label: DenseLabel, prediction: np.ndarray, structures: int, side: int) -> float:
    """Return how wrong one answer is; see `validation_error`."""
    if label.mask is not None:
        return 1.0 - float(np.nanmean(load_formula("dice").dice_of_frame(label.mask, prediction, structures)))
    distances = load_formula("landmark_error").radial_errors(label.points, prediction, (1.0, 1.0))
    return float(np.nanmean(distances)) / side
