"""Tables 3 and 4 of arXiv:2601.21830, laid out as published, with the published numbers beside ours."""

from collections.abc import Sequence

import pandas as pd

from cardiobench.data.ecg_subsets import SIZES
from cardiobench.report.cells import SETTING, best_cells
from cardiobench.report.contamination import contamination
from cardiobench.report.published import published
from cardiobench.report.record import Record
from cardiobench.report.result import Result
from cardiobench.report.sensitivity import order_changes

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
NOTE = (
    "ours (published); * the dataset is in the model's pretraining data, ~ generated recordings, which are no match for a "
    "published number; F1 is that of the positive class, for which an answer of always positive reaches 0.67"
)


def tables(results: Sequence[Result], records: Sequence[Record]) -> dict[str, pd.DataFrame]:
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

    The heading of a column holds its largest interquartile range, as the paper prints it.

    Args:
        best: cells as `report.cells.best_cells` gives them.
    """
    if best.empty:
        return pd.DataFrame()
    columns = {}
    for model in _in_order(best["model"], MODELS):
        for label in _in_order(best["label"], LABELS):
            own = best[(best["model"] == model) & (best["label"] == label)]
            if len(own):
                name = f"{MODELS.get(model, model)} {label.upper()} (IQR ≤ {own['f1_iqr'].max():.2f})"
                columns[name] = {(row.dataset, row.size): _cell_3(row) for row in own.itertuples()}
    places = [
        (dataset, size)
        for dataset in _in_order(best["dataset"], DATASETS)
        for size in SIZES
        if ((best["dataset"] == dataset) & (best["size"] == size)).any()
    ]
    return pd.DataFrame(
        [
            {"dataset": dataset, "size": size}
            | {name: cells.get((dataset, size), "–") for name, cells in columns.items()}
            for dataset, size in places
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


def table_4(records: Sequence[Record]) -> pd.DataFrame:
    """Neighbours, centroids and clusters by label and by dataset, a row a model, a column a level, measure and label."""
    found: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.protocol == "representation" and record.subject in LABELS and len(record.models) == 1:
            found.setdefault(record.models[0]["name"], {}).setdefault(record.subject, record)
    rows = []
    for model in _in_order(list(found), MODELS):
        row = {"model": MODELS.get(model, model)}
        for level in LEVELS:
            for measure, title in MEASURES.items():
                for label in LABELS:
                    record = found[model].get(label)
                    name = f"{level} level, {title}, {label.upper()}"
                    row[name] = _cell_4(record, f"{measure}_{level}", model) if record else "–"
        rows.append(row)
    return pd.DataFrame(rows)


def _cell_3(row) -> str:
    theirs = printed_f1(row.model, row.dataset, row.label, row.size)
    return f"{_two(row.f1_median)}{'*' if row.seen else ''}{'~' if row.twin else ''}{_beside(theirs)}"


def _cell_4(record: Record, key: str, model: str) -> str:
    value = record.values[key].value if key in record.values else float("nan")
    marks = ("*" if any(record.seen_in_pretraining.values()) else "") + (
        "~" if any(dataset.get("twin") for dataset in record.datasets) else ""
    )
    ours = "–" if pd.isna(value) else _two(value) + marks
    return ours + _beside(_printed(record.subject, model, key))


def _printed(task: str, model: str, metric: str, condition: str = "") -> float | None:
    for row in published(task):
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
