"""Score, stamp and save the predictions of a cell."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.results.context import ResultContext
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cell import TaskCell
from cardiobench.scoring.score import score
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.frames import FrameAnswers


@dataclass(frozen=True)
class Answered:
    """Predictions of a cell that are ready to be scored.

    Attributes:
        answers: Predictions for test units or their labelled frames.
        references: References of all splits.
        context: Origin and settings of the score.
        table: Table of predictions to save with the result.
        stamp: Further facts for the stamp, such as device and libraries.
        validation: Predictions for validation units, saved but not scored; None if there are none.
    """

    answers: TableAnswers | FrameAnswers
    references: pd.DataFrame
    context: ResultContext
    table: pd.DataFrame
    stamp: Mapping[str, Any]
    validation: TableAnswers | None = None


def save_answered(cell: TaskCell, answered: Answered, started: float) -> tuple[ScoreResult, list[Path]]:
    """Score and save the predictions of a cell.

    Args:
        cell: Cell of the result.
        answered: Predictions with references.
        started: Value of `time.perf_counter()` at the start of the cell.

    Returns:
        Result and paths of the written files.
    """
    result = score(answered.answers, answered.references, answered.context)
    stamp = {
        **cell.provenance(),
        "embeddings": cell.plan.store.key,
        **answered.stamp,
        "seconds": round(time.perf_counter() - started, 3),
    }
    result = replace(result, stamp={**result.stamp, **stamp})
    validation = answered.validation
    return save_scored(
        result,
        answered.table,
        cell.path,
        None if validation is None else validation.frame,
        refits=_columns(answered.answers),
        validation_refits=_columns(validation),
    )


def _columns(answers: TableAnswers | FrameAnswers | None) -> Mapping[str, np.ndarray]:
    """Return the answers of refits to save next to a table."""
    refits = answers.refits if isinstance(answers, TableAnswers) else None
    return refits.columns if refits else {}
