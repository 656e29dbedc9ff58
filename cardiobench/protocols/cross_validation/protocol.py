"""The answering protocol: sizes x classifiers, each a result of its own."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data.ecg_subsets import SIZES, SizeName, draw_subset
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.cross_validation.cells import Folded, flat, median_and_iqr, nested
from cardiobench.protocols.cross_validation.classifiers import CLASSIFIERS, ClassifierName, classifier
from cardiobench.protocols.cross_validation.folds import balanced_folds
from cardiobench.protocols.cross_validation.grids import GRIDS, Grids, described, points, read_grids
from cardiobench.protocols.options import Folds


@dataclass(frozen=True)
class CrossValidation(PredictionProtocol):
    """Five classifiers at four sizes, in class-balanced, patient-grouped folds (arXiv:2601.21830).

    A variant is `<size>.<classifier>`. The records are drawn by `data.ecg_subsets` from all splits, half of them
    positive. Each record is answered by a model that never saw its patient; these answers are scored like any others, and
    the folds' median F1 with its interquartile range stands in the details. The pooling is the encoder's.

    Attributes:
        sizes: XS, S, M, L.
        classifiers: of `CLASSIFIERS`.
        grids: classifier -> parameter -> values.
        folds: that are answered.
        inner: folds of the grid search inside each.
        search: "nested" inside each fold, or "flat": the best point on the very folds that are reported.
        grouped: keep all records of a patient in one fold.
        one_a_patient: draw one record of a patient at most.
        seed: of the draw, the folds and the classifiers.
    """

    sizes: tuple[SizeName, ...] = tuple(SIZES)
    classifiers: tuple[ClassifierName, ...] = CLASSIFIERS
    grids: Grids = field(default_factory=lambda: GRIDS)
    folds: Folds = 15
    inner: Folds = 3
    search: Literal["nested", "flat"] = "nested"
    grouped: bool = True
    one_a_patient: bool = True
    seed: int = 0

    name = "cross_validation"
    runs_in_parallel = True  # each variant is work of its own, to be shipped to where there are cores

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide; `--profile paper`: flat search, records instead of patients."""
        given: dict[str, Any] = {"seed": config.seed}
        if config.profile == "paper":
            given |= {"search": "flat", "grouped": False, "one_a_patient": False}
        if config.sizes:
            given["sizes"] = config.sizes
        if config.classifiers:
            given["classifiers"] = config.classifiers
        if config.grids:
            given["grids"] = read_grids(config.grids)
        return given

    def plan_lines(self) -> list[str]:
        """What is searched, line by line, for the plan."""
        search = f"{self.search} search" + (f" in {self.inner} inner folds" if self.search == "nested" else "")
        kind = "patient-grouped" if self.grouped else "ungrouped"
        chosen = {name: self.grids[name] for name in self.classifiers}
        return [f"{self.folds} class-balanced, {kind} folds, {search}", *described(chosen)]

    def variants(self, task: Task) -> tuple[str, ...]:
        """A size and a classifier each; one alone, which says that it does not apply, for a task without two classes."""
        if task.kind != "binary":
            return ("",)
        return tuple(f"{size}.{name}" for size in self.sizes for name in self.classifiers)

    def check(self, task: Task) -> None:
        """Refuse a task before any of its cells is shipped; `NotApplicable` says why."""
        if task.kind != "binary":
            raise NotApplicable(f"{task.name} is a {task.kind} task; these folds are balanced between two classes")

    def select_rows(self, rows: pd.DataFrame, task: Task, variant: str) -> pd.DataFrame:
        """The rows that a variant needs, so that no other embedding is read."""
        self.check(task)
        references = rows[["id", "patient_id"]].assign(y_true=rows[task.target])
        subset = draw_subset(references, task, variant.partition(".")[0], self.seed, one_a_patient=self.one_a_patient)
        return subset.rows(rows)

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Out-of-fold probabilities of the records of a size."""
        size, _, name = variant.partition(".")
        rows = self.select_rows(data.rows, data.task, variant)
        lines = np.flatnonzero(data.rows["id"].isin(rows["id"]))
        with threadpool_limits(1):  # one core a cell, and so the same sums everywhere
            found = self.answer(name, data.features[lines], data.labels[lines], data.patients[lines])
        details = {"size": size, "classifier": name, "records": len(lines), **summary(found)}
        details["grid"] = {key: list(values) for key, values in self.grids[name].items()}
        return ProtocolOutput(lines, found.probabilities, details, out_of_fold=True)

    def answer(self, name: str, features: np.ndarray, labels: np.ndarray, patients: np.ndarray) -> Folded:
        """One classifier in all folds."""
        outer = balanced_folds(labels, patients, self.folds, self.seed, grouped=self.grouped)
        grid = points(self.grids[name])
        if self.search == "flat":
            return flat(classifier(name), features, labels, outer, grid, seed=self.seed)
        return nested(
            classifier(name),
            features,
            labels,
            patients,
            outer,
            grid,
            inner=self.inner,
            seed=self.seed,
            grouped=self.grouped,
        )


def summary(found: Folded) -> dict[str, Any]:
    """The numbers of the folds, and which points were chosen how often."""
    numbers: dict[str, Any] = {}
    for key in ("f1", "f1_macro", "auroc"):
        values = getattr(found, key)
        numbers[f"{key}_median"], numbers[f"{key}_iqr"] = median_and_iqr(values)
        numbers[f"{key}_folds"] = values.tolist()
    counts: dict[str, int] = {}
    for point in found.chosen:
        text = ", ".join(f"{key}={value}" for key, value in point.items())
        counts[text] = counts.get(text, 0) + 1
    return {**numbers, "chosen": dict(sorted(counts.items(), key=lambda pair: -pair[1]))}
