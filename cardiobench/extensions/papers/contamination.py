"""Scores split by whether the model saw the dataset in its pretraining, as the model cards say."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

COLUMNS = ["dataset", "models seen", "mean seen", "models not seen", "mean not seen", "difference"]
ALL = "all, model and task held fixed"


def contamination(cells: pd.DataFrame, group: Sequence[str], score: str = "f1_median") -> pd.DataFrame:
    """Compare the mean score of the models that saw a dataset with that of the models that did not.

    The difference in a row is one between models, which may differ in more than their pretraining data; the last row holds
    what having seen a dataset adds once each model and each task has a level of its own (least squares). Models for which
    it is unknown are left out.

    Args:
        cells: Model, dataset, seen (True, False or None), the score and the columns of `group`.
        group: Columns that, with the dataset, make a task.
        score: Column.

    Returns:
        The columns of `group`, then `COLUMNS`; NaN where there is no model of a kind.
    """
    known = cells[cells["seen"].notna()]
    if known.empty:
        return pd.DataFrame(columns=[*group, *COLUMNS])
    rows = []
    for key, part in known.groupby([*group, "dataset"], sort=False):
        saw = part["seen"].astype(bool)
        means = part.loc[saw, score].mean(), part.loc[~saw, score].mean()
        rows.append((*key, int(saw.sum()), means[0], int((~saw).sum()), means[1], means[0] - means[1]))
    saw = known["seen"].astype(bool)
    effect = seen_effect(known, [*group, "dataset"], score)
    rows.append((*[""] * len(group), ALL, int(saw.sum()), np.nan, int((~saw).sum()), np.nan, effect))
    return pd.DataFrame(rows, columns=[*group, *COLUMNS])


def seen_effect(cells: pd.DataFrame, task: Sequence[str], score: str) -> float:
    """Estimate the gain from having seen the dataset, with a level per model and per task; NaN where it is not identified.

    Args:
        cells: Model, seen, the score and the columns of `task`.
        task: Columns that make a task.
        score: Column.
    """
    levels = pd.get_dummies(cells["model"]), pd.get_dummies(cells.groupby(list(task), sort=False).ngroup())
    design = np.column_stack([cells["seen"].astype(float), *(table.to_numpy(float) for table in levels)])
    # Seen has to vary within a model and within a task: otherwise it is one of the levels.
    if np.linalg.matrix_rank(design) == np.linalg.matrix_rank(design[:, 1:]):
        return float("nan")
    return float(np.linalg.lstsq(design, cells[score].to_numpy(float), rcond=None)[0][0])
