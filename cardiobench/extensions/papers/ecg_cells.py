"""Tabulate cross-validation cells and select the best classifier of each."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.data import catalog
from cardiobench.extensions.papers.comparable import is_comparable
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.score_result import ScoreResult

CELL = ["model", "dataset", "label", "size"]
"""Columns that identify a cell of Table 3; the best classifier and pooling represent it."""
ALWAYS_POSITIVE = 2 / 3
"""F1 of the positive class if all records are called positive and half of them are, as in every cell."""
INSIDE, REPORTED, ONE = "chosen inside the folds", "best on the reported folds: optimistic", "the only one"
"""Ways of choosing the classifier and pooling of a cell."""
SAME_FOLDS = ("records", "seed", "folds", "inner", "grouped", "one_a_patient", "search")
"""Options that results must share to have identical folds."""
OPTIONS = ["classifier", "seed", "records", "f1_median", "f1_iqr", "f1_macro_median", "auroc_median"]
COLUMNS = [*CELL, "pooling", *OPTIONS, "f1_constant", "f1_macro", "low", "high", "floor", "verdict", "seen"]


BEST = "best"
"""Classifier name of results that use the classifier selected in the inner folds."""


def all_cells(results: Sequence[ScoreResult], *, best: bool = False) -> pd.DataFrame:
    """Return one row per cross-validation result on the recordings of the paper, as they were released.

    Args:
        results: Results of any protocols.
        best: Whether to return results with the best classifier of each fold instead.

    Returns:
        Table indexed by position in `results`, with the columns model, dataset, label, size, pooling (of tokens),
        classifier, seed and records; f1_median, f1_iqr (both for the positive class), f1_macro_median and auroc_median
        over folds; f1_constant (floor); f1_macro of all out-of-fold predictions with its 95 % interval (low, high),
        floor and verdict; and seen (True, False or None for unknown pretraining data).
    """
    rows = {}
    for number, result in enumerate(results):
        if result.protocol != "cross_validation" or not is_comparable(result):
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
    """Return whether an analysis covers one model and all patients of datasets that are no phantom or synthetic twin."""
    known = catalog.list_datasets()
    names = [dataset["name"] for dataset in record.datasets]
    generated = any(name in known and catalog.spec(name).generated for name in names)
    other = any(dataset.get("twin") or dataset.get("limit") is not None for dataset in record.datasets)
    return len(record.models) == 1 and not generated and not other


def best_cells(results: Sequence[ScoreResult]) -> pd.DataFrame:
    """Return one row per model, dataset, label and size over all classifiers and poolings.

    Each fold uses the candidate with the best mean inner-fold F1, so that the fold's own score does not affect the
    choice. Flat searches have no inner folds; they use the best median F1, with ties resolved by smaller IQR, which is
    optimistic. Of several seeds, only the smallest is used, because the best of several draws would be optimistic.

    Returns:
        Columns of `all_cells` and `choice` (`INSIDE`, `REPORTED` or `ONE`) with the number of candidates. If the folds
        use different classifiers or poolings, the names are joined by +. In this case f1_macro, interval and verdict
        come from the result with the best classifier of each fold; they are empty if there is no such result or the
        poolings differ.
    """
    cells, best = all_cells(results), all_cells(results, best=True)
    cells = cells[cells["seed"] == cells.groupby(CELL)["seed"].transform("min")]
    rows = [_best(part, [results[number].options for number in part.index], best) for _, part in cells.groupby(CELL)]
    return pd.DataFrame(rows, columns=[*COLUMNS, "choice"])


def _best(part: pd.DataFrame, options: Sequence[dict[str, Any]], best: pd.DataFrame) -> dict[str, Any]:
    """Return the row that represents the candidates of one cell.

    Args:
        part: Rows of `all_cells`.
        options: Options of the results in the same order.
        best: Results with the best classifier of each fold.
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
