"""Rows of the table: a score of the product, checked against scikit-learn on the answers that it saved."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score, mean_absolute_error, roc_auc_score

import cardiobench
from cardiobench.core.errors import BadData
from cardiobench.results.paths import PATTERN, predictions_path
from cardiobench.results.score_result import ScoreResult

EXACT = 1e-12
"""Largest difference between a score and that of scikit-learn on the same answers."""


@dataclass(frozen=True)
class Row:
    """A score.

    Attributes:
        what: Network or reader.
        how: Protocol, or form of the answers.
        metric: Name of the number.
        value: The number, unrounded.
        low: Lower end of the 95 % interval over patients.
        high: Upper end.
        n: Number of recordings.
        patients: Number of patients; None if the repository does not state them.
        seen: Whether the dataset was in the training data.
    """

    what: str
    how: str
    metric: str
    value: float
    low: float
    high: float
    n: int
    patients: int | None
    seen: bool

    @classmethod
    def of(cls, result: ScoreResult, how: str = "", *, known_patients: bool = True) -> "Row":
        """Return the row of a result."""
        name, score = result.metric, result.score
        return cls(
            what=str(result.model["name"]),
            how=how or result.protocol,
            metric=name,
            value=score.value,
            low=score.low,
            high=score.high,
            n=score.n,
            patients=score.n_patients if known_patients else None,
            seen=bool(result.seen_in_pretraining),
        )


def evaluated(
    models: Sequence[Any], task: str, protocols: Sequence[str], out: Path, classes: Sequence[str] = (), **options: Any
) -> list[Row]:
    """Evaluate models and check each score.

    Args:
        models: Names or encoder objects.
        task: Task that all models answer.
        protocols: Protocols that apply to all models.
        out: Empty folder for results and embeddings.
        classes: Classes of the task, if it has any.
        options: Other arguments of `cardiobench.evaluate`.

    Raises:
        BadData: A score differs from that of scikit-learn.
    """
    results = cardiobench.evaluate(
        models, task, protocols, output_dir=out / "results", cache_dir=out / "cache", workers=0, **options
    )
    for path in sorted((out / "results").rglob(PATTERN)):
        check(ScoreResult.load(path), pd.read_parquet(predictions_path(path)), classes)
    return [Row.of(result) for result in results]


def check(result: ScoreResult, answers: pd.DataFrame, classes: Sequence[str] = ()) -> None:
    """Compare a score with scikit-learn's on the saved answers.

    Raises:
        BadData: They differ.
    """
    expected = recomputed(result.metric, answers, classes)
    if not abs(expected - result.score.value) <= EXACT:
        raise BadData(
            f"{result.model['name']} on {result.task}: {result.metric} is {result.score.value!r}, and {expected!r} by "
            "scikit-learn on the same answers."
        )


def recomputed(metric: str, answers: pd.DataFrame, classes: Sequence[str]) -> float:
    """Return a metric of a table of answers with `y_true` and `y_pred` or `p_<class>`, by scikit-learn."""
    if metric == "mae":
        return float(mean_absolute_error(answers["y_true"], answers["y_pred"]))
    if metric == "auroc_macro":
        probabilities = answers[[f"p_{name}" for name in classes]].to_numpy()
        return float(roc_auc_score(indicators(answers["y_true"], classes), probabilities))
    return float(f1_score(*(indicators(answers[name], classes) for name in ("y_true", "y_pred")), average="macro"))


def indicators(cells: pd.Series, classes: Sequence[str]) -> np.ndarray:
    """Return an array (n, classes) with 1 for each of the labels separated by `;`, else 0."""
    sets = [set(str(cell).split(";")) for cell in cells]
    return np.array([[int(name in labels) for name in classes] for labels in sets])


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown; shares in percent, with two digits."""
    head = ("what", "how", "number", "value", "95 % interval", "recordings", "patients", "seen in pretraining")
    return "\n".join(_line(cells) for cells in (head, ["---"] * len(head), *map(cells_of, rows)))


def cells_of(row: Row) -> tuple[str, ...]:
    """Return the cells of a row."""
    scale = 1 if row.metric == "mae" else 100
    value, low, high = (f"{scale * number:.2f}" for number in (row.value, row.low, row.high))
    patients = "not stated" if row.patients is None else str(row.patients)
    seen = "yes" if row.seen else "no"
    return (row.what, row.how, row.metric, value, f"{low} to {high}", str(row.n), patients, seen)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
