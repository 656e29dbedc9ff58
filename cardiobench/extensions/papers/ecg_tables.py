"""Reproduce Tables 3 and 4 of arXiv:2601.21830 with published and new scores."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from cardiobench.data.ecg_subsets import SIZES, SizeName
from cardiobench.extensions.papers.anchors import published_scores
from cardiobench.extensions.papers.contamination import contamination
from cardiobench.extensions.papers.ecg_cells import ALWAYS_POSITIVE, CELL, REPORTED, best_cells, is_of_patients
from cardiobench.extensions.papers.sensitivity import order_changes
from cardiobench.report.grid import NONE, Block, Grid, GridCell, mark_best
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.score_result import ScoreResult

MODELS = {
    "wanglab/ecg-fm": "ECG-FM",
    "PKUDigitalHealth/ECGFounder": "ECGFounder",
    "Edoardo-BS/hubert-ecg-small": "HuBERT-ECG small",
    "Edoardo-BS/hubert-ecg-base": "HuBERT-ECG base",
    "Edoardo-BS/hubert-ecg-large": "HuBERT-ECG large",
    "kweimann/ECG-JEPA": "ECG-JEPA",
}
"""Mapping from model to name in the paper, in the order of the paper."""

DATASETS = ("ptb_xl", "code15", "georgia", "chapman_ningbo")
LABELS = {"cd_paper": "CD", "af_paper": "AF", "cd": "CD, this benchmark's codes", "af": "AF, this benchmark's codes"}
"""Mapping from label to title; only the published definitions, listed first, have published scores."""
PUBLISHED_LABELS = ("cd_paper", "af_paper")
SAME_RECORDS = {"ptb_xl_500": "ptb_xl"}
"""Mapping from dataset to the dataset of the paper with the same records."""

TOO_FEW, TOO_FEW_AT = ("chapman_ningbo", "cd_paper"), ("S", "M")
"""Dataset, label and sizes with published scores that the published codes cannot give."""
CHAPMAN_CD = 247
"""Records of Chapman with a code of conduction disturbance in Table 2 of the paper."""
MEASURES = {"knn_agreement": "kNN@10", "centroid_separation": "centroid distance", "ari": "ARI"}
SAME_FORMULA = ("ari",)
"""Measures with the same formula as in the paper; other published measures have separate columns."""
LEVELS = ("label", "dataset")
NOTE = (
    "ours (published), or only (published) if we have no score; * the dataset is in the model's pretraining data, "
    "F1 is for the positive class; a constant "
    "positive answer reaches 0.67. Among our scores, bold marks the best and underlining the second"
)


def ecg_grids(best: pd.DataFrame, records: Sequence[AnalysisResult]) -> list[Grid]:
    """Return Tables 3 and 4 if there are new results for them.

    Args:
        best: Cells from `best_cells`.
        records: Records of `representation`.
    """
    return [grid for grid in (table_3(best), table_4(records)) if grid is not None]


def ecg_numbers(results: Sequence[ScoreResult], records: Sequence[AnalysisResult]) -> dict[str, pd.DataFrame]:
    """Return the values in the tables and additional analyses; tables without rows are omitted.

    Returns:
        Mapping with `ecg_table_3_cells` (best cells and published scores), `ecg_contamination` (scores by pretraining
        exposure) and `ecg_sensitivity` (rank changes due to choices that the paper leaves open).
    """
    best = best_cells(results)
    tables = {
        "ecg_table_3_cells": with_published(best),
        "ecg_contamination": contamination(best, group=["label", "size"]),
        "ecg_sensitivity": order_changes(results, records),
    }
    return {name: table for name, table in tables.items() if len(table)}


def table_3(best: pd.DataFrame) -> Grid | None:
    """Return median F1 over folds of the best classifier, by dataset and size (rows), model and label (columns).

    Column headings contain the largest interquartile range, as in the paper. Cells that only the paper has are in
    brackets: models that were not run have columns named "published", datasets that were not run have separate rows.
    """
    if best.empty:
        return None
    ours = {tuple(getattr(row, name) for name in CELL): row for row in best.itertuples()}
    represented = {SAME_RECORDS.get(name, name) for name in best["dataset"]}
    datasets = _in_order([*best["dataset"], *(name for name in DATASETS if name not in represented)], DATASETS)
    models, labels = (
        _in_order([*best["model"], *MODELS], MODELS),
        _in_order([*best["label"], *PUBLISHED_LABELS], LABELS),
    )
    rows = [(dataset, size) for dataset in datasets for size in SIZES]
    columns: dict[str, list[GridCell]] = {}
    label_of: list[str] = []
    for model, label in ((model, label) for model in models for label in labels):
        cells = []
        for dataset, size in rows:
            row = ours.get((model, dataset, label, size))
            marks = "*" * bool(row.seen) + "^" * row.choice.startswith(REPORTED) if row else ""
            theirs = published_f1(model, dataset, label, size)
            cell = _cell(row.f1_median if row else math.nan, marks, theirs)
            too_few = (dataset, label) == TOO_FEW and size in TOO_FEW_AT and theirs is not None
            cells.append(replace(cell, text=f"{cell.text}‡") if too_few else cell)
        own = best[(best["model"] == model) & (best["label"] == label)]
        if any(cell.text != NONE for cell in cells):
            spread = f"(IQR ≤ {own['f1_iqr'].max():.2f})" if len(own) else "published"
            columns[f"{MODELS.get(model, model)} {LABELS.get(label, label.upper())} {spread}"] = cells
            label_of.append(label)
    filled = [
        (f"{dataset} {size}{_records(best, dataset, size)}", _mark_by(label_of, cells))
        for (dataset, size), cells in zip(rows, zip(*columns.values(), strict=True), strict=True)
        if any(cell.text != NONE for cell in cells)
    ]
    constant = GridCell(f"{ALWAYS_POSITIVE:.2f}", ALWAYS_POSITIVE)
    floor = (("positive for everybody", (constant,) * len(columns)),)
    note = f"{NOTE} by label. A constant positive answer: its F1 if half of the records are positive, as here."
    note += (
        " n: our records, in brackets what the paper gives for the size. Its datasets hold 21,837 (PTX), 345,779 (C15), "
        "10,344 (GEO) and 10,247 (CHN) records."
    )
    note += (
        " Classifier and pooling are chosen inside each fold; ^ marks the best of several on the reported folds, as published, "
        "which is optimistic."
    )
    note += (
        f" ‡ Conduction disturbance in CHN at sizes {' and '.join(TOO_FEW_AT)} has published scores only: Chapman has {CHAPMAN_CD} "
        f"records with the codes of the paper's Table 2, enough for {2 * CHAPMAN_CD} balanced records, and these sizes need more."
    )
    title = "Table 3. Median F1 over 15 folds by dataset and size"
    return Grid("ecg_table_3", title, ("", *columns), (floor, tuple(filled)), note)


def _records(best: pd.DataFrame, dataset: str, size: SizeName) -> str:
    """Return our number of records in a row of Table 3 and the paper's range for the size."""
    least, most = SIZES[size]
    published = f"{least}-{most}" if most else f"{least} or more"
    counts = best.loc[(best["dataset"] == dataset) & (best["size"] == size), "records"]
    ours = "-".join(str(count) for count in dict.fromkeys((counts.min(), counts.max()))) if len(counts) else NONE
    return f", n = {ours} ({published})"


def _mark_by(groups: Sequence[str], cells: Iterable[GridCell]) -> tuple[GridCell, ...]:
    """Mark the best and second-best cells of each group."""
    marked = list(cells)
    for group in set(groups):
        places = [place for place, name in enumerate(groups) if name == group]
        for place, cell in zip(places, mark_best([marked[place] for place in places], True), strict=True):
            marked[place] = cell
    return tuple(marked)


def table_4(records: Sequence[AnalysisResult]) -> Grid | None:
    """Return neighbours, centroids and clusters by model (rows), level, measure and label (columns)."""
    ours: dict[str, dict[str, AnalysisResult]] = {}
    for record in records:
        if record.protocol == "representation" and record.subject in LABELS and is_of_patients(record):
            ours.setdefault(record.models[0]["name"], {}).setdefault(record.subject, record)
    if not ours:
        return None
    models = _in_order([*ours, *MODELS], MODELS)
    labels = [
        label for label in LABELS if label in PUBLISHED_LABELS or any(label in of_model for of_model in ours.values())
    ]
    columns: dict[str, tuple[GridCell, ...]] = {}
    for level in LEVELS:
        for measure, title in MEASURES.items():
            for label in labels:
                key, name = f"{measure}_{level}", f"{level} level, {title}, {LABELS[label]}"
                published = [_published(label, model, key) for model in models]
                same = measure in SAME_FORMULA
                cells = [
                    _analysis_cell(ours.get(model, {}).get(label), key, value if same else None)
                    for model, value in zip(models, published, strict=True)
                ]
                # Higher is better by label; by dataset, the paper states no direction.
                columns[name] = tuple(mark_best(cells, True) if level == "label" else cells)
                if not same and any(value is not None for value in published):
                    columns[f"{name}, published, formula not stated"] = tuple(
                        _cell(math.nan, "", value) for value in published
                    )
    names = [MODELS.get(model, model) + ("" if model in ours else ", published") for model in models]
    rows: Block = tuple(zip(names, zip(*columns.values(), strict=True), strict=True))
    note = f"{NOTE} in the columns by label."
    return Grid("ecg_table_4", "Table 4. Neighbours, centroids and clusters", ("", *columns), (rows,), note)


def _analysis_cell(record: AnalysisResult | None, key: str, published: float | None) -> GridCell:
    value, marks = math.nan, ""
    if record is not None:
        value = record.values[key].value if key in record.values else math.nan
        marks = "*" * any(record.seen_in_pretraining.values())
    cell = _cell(value, marks, published)
    missing = record is not None and math.isnan(value)
    return GridCell(f"{NONE} {cell.text}") if missing and cell.text != NONE else cell


def _cell(value: float, marks: str, published: float | None) -> GridCell:
    """Return our marked score and the published score in brackets."""
    theirs = "" if published is None else f"({_two(published)})"
    if math.isnan(value):
        return GridCell(theirs) if theirs else GridCell()
    return GridCell(f"{_two(value)}{marks} {theirs}".strip(), round(value, 2))


def with_published(best: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the published median F1 and the difference (ours minus published)."""
    if best.empty:
        return best
    published = [published_f1(row.model, row.dataset, row.label, row.size) for row in best.itertuples()]
    return best.assign(published=published, difference=best["f1_median"] - pd.array(published, dtype="Float64"))


def published_f1(model: str, dataset: str, label: str, size: str) -> float | None:
    """Return the score from the paper's Table 3, or None."""
    return _published(f"{SAME_RECORDS.get(dataset, dataset)}/{label}", model, "f1_median", f"15 folds, size {size}")


def _published(task: str, model: str, metric: str, condition: str = "") -> float | None:
    for row in published_scores(task):
        if (row.model, row.metric, row.condition) == (MODELS.get(model), metric, condition):
            return row.value
    return None


def _two(value: float) -> str:
    """Format with two decimals, without a sign if the value rounds to zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def _in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return unique names, known ones in their order, then others alphabetically."""
    order = {name: place for place, name in enumerate(known)}
    return sorted(set(names), key=lambda name: (order.get(name, len(order)), name))
