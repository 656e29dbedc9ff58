"""Checks of a table of answers before it is joined with references; errors name the ids of the rows."""

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, first_n

SUM_TOLERANCE = 1e-3


def check_columns(answers: pd.DataFrame, columns: list[str], source: str, task: str) -> None:
    """Refuse answers without these numeric columns, or with values that are not finite.

    Raises:
        BadPredictions: A column is missing, or a value is not finite.
    """
    if absent := [name for name in columns if name not in answers]:
        raise BadPredictions(f"{source} lacks {', '.join(absent)} for {task}. It needs {', '.join(columns)}.")
    for column in columns:
        check_finite(answers, column, source)


def check_finite(answers: pd.DataFrame, column: str, source: str, shown: str = "") -> None:
    """Refuse a numeric column with values that are not finite.

    Args:
        answers: Id and the column.
        column: Name of the column.
        source: Origin of the answers, for messages.
        shown: Name of the column in the file of the user; empty for `column`.

    Raises:
        BadPredictions: A value is not finite.
    """
    require(
        np.isfinite(pd.to_numeric(answers[column], errors="coerce").to_numpy(np.float64)),
        answers,
        source,
        f"values of {shown or column} are not finite numbers",
        "Give a number, or leave the row out and score the others with --allow-missing (in Python allow_missing=True).",
    )


def check_probabilities(answers: pd.DataFrame, columns: list[str], source: str, task: str) -> None:
    """Refuse columns that are not finite numbers in [0, 1]; raises `BadPredictions`."""
    check_columns(answers, columns, source, task)
    table = answers[columns].to_numpy(np.float64)
    require(
        ((table >= 0) & (table <= 1)).all(axis=1),
        answers,
        source,
        "rows have a probability outside [0, 1]",
        "Divide percentages by 100, and apply the model's sigmoid or softmax to logits.",
    )


def require(good: np.ndarray, answers: pd.DataFrame, source: str, complaint: str, action: str) -> None:
    """Refuse answers if any row is False in `good`, bool (n,), naming the ids; raises `BadPredictions`."""
    if not good.all():
        count = f"{int((~good).sum())} of {len(good)}"
        raise BadPredictions(f"{source}: {count} {complaint}: {first_n(answers['id'][~good])}. {action}")
