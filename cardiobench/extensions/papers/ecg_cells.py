"""The cells of a cross-validation as a table of numbers, and the best classifier of each."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.data import catalog
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.score_result import ScoreResult

CELL = ["model", "dataset", "label", "size"]
"""A cell of the paper's Table 3; the best classifier and pooling stand for it."""
ALWAYS_POSITIVE = 2 / 3
"""F1 of the positive class when every record is called positive and half of them are, as in every cell."""
INSIDE, REPORTED, ONE = "chosen inside the folds", "best on the reported folds: optimistic", "the only one"
"""How the classifier and pooling that stand for a cell were chosen."""
SAME_FOLDS = ("records", "seed", "folds", "inner", "grouped", "one_a_patient", "search")
"""Options that two results must share for their folds to be the same ones."""
OPTIONS = ["classifier", "seed", "records", "f1_median", "f1_iqr", "f1_macro_median", "auroc_median"]
COLUMNS = [*CELL, "pooling", *OPTIONS, "f1_constant", "f1_macro", "low", "high", "floor", "verdict", "seen"]


BEST = "best"
"""Name of a result that took the classifier of each fold by its inner folds, where others name one classifier."""


def all_cells(results: Sequence[ScoreResult], *, best: bool = False) -> pd.DataFrame:
    """Return one row per result of the cross-validation of patients' recordings by one classifier.

    Args:
        results: Results of any protocol.
        best: Return those that took the best classifier of each fold instead.

    Returns:
        The index is the position in `results`. Columns: model, dataset, label, size, pooling (of the network's tokens), classifier, seed, records; f1_median, f1_iqr,
        f1_macro_median, auroc_median over folds, F1 of the positive class first, and f1_constant, its floor; f1_macro of all out-of-fold answers with
        its 95 % interval low to high over patients, and its floor and verdict;
        seen: whether the dataset is in the model's pretraining data, None when it is unknown.
    """
    rows = {}
    for number, result in enumerate(results):
        if result.protocol != "cross_validation" or result.generated or result.input_condition:
            continue
        dataset, _, label = result.task.partition("/")
        options, score = result.options, result.score
        if (options["classifier"] == BEST) != best:
            continue
        rows[number] = {
            "model": result.model["name"],
            "dataset": dataset,
            "label": label,
            "size": options["size"],
            "pooling": result.model.get("token_pooling") or "",
            **{name: options[name] for name in OPTIONS},
            "f1_constant": ALWAYS_POSITIVE,
            "f1_macro": score.value,
            "low": score.low,
            "high": score.high,
            "floor": result.floor.value,
            "verdict": result.verdict.word,
            "seen": result.seen_in_pretraining,
        }
    return pd.DataFrame(list(rows.values()), index=list(rows), columns=COLUMNS)


def is_of_patients(record: AnalysisResult) -> bool:
    """Return whether an analysis is of one model and of no phantom or synthetic twin."""
    known = catalog.list_datasets()
    names = [dataset["name"] for dataset in record.datasets]
    generated = any(name in known and catalog.spec(name).generated for name in names)
    return len(record.models) == 1 and not generated and not any(dataset.get("twin") for dataset in record.datasets)


def best_cells(results: Sequence[ScoreResult]) -> pd.DataFrame:
    """Return one row for all classifiers and poolings of each model, dataset, label and size.

    In each fold the one with the best mean F1 of the inner folds is taken, so that the fold's own score chooses nothing.
    Results of a flat search have no inner folds: of those the one with the best median F1 is taken, ties by the smaller
    IQR, which is optimistic. Where there are several seeds, those of the smallest one only: the best of several draws
    would flatter.

    Returns:
        Columns of `all_cells`, and `choice`: `INSIDE`, `REPORTED` or `ONE`, with the number of candidates. Classifier and
        pooling are joined by + where folds differ; f1_macro, its interval and its verdict are then those of the result
        that took the best classifier of each fold, and empty where there is none or where poolings differ.
    """
    cells, best = all_cells(results), all_cells(results, best=True)
    cells = cells[cells["seed"] == cells.groupby(CELL)["seed"].transform("min")]
    rows = [_best(part, [results[number].options for number in part.index], best) for _, part in cells.groupby(CELL)]
    return pd.DataFrame(rows, columns=[*COLUMNS, "choice"])


def _best(part: pd.DataFrame, options: Sequence[dict[str, Any]], best: pd.DataFrame) -> dict[str, Any]:
    """Return the row that stands for the candidates of one cell.

    Args:
        part: Rows of `all_cells`.
        options: Options of their results, in the same order.
        best: Rows of the results that took the best classifier of each fold.
    """
    one_set_of_folds = len({tuple(option.get(name) for name in SAME_FOLDS) for option in options}) == 1
    if len(part) == 1 or not one_set_of_folds or not all("f1_inner_folds" in option for option in options):
        first = part.sort_values(["f1_median", "f1_iqr"], ascending=[False, True], kind="stable").iloc[0]
        return {**first, "choice": ONE if len(part) == 1 else f"{REPORTED} ({len(part)} candidates)"}
    chosen = np.argmax([option["f1_inner_folds"] for option in options], axis=0)
    folds = {
        key: np.take_along_axis(np.array([option[f"{key}_folds"] for option in options]), chosen[None], axis=0)[0]
        for key in ("f1", "f1_macro", "auroc")
    }
    low, high = np.quantile(folds["f1"], [0.25, 0.75])
    used = part.iloc[[number for number, _ in Counter(chosen.tolist()).most_common()]]
    row = {
        **used.iloc[0],
        **{name: " + ".join(dict.fromkeys(used[name])) for name in ("classifier", "pooling")},
        **{f"{key}_median": float(np.median(values)) for key, values in folds.items()},
        "f1_iqr": float(high - low),
        "choice": f"{INSIDE} ({len(part)} candidates)",
    }
    if len(used) > 1:
        row |= {"f1_macro": np.nan, "low": np.nan, "high": np.nan, "verdict": ""}
        same = [*CELL, "seed", "pooling"]
        scored = best.merge(part[same].drop_duplicates(), on=same)
        if len(scored) == 1 and part["pooling"].nunique() == 1:
            row |= scored[["f1_macro", "low", "high", "verdict"]].iloc[0].to_dict()
    return row
