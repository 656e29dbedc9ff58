"""Split an adopted dataset by the user's column, or by patient with stratification and a seed."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from cardiobench.core.errors import BadData, first_n
from cardiobench.extensions.adopt.columns import split_of

FOLDS = 10
TEST, VALIDATION = (0, 1), (2,)
"""Number of patient folds: two for test, one for validation, seven for training."""
BINS = 5
"""Number of quantiles used to stratify numeric labels."""


def own_splits(column: pd.Series) -> np.ndarray:
    """Return the splits in the user's column.

    Raises:
        BadData: A cell is not a split name, or the training or test split is empty.
    """
    splits = column.map(split_of)
    if (odd := column[splits == ""]).size:
        raise BadData(
            f"column '{column.name}': {len(odd)} of {len(column)} cells are not a split: {first_n(repr(cell) for cell in odd.unique())}. "
            "Write train, validation and test, or let adopt make the split (--split-column none)."
        )
    if absent := {"train", "test"} - set(splits):
        raise BadData(f"column '{column.name}' has no recording for {' and '.join(sorted(absent))}; it needs both.")
    return splits.to_numpy(dtype=object)


def split_patients(patients: Sequence[str], labels: Sequence[object], seed: int) -> np.ndarray:
    """Split recordings by patient: 70 % train, 10 % validation, 20 % test, stratified by label.

    Args:
        patients: Patient of each recording, (n,).
        labels: Label of each recording, None or NaN if missing. A patient is stratified by the rarest class, or by the
            quantile of the mean number.
        seed: Random seed of the split.

    Raises:
        BadData: There are fewer than ten patients.
    """
    frame = pd.DataFrame({"patient": list(patients), "label": list(labels)})
    if pd.api.types.is_numeric_dtype(frame["label"]) and frame["label"].nunique() > BINS:
        means = frame.groupby("patient")["label"].mean()
        strata = pd.qcut(means, BINS, labels=False, duplicates="drop").fillna(-1).astype(int)
    else:
        texts = frame["label"].astype(object).where(frame["label"].notna(), "").astype(str)
        order = {
            value: place
            for place, value in enumerate(
                texts.value_counts().sort_index(kind="stable").sort_values(kind="stable").index
            )
        }
        strata = texts.map(order).groupby(frame["patient"]).min()
    if len(strata) < FOLDS:
        raise BadData(
            f"{len(strata)} patients are too few to split ({FOLDS} at least). Give a column with the splits (--split-column)."
        )
    strata = strata.sort_index()
    rare = strata.map(strata.value_counts()) < FOLDS
    codes = strata.where(~rare, -2).to_numpy()  # Merge strata that have fewer patients than folds.
    fold = np.zeros(len(strata), dtype=int)
    with warnings.catch_warnings():
        # The merged stratum may still be smaller than the number of folds.
        warnings.simplefilter("ignore", UserWarning)
        if np.bincount(np.unique(codes, return_inverse=True)[1]).max() < FOLDS:
            codes = np.zeros(len(strata))
        for number, (_, held) in enumerate(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(codes, codes)):
            fold[held] = number
    names = np.where(np.isin(fold, TEST), "test", np.where(np.isin(fold, VALIDATION), "validation", "train"))
    by_patient = dict(zip(strata.index, names, strict=True))
    return frame["patient"].map(by_patient).to_numpy(dtype=object)


def check_splits(index: pd.DataFrame, content: Sequence[str]) -> str:
    """Reject patients or identical recordings that occur in two splits.

    Args:
        index: Table with columns id, patient_id and split, one row per recording.
        content: Digest of each recording's samples or file; "" if it was not read.

    Returns:
        Sentence on identical recordings within one split; empty if there are none.

    Raises:
        BadData: A patient or a recording is in two splits; the message has the count and examples.
    """
    crossing = index.groupby("patient_id")["split"].nunique()
    if (several := crossing[crossing > 1]).size:
        raise BadData(
            f"{len(several)} of {len(crossing)} patients are in two splits: {first_n(several.index)}. A patient's recordings "
            "must stay together: correct the split column, or let adopt make the split (--split-column none)."
        )
    known = index.assign(content=list(content))
    known = known[known["content"] != ""]
    same = known[known["content"].duplicated(keep=False)].groupby("content")
    across = [list(group["id"]) for _, group in same if group["split"].nunique() > 1]
    if across:
        rows = sum(map(len, across))
        raise BadData(
            f"{rows} recordings have the same bytes as one in another split ({len(across)} different ones): "
            f"{first_n([' = '.join(ids[:3]) for ids in across])}. Keep one of each, or give both one patient."
        )
    count = sum(len(group) for _, group in same)
    return f"{count} recordings have the same bytes as another of their split" if count else ""
