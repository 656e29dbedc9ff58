"""The cells of a cross-validation as a table of numbers, and the best classifier of each."""

from collections.abc import Sequence

import pandas as pd

from cardiobench.data import catalog
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.score_result import ScoreResult

CELL = ["model", "dataset", "label", "size"]
"""A cell of the paper's Table 3; the best classifier and pooling stand for it."""
ALWAYS_POSITIVE = 2 / 3
"""F1 of the positive class when every record is called positive and half of them are, as in every cell."""
OPTIONS = ["classifier", "seed", "records", "f1_median", "f1_iqr", "f1_macro_median", "auroc_median"]
COLUMNS = [*CELL, "pooling", *OPTIONS, "f1_constant", "f1_macro", "low", "high", "floor", "verdict", "seen"]


def all_cells(results: Sequence[ScoreResult]) -> pd.DataFrame:
    """Return one row per result of the cross-validation of patients' recordings.

    Returns:
        model, dataset, label, size, pooling (of the network's tokens), classifier, seed, records; f1_median, f1_iqr,
        f1_macro_median, auroc_median over folds, F1 of the positive class first, and f1_constant, its floor; f1_macro of all out-of-fold answers with
        its 95 % interval low to high over patients, and its floor and verdict;
        seen: whether the dataset is in the model's pretraining data, None when it is unknown.
    """
    rows = []
    for result in results:
        if result.protocol != "cross_validation" or result.generated:
            continue
        dataset, _, label = result.task.partition("/")
        options, score = result.options, result.score
        rows.append(
            {
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
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def is_of_patients(record: AnalysisResult) -> bool:
    """Whether an analysis is of one model and of no phantom or synthetic twin."""
    known = catalog.list_datasets()
    names = [dataset["name"] for dataset in record.datasets]
    generated = any(name in known and catalog.spec(name).generated for name in names)
    return len(record.models) == 1 and not generated and not any(dataset.get("twin") for dataset in record.datasets)


def best_cells(results: Sequence[ScoreResult]) -> pd.DataFrame:
    """Return the best classifier and pooling of each model, dataset, label and size: by median F1, ties by the smaller IQR.

    Where there are several seeds, those of the smallest one only: the best of several draws would flatter.

    Returns:
        Columns of `all_cells`.
    """
    cells = all_cells(results)
    cells = cells[cells["seed"] == cells.groupby(CELL)["seed"].transform("min")]
    best = cells.sort_values(["f1_median", "f1_iqr"], ascending=[False, True], kind="stable").groupby(CELL).head(1)
    return best.sort_values(CELL, kind="stable").reset_index(drop=True)
