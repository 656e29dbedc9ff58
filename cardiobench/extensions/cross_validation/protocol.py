"""Cross-validate classifiers at several sample sizes, each with a separate result."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.core.setting import Seed
from cardiobench.data.ecg_subsets import SIZES, SizeName, draw_subset
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData, Workload
from cardiobench.protocols.cut import cut_facts
from cardiobench.protocols.grid_search.classifiers import CLASSIFIERS, ClassifierName, classifier
from cardiobench.protocols.grid_search.folds import Split, balanced_folds
from cardiobench.protocols.grid_search.grids import GRIDS, Grid, Grids, grid_lines, param_grid
from cardiobench.protocols.grid_search.search import FoldScores, flat_search, median_and_iqr, nested_search
from cardiobench.protocols.options import Folds

COMPONENT = "protocol cross_validation"
VERSION = 3

BEST = "best"
"""Replaces the classifier name in a variant: `XS.best`."""
# CPU seconds per cell with the default grids on one x86-64 core: geometric mean of 106 records x 200 and 300 x 384,
# accurate to a factor of two. Only ratios are used, and only until one cell of the classifier is finished.
UNIT_COSTS = {"xgboost": 34.0, "forest": 51.0, "mlp": 43.0, "tree": 3.0, "logistic": 2.0}


@dataclass(frozen=True)
class CrossValidation(PredictionProtocol):
    """Cross-validate five classifiers at four sizes in class-balanced, patient-grouped folds (arXiv:2601.21830).

    A variant is `<size>.<classifier>`; `<size>.best` uses the classifier selected in the inner folds.
    `data.ecg_subsets` draws the records from all splits, half of them positive. Each record is predicted by a model
    that has not seen its patient, and scored in the usual way. The details contain the median F1 over folds and its
    interquartile range.

    Attributes:
        sizes: Subset sizes: XS, S, M or L.
        classifiers: Classifier names from `CLASSIFIERS`.
        grids: Mapping from classifier to parameter grid.
        folds: Number of outer folds.
        inner: Number of inner folds of the grid search.
        search: Grid search, "nested" in each fold or "flat"; the flat search selects parameters on the reported folds.
        grouped: Whether to keep all records of a patient in one fold.
        one_a_patient: Whether to draw at most one record per patient.
        seed: Random seed of sampling, folds and classifiers.
    """

    sizes: tuple[SizeName, ...] = tuple(SIZES)
    classifiers: tuple[ClassifierName, ...] = CLASSIFIERS
    grids: Grids = field(default_factory=lambda: GRIDS)
    folds: Folds = 15
    inner: Folds = 3
    search: Literal["nested", "flat"] = "nested"
    grouped: bool = True
    one_a_patient: bool = True
    seed: Seed = 0

    name = "cross_validation"
    out_of_fold = True
    headline_rank = 2
    selecting_options = frozenset({"sizes", "classifiers"})
    runs_in_parallel = True  # Each variant is a separate job, which can run on another machine.

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return options that depend on the run settings."""
        return {"seed": config.seed}

    def plan_lines(self) -> list[str]:
        """Describe the folds and the grid of each classifier."""
        search = f"{self.search} search" + (f" in {self.inner} inner folds" if self.search == "nested" else "")
        kind = "patient-grouped" if self.grouped else "ungrouped"
        grids: dict[str, Grid] = {name: self.grids[name] for name in self.classifiers}
        return [f"{self.folds} class-balanced, {kind} folds, {search}", *grid_lines(grids)]

    def variants(self, task: Task) -> tuple[str, ...]:
        """Return all `<size>.<classifier>` variants, or one placeholder for a task that does not apply."""
        if not task.rules.two_classes:
            return ("",)
        return tuple(f"{size}.{name}" for size in self.sizes for name in self.classifiers)

    def result_variants(self, task: Task) -> tuple[str, ...]:
        """Return all variants, including the best classifier at each size."""
        variants = self.variants(task)
        return (*variants, *dict.fromkeys(f"{name.partition('.')[0]}.{BEST}" for name in variants if name))

    def workload(self, variant: str, records: int | None = None) -> Workload | None:
        """Return the relative cost of a variant, or None for the best classifier."""
        size, _, name = variant.partition(".")
        if name not in UNIT_COSTS:
            return None
        rank = list(SIZES).index(cast(SizeName, size))
        return Workload(name, rank, UNIT_COSTS[name] * (max_records(size) if records is None else records))

    def check(self, task: Task) -> None:
        """Reject tasks that are not binary."""
        if not task.rules.two_classes:
            raise NotApplicable(f"{task.name} is a {task.kind} task; these folds are balanced between two classes")

    def select_rows(self, rows: pd.DataFrame, task: Task, variant: str) -> pd.DataFrame:
        """Draw the records for a subset size."""
        self.check(task)
        references = rows[["id", "patient_id"]].assign(y_true=rows[task.target])
        size = variant.partition(".")[0]
        return draw_subset(references, task, size, self.seed, one_a_patient=self.one_a_patient).rows(rows)

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the records of a subset out of fold."""
        size, _, name = variant.partition(".")
        rows = self.select_rows(data.rows, data.task, variant)
        indices = np.flatnonzero(data.rows["id"].isin(rows["id"]))
        with threadpool_limits(1):  # Use one core per cell, so that sums do not depend on the number of threads.
            features = data.features[indices].astype(np.float64)
            scores = self.cross_validate(name, features, data.labels[indices], data.patients[indices])
        details = {"size": size, "classifier": name, "records": len(indices), **summary(scores)}
        details["grid"] = {key: list(values) for key, values in self.grids[name].items()}
        folds = np.empty(len(indices), dtype=np.int64)
        for number, (_, held) in enumerate(self.outer_folds(data.labels[indices], data.patients[indices])):
            folds[held] = number
        cut = None
        if scores.cuts is not None:
            cut = np.asarray(scores.cuts)[folds]
            details |= {
                "cut": [cut_facts(weights, data.task) for weights in scores.cuts],
                "cut_chosen_on": "inner folds",
            }
        return ProtocolOutput(
            indices, scores.probabilities, details, out_of_fold=self.out_of_fold, folds=folds, cut=cut
        )

    def cross_validate(self, name: str, features: np.ndarray, labels: np.ndarray, patients: np.ndarray) -> FoldScores:
        """Tune a classifier and predict the held-out records of each fold.

        Args:
            name: Name of the classifier.
            features: Embeddings, (n, d).
            labels: Class codes, (n,).
            patients: Patient of each row, shape (n,).
        """
        outer = self.outer_folds(labels, patients)
        params = param_grid(self.grids[name])
        if self.search == "flat":
            return flat_search(classifier(name), features, labels, outer, params, seed=self.seed)
        return nested_search(
            classifier(name),
            features,
            labels,
            patients,
            outer,
            params,
            inner=self.inner,
            seed=self.seed,
            grouped=self.grouped,
        )

    def outer_folds(self, labels: np.ndarray, patients: np.ndarray) -> list[Split]:
        """Return folds that are shared by all classifiers."""
        return balanced_folds(labels, patients, self.folds, self.seed, grouped=self.grouped)


def max_records(size: str) -> int:
    """Return the allowed number of records; a size without a maximum uses twice its minimum."""
    least, most = SIZES[cast(SizeName, size)]
    return most or 2 * least


def summary(scores: FoldScores) -> dict[str, Any]:
    """Return fold scores and the number of times each parameter combination was selected."""
    numbers: dict[str, Any] = {}
    for key, values in (("f1", scores.f1), ("f1_macro", scores.f1_macro), ("auroc", scores.auroc)):
        numbers[f"{key}_median"], numbers[f"{key}_iqr"] = median_and_iqr(values)
        numbers[f"{key}_folds"] = values.tolist()
    if scores.f1_inner is not None:
        numbers["f1_inner_folds"] = scores.f1_inner.tolist()
    counts = Counter(", ".join(f"{key}={value}" for key, value in params.items()) for params in scores.best_params)
    return {**numbers, "chosen": dict(counts.most_common())}
