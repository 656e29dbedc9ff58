"""Compare scores of models that have and have not seen a dataset in pretraining."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

COLUMNS = ["dataset", "models seen", "mean seen", "models not seen", "mean not seen", "difference"]
ALL = "all, model and task held fixed"


def contamination(cells: pd.DataFrame, group: Sequence[str], score: str = "f1_median") -> pd.DataFrame:
    """Compare mean scores of models that saw a dataset with those of models that did not.

    Row differences compare different models, which may differ in more than their pretraining data. The last row
    estimates the effect of seeing a dataset with fixed effects for models and tasks (least squares). Models with
    unknown pretraining data are excluded.

    Args:
        cells: Table with the columns model, dataset, seen (True, False or None), score, and those in `group`.
        group: Columns that identify a task together with the dataset.
        score: Name of the score column.

    Returns:
        Table with the columns of `group`, then `COLUMNS`; NaN for a group without models.
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
    """Estimate the effect of seeing a dataset with fixed effects for models and tasks, or NaN if not identifiable.

    Args:
        cells: Table with the columns model, seen, score, and those in `task`.
        task: Columns that identify a task.
        score: Name of the score column.
    """
    levels = pd.get_dummies(cells["model"]), pd.get_dummies(cells.groupby(list(task), sort=False).ngroup())
    design = np.column_stack([cells["seen"].astype(float), *(table.to_numpy(float) for table in levels)])
    # Without variation within models and tasks, the effect cannot be separated from the fixed effects.
    if np.linalg.matrix_rank(design) == np.linalg.matrix_rank(design[:, 1:]):
        return float("nan")
    return float(np.linalg.lstsq(design, cells[score].to_numpy(float), rcond=None)[0][0])
