"""Tables 3 and 4 of arXiv:2601.21830, laid out as published, with the published numbers beside ours."""

from collections.abc import Sequence

import pandas as pd

from cardiobench.data.ecg_subsets import SIZES
from cardiobench.report.cells import SETTING, best_cells
from cardiobench.report.contamination import contamination
from cardiobench.report.sensitivity import order_changes
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.published import published_scores
from cardiobench.results.score_result import ScoreResult

MODELS = {
    "wanglab/ecg-fm": "ECG-FM",
    "PKUDigitalHealth/ECGFounder": "ECGFounder",
    "Edoardo-BS/hubert-ecg-small": "HuBERT-ECG small",
    "Edoardo-BS/hubert-ecg-base": "HuBERT-ECG base",
    "Edoardo-BS/hubert-ecg-large": "HuBERT-ECG large",
    "kweimann/ECG-JEPA": "ECG-JEPA",
}
"""Model -> its name in the paper, in the paper's order."""

DATASETS = ("ptb_xl", "code15", "georgia", "chapman_ningbo")
LABELS = ("cd", "af")
SAME_RECORDS = {"ptb_xl_500": "ptb_xl"}
"""Dataset -> the one of the paper that holds the same records."""

MEASURES = {"knn_agreement": "kNN@10", "centroid_separation": "centroid distance", "ari": "ARI"}
LEVELS = ("label", "dataset")
NONE = "–"
NOTE = (
    "ours (published), or (published) alone where there is none of ours; * the dataset is in the model's pretraining data, "
    "~ generated recordings, which are no match for a published number; F1 is that of the positive class, for which an answer of always positive reaches 0.67"
)


def tables(results: Sequence[ScoreResult], records: Sequence[AnalysisResult]) -> dict[str, pd.DataFrame]:
    """Every table of the ECG paper that these results and records can fill, and what the paper leaves out.

    Returns:
        `ecg_table_3` and `ecg_table_4` as published, text rounded to two decimals, `NOTE` says how to read it;
        `ecg_table_3_cells` behind the first, numbers as they are; `ecg_contamination`: scores by whether the model saw the
        dataset; `ecg_sensitivity`: how often the order of the models changes with a choice that the paper leaves open.
        A table without a row is left out.
    """
    best = best_cells(results)
    found = {
        "ecg_table_3": table_3(best),
        "ecg_table_3_cells": with_published(best),
        "ecg_table_4": table_4(records),
        "ecg_contamination": contamination(best, group=SETTING),
        "ecg_sensitivity": order_changes(results, records),
    }
    return {name: table for name, table in found.items() if len(table)}


def table_3(best: pd.DataFrame) -> pd.DataFrame:
    """Median F1 over folds of the best classifier, a row a dataset and size, a column a model and label.

    The heading of a column holds its largest interquartile range, as the paper prints it. What the paper has and we have
    not stands in brackets: a model that was not run has columns called published, a dataset that was not run rows.

    Args:
        best: cells as `report.cells.best_cells` gives them.
    """
    if best.empty:
        return pd.DataFrame()
    ours = {(row.model, row.label, row.dataset, row.size): row for row in best.itertuples()}
    known = set(best["dataset"])
    represented = {SAME_RECORDS.get(name, name) for name in known}
    datasets = _in_order([*known, *(name for name in DATASETS if name not in represented)], DATASETS)
    columns = {}
    for model in _in_order([*best["model"], *MODELS], MODELS):
        for label in _in_order([*best["label"], *LABELS], LABELS):
            cells = {
                (dataset, size): _cell_3(ours.get((model, label, dataset, size)), model, label, dataset, size)
                for dataset in datasets
                for size in SIZES
            }
            own = best[(best["model"] == model) & (best["label"] == label)]
            if any(text != NONE for text in cells.values()):
                spread = f"(IQR ≤ {own['f1_iqr'].max():.2f})" if len(own) else "published"
                columns[f"{MODELS.get(model, model)} {label.upper()} {spread}"] = cells
    return pd.DataFrame(
        [
            {"dataset": dataset, "size": size} | {name: cells[dataset, size] for name, cells in columns.items()}
            for dataset in datasets
            for size in SIZES
            if any(cells[dataset, size] != NONE for cells in columns.values())
        ]
    )


def with_published(best: pd.DataFrame) -> pd.DataFrame:
    """The cells with the published median F1 of the same model, dataset, label and size, and ours minus that."""
    if best.empty:
        return best
    theirs = [printed_f1(row.model, row.dataset, row.label, row.size) for row in best.itertuples()]
    return best.assign(published=theirs, difference=best["f1_median"] - pd.array(theirs, dtype="Float64"))


def printed_f1(model: str, dataset: str, label: str, size: str) -> float | None:
    """The number of Table 3; None where the paper has none."""
    task = f"{SAME_RECORDS.get(dataset, dataset)}/{label}"
    condition = f"15 folds, size {size}"
    return _printed(task, model, "f1_median", condition)


def table_4(records: Sequence[AnalysisResult]) -> pd.DataFrame:
    """Neighbours, centroids and clusters by label and by dataset, a row a model, a column a level, measure and label."""
    found: dict[str, dict[str, AnalysisResult]] = {}
    for record in records:
        if record.protocol == "representation" and record.subject in LABELS and len(record.models) == 1:
            found.setdefault(record.models[0]["name"], {}).setdefault(record.subject, record)
    if not found:
        return pd.DataFrame()
    rows = []
    for model in _in_order([*found, *MODELS], MODELS):
        own = found.get(model)
        row = {"model": MODELS.get(model, model) + ("" if own else ", published")}
        for level in LEVELS:
            for measure, title in MEASURES.items():
                for label in LABELS:
                    key = f"{measure}_{level}"
                    cell = _cell_4(own.get(label), label, key, model) if own else _published_4(label, key, model)
                    row[f"{level} level, {title}, {label.upper()}"] = cell
        rows.append(row)
    return pd.DataFrame(rows)


def _cell_3(row, model: str, label: str, dataset: str, size: str) -> str:
    theirs = _beside(printed_f1(model, dataset, label, size))
    if row is None:
        return theirs.strip() or NONE
    return f"{_two(row.f1_median)}{'*' if row.seen else ''}{'~' if row.twin else ''}{theirs}"


def _cell_4(record: AnalysisResult | None, label: str, key: str, model: str) -> str:
    if record is None:
        return _published_4(label, key, model)
    value = record.values[key].value if key in record.values else float("nan")
    marks = ("*" if any(record.seen_in_pretraining.values()) else "") + (
        "~" if any(dataset.get("twin") for dataset in record.datasets) else ""
    )
    ours = NONE if pd.isna(value) else _two(value) + marks
    return ours + _beside(_printed(label, model, key))


def _published_4(label: str, key: str, model: str) -> str:
    return _beside(_printed(label, model, key)).strip() or NONE


def _printed(task: str, model: str, metric: str, condition: str = "") -> float | None:
    for row in published_scores(task):
        if (row.model, row.metric, row.condition) == (MODELS.get(model), metric, condition):
            return row.value
    return None


def _two(value: float) -> str:
    """Two decimals; what rounds to zero has no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def _beside(value: float | None) -> str:
    return "" if value is None else f" ({_two(value)})"


def _in_order(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The names once each: the known ones in their order, then the others by name."""
    order = list(known)
    return sorted(set(names), key=lambda name: (order.index(name) if name in order else len(order), name))
