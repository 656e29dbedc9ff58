"""Measure the sensitivity of model rankings to unspecified protocol choices."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from cardiobench.extensions.papers.ecg_cells import all_cells, is_of_patients
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.score_result import ScoreResult

CHOICES = ("classifier", "pooling", "seed")
SCORES = ["task", "size", "model", "varied", "setting", "rest", "score"]
COLUMNS = ["task", "size", "varied", "one", "other", "models", "pairs", "turned", "share turned", "another is best"]


def order_changes(results: Sequence[ScoreResult], records: Sequence[AnalysisResult]) -> pd.DataFrame:
    """Count model pairs whose order changes between two settings of one choice, all else equal.

    Choices are classifier, pooling and seed of cross-validation (by median F1), and k of the SHAP overlap. A pair with
    a tie under one setting counts as half.

    Returns:
        Table with the columns task (or label across datasets), size, varied, one, other (settings), models, pairs,
        turned, share turned and another is best (whether the top model changes). Settings with fewer than two models in
        common are omitted.
    """
    scores = pd.DataFrame(_cell_scores(all_cells(results)) + _overlap_scores(records), columns=SCORES)
    rows = []
    for (task, size, varied, _), part in scores.groupby(["task", "size", "varied", "rest"], sort=False):
        table = part.pivot_table(index="model", columns="setting", values="score", sort=False)
        for one, other in combinations(table.columns, 2):
            both = table[[one, other]].dropna().to_numpy()
            if len(both) > 1:
                rows.append((task, size, varied, one, other, len(both), *count_order_changes(both[:, 0], both[:, 1])))
    table = pd.DataFrame(rows, columns=[column for column in COLUMNS if column != "share turned"])
    kinds = ["task", "size", "varied", "one", "other"]
    # Combine equal pairs of settings from different contexts, such as two poolings, in one row.
    table = table.groupby(kinds, sort=False, as_index=False).agg(
        {"models": "max", "pairs": "sum", "turned": "sum", "another is best": "any"}
    )
    return table.assign(**{"share turned": table["turned"] / table["pairs"]})[COLUMNS]


def count_order_changes(one: np.ndarray, other: np.ndarray) -> tuple[int, float, bool]:
    """Return the number of pairs, the number with another order, and whether the best model changes.

    Args:
        one: Score of each model under the first setting, higher is better, (n,).
        other: Score of each model under the second setting, (n,).
    """
    first, second = np.triu_indices(len(one), 1)
    a, b = np.sign(one[first] - one[second]), np.sign(other[first] - other[second])
    return len(a), float(np.abs(a - b).sum() / 2), bool(one.argmax() != other.argmax())


def _cell_scores(cells: pd.DataFrame) -> list[tuple]:
    """Return rows of `SCORES`: each cell once per choice, with all other choices as context."""
    return [
        (
            f"{cell['dataset']}/{cell['label']}",
            cell["size"],
            cell["model"],
            varied,
            str(cell[varied]),
            "|".join(str(cell[choice]) for choice in CHOICES if choice != varied),
            cell["f1_median"],
        )
        for cell in cells.to_dict("records")
        for varied in CHOICES
    ]


def _overlap_scores(records: Sequence[AnalysisResult]) -> list[tuple]:
    """Return rows of `SCORES` with the overlap of each model at each k."""
    return [
        (record.subject, "", record.models[0]["name"], "k", key.removeprefix("overlap_at_"), "", overlap.value)
        for record in records
        if record.protocol == "representation" and is_of_patients(record)
        for key, overlap in record.values.items()
        if key.startswith("overlap_at_")
    ]
