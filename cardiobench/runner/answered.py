"""Answers of a cell, and the one place that scores, stamps and writes them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
    """Answers of a cell, ready to be scored.

    Attributes:
        answers: Answers to the test units or to their labelled frames.
        references: References of all splits.
        context: Context of the score.
        table: Table of answers that is saved beside the result.
        stamp: Further facts of the stamp, such as device and libraries.
        validation: Answers for the validation units, saved beside the table and not scored; None where there are none.
    """

    answers: TableAnswers | FrameAnswers
    references: pd.DataFrame
    context: ResultContext
    table: pd.DataFrame
    stamp: Mapping[str, Any]
    validation: pd.DataFrame | None = None


def save_answered(cell: TaskCell, answered: Answered, started: float) -> tuple[ScoreResult, list[Path]]:
    """Score and save the answers of a cell.

    Args:
        cell: Cell of the result.
        answered: Answers with their references.
        started: `time.perf_counter()` when the work on the cell began.

    Returns:
        The result, and the files that were written.
    """
    result = score(answered.answers, answered.references, answered.context)
    stamp = {
        **cell.provenance(),
        "embeddings": cell.plan.store.key,
        **answered.stamp,
        "seconds": round(time.perf_counter() - started, 3),
    }
    result = replace(result, stamp={**result.stamp, **stamp})
    return save_scored(result, answered.table, cell.path, answered.validation)
