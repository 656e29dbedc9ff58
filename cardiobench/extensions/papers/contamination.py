"""Compare scores of models that have and have not seen a dataset in pretraining."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.95
COLUMNS = ["dataset", "models seen", "mean seen", "models not seen", "mean not seen", "difference", "low", "high"]
ALL = "all, model and task held fixed"


def contamination(cells: pd.DataFrame, group: Sequence[str], score: str = "f1_median") -> pd.DataFrame:
    """Compare mean scores of models that saw a dataset with those of models that did not.

    Row differences compare different models, which may differ in more than their pretraining data; their intervals
    are Welch's, over models. The last row estimates the effect of seeing a dataset with models and datasets held fixed
    (see `seen_effect`). Models with unknown pretraining data are excluded.

    Args:
        cells: Table with the columns model, dataset, seen (True, False or None), score, and those in `group`.
        group: Columns that identify a task together with the dataset.
        score: Name of the score column.

    Returns:
        Table with the columns of `group`, then `COLUMNS`, where low and high are the ends of the 95 % interval of the
        difference; NaN for a group without models, and without an interval for a group of one model.
    """
    known = cells[cells["seen"].notna()]
    if known.empty:
        return pd.DataFrame(columns=[*group, *COLUMNS])
    rows = []
    for key, part in known.groupby([*group, "dataset"], sort=False):
        saw = part["seen"].astype(bool)
        means = part.loc[saw, score].mean(), part.loc[~saw, score].mean()
        ends = _welch_interval(part.loc[saw, score], part.loc[~saw, score])
        rows.append((*key, int(saw.sum()), means[0], int((~saw).sum()), means[1], means[0] - means[1], *ends))
    saw = known["seen"].astype(bool)
    effect = seen_effect(known, group, score)
    rows.append((*[""] * len(group), ALL, int(saw.sum()), np.nan, int((~saw).sum()), np.nan, *effect))
    return pd.DataFrame(rows, columns=[*group, *COLUMNS])


def seen_effect(cells: pd.DataFrame, group: Sequence[str], score: str) -> tuple[float, float, float]:
    """Estimate the effect of seeing a dataset by least squares, with models and datasets held fixed.

    Whether a dataset was seen is a property of a model and a dataset, so that the scores of a model on several tasks
    of one dataset are one observation: their mean over the tasks that all models of the dataset answered. A dataset
    without such tasks is omitted.

    Args:
        cells: Table with the columns model, dataset, seen, score, and those in `group`.
        group: Columns that identify a task together with the dataset.
        score: Name of the score column.

    Returns:
        The effect and the ends of its 95 % interval (Student's t); NaN if the effect cannot be separated from models
        and datasets, and NaN ends if no degrees of freedom are left.
    """
    missing = (float("nan"),) * 3
    means = _means_of_shared_tasks(cells, group, score)
    if means.empty:
        return missing
    fixed = np.column_stack([pd.get_dummies(means[name]).to_numpy(float) for name in ("model", "dataset")])
    seen, scores = means["seen"].to_numpy(float), means[score].to_numpy(float)
    rank = np.linalg.matrix_rank(fixed)
    # Without variation within models and datasets, the effect cannot be separated from the fixed effects.
    if np.linalg.matrix_rank(np.column_stack([seen, fixed])) == rank:
        return missing
    # Frisch-Waugh-Lovell: the coefficient of `seen` is that of the residuals on the fixed effects.
    seen, scores = (values - fixed @ np.linalg.lstsq(fixed, values)[0] for values in (seen, scores))
    effect = float(seen @ scores / (seen @ seen))
    freedom = len(seen) - rank - 1
    if freedom < 1:
        return effect, float("nan"), float("nan")
    error = np.sqrt(np.sum((scores - effect * seen) ** 2) / freedom / (seen @ seen))
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom) * error)
    return effect, effect - half, effect + half


def _means_of_shared_tasks(cells: pd.DataFrame, group: Sequence[str], score: str) -> pd.DataFrame:
    """Return the mean score of each model on each dataset over the tasks that all models of the dataset answered."""
    parts = []
    for dataset, part in cells.groupby("dataset", sort=False):
        table = part.pivot_table(index="model", columns=list(group), values=score).dropna(axis=1)
        if table.empty:
            continue
        seen = part.groupby("model")["seen"].first()
        parts.append(
            pd.DataFrame({"model": table.index, "dataset": dataset, "seen": seen[table.index].astype(bool).to_numpy()})
        )
        parts[-1][score] = table.mean(axis=1).to_numpy()
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _welch_interval(seen: pd.Series, not_seen: pd.Series) -> tuple[float, float]:
    """Return the ends of the 95 % interval of the difference of two means, or NaN if a group has fewer than two."""
    if min(len(seen), len(not_seen)) < 2:
        return float("nan"), float("nan")
    interval = stats.ttest_ind(seen, not_seen, equal_var=False).confidence_interval(LEVEL)
    return float(interval.low), float(interval.high)
