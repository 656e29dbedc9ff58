"""Predict, score and save labelled frames."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.libraries import as_text, library_warnings, merged
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.digests import text_digest
from cardiobench.data.spec import Task
from cardiobench.protocols.frame import FrameOutput, FrameProtocol
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.answers import Answered, save_answered
from cardiobench.runner.cells.base import ComputedCell, TaskCell
from cardiobench.runner.encode import FrameTaskPlan
from cardiobench.runner.recent import RecentData
from cardiobench.runner.references import expected_units, limited_references
from cardiobench.tasks.frames import FrameAnswers
from cardiobench.tasks.mask_volumes import PREDICTED


@dataclass(frozen=True)
class FrameCell(TaskCell, ComputedCell[ScoreResult]):
    """Cell of a protocol that predicts labelled frames."""

    protocol: FrameProtocol
    plan: FrameTaskPlan

    @property
    def recordings(self) -> str:
        """Digest of the fingerprints of the recordings with labelled frames."""
        return text_digest(*self.plan.fingerprints)

    def compute(self, recent: RecentData) -> tuple[ScoreResult, Sequence[Path]]:
        """Predict the labelled test frames, score and save."""
        started = time.perf_counter()
        return save_answered(self, answer_frames(self, self.protocol.predict(self.plan, self.variant)), started)


def answer_frames(cell: FrameCell, output: FrameOutput) -> Answered:
    """Return frame predictions of a cell with references.

    Args:
        cell: Cell of the result.
        output: Predictions of the labelled test frames.
    """
    task, dataset, limit = cell.task, cell.dataset, cell.config.limit
    references = limited_references(dataset, task, limit)
    expected = expected_units(dataset, task, references, limit)
    ef = listed_fractions(dataset, task)
    libraries = merged(cell.plan.store.library_sets)
    context = cell.context(output.details)
    context = replace(context, warnings=(*context.warnings, *library_warnings(libraries)), cost=cell.plan.store.cost)
    answers = FrameAnswers(output.scorer, output.floors, expected, ef)
    return Answered(answers, references, context, predictions_table(output, ef), {"libraries": as_text(libraries)})


def predictions_table(output: FrameOutput, ef: pd.Series | None) -> pd.DataFrame:
    """Return the table saved with a result, one row per frame with its scores and prediction.

    Args:
        output: Predictions of the labelled test frames.
        ef: Listed ejection fraction of each unit in %.

    Returns:
        Table with the columns of the scorer, `answer`, and the listed (`y_true`) and predicted (`y_pred`) ejection
        fraction of the unit in %, or NaN.
    """
    scorer = output.scorer
    frame = scorer.frame.assign(answer=output.answers)
    listed = pd.Series(dtype=np.float64) if ef is None else ef
    measured = scorer.volumes.fractions(PREDICTED) if ef is not None else listed
    return frame.assign(y_true=frame["id"].map(listed), y_pred=frame["id"].map(measured))


def listed_fractions(dataset: OpenDataset, task: Task) -> pd.Series | None:
    """Return the ejection fraction of each unit as listed in the release in %, or None."""
    if "ef" not in dataset.frame or task.rules.frame_label != "mask":
        return None
    return dataset.frame.groupby(task.unit_column)["ef"].first().dropna()
