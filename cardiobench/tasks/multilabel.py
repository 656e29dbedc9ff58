"""Multilabel classification: any number of the classes per unit, none included."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import first_n
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import Breakdown, ClassScore, Estimate
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.estimates import score_classes
from cardiobench.tasks.floors import EVEN
from cardiobench.tasks.groups import MIN_PER_CLASS, breakdowns, comparable_classes
from cardiobench.tasks.labels import (
    allowed_names,
    label_cells,
    label_names,
    label_set,
    multi_hot,
    split_labels,
    unmeasured_column,
)
from cardiobench.tasks.tables import ClassKind, ScoredTable
from cardiobench.tasks.task import LABEL_SEPARATOR, UNMEASURED, Task, metrics_of

OF_DECISIONS = "multilabel_f1"
"""Ranking metric of answers without probabilities."""
WIDE, Z = 2, 1.96
"""An interval is wide below if its lower part is longer than twice the upper part and twice `Z` standard errors."""


class ScoredLabels(ScoredTable):
    """Rows with any number of classes each, and optional probabilities."""

    def ranking(self, metrics: Sequence[Metric]) -> tuple[Sequence[Metric], Metric, str]:
        """Return the first metric, or without probabilities the first one that does not need them."""
        if self.sampler.sample.probabilities is not None:
            return super().ranking(metrics)
        kept = [metric for metric in metrics if not metric.needs_probabilities] or [load_metric(OF_DECISIONS)]
        return super().ranking(kept)

    def per_class(self) -> dict[str, ClassScore]:
        """Return the scores of each class against its absence; none without probabilities."""
        return self._per_class

    @cached_property
    def _per_class(self) -> dict[str, ClassScore]:
        return {} if self.sampler.sample.probabilities is None else score_classes(self.sampler, self.task.classes)

    def sentences(self, estimate: Estimate) -> list[str]:
        """Return sentences about classes with few patients, reasons for a missing interval, and for one that is wide below."""
        wide = self.wide_below(estimate)
        return [*super().sentences(estimate), *([wide] if wide else [])]

    def wide_below(self, estimate: Estimate) -> str:
        """Return why the interval of a mean AUROC is far wider below than above; empty if it is not.

        The interval of a class with few patients is long below, because they show little of what an AUROC near 1 may
        lose. The standard error is that of the mean over test sets, which such classes hardly change.
        """
        below, above = estimate.value - estimate.low, estimate.high - estimate.value
        if estimate.method != "class_mean" or not self._per_class or not below > WIDE * max(above, Z * estimate.se):
            return ""
        known = [one for one in self._per_class.values() if not math.isnan(one.auroc.low)]
        arms = np.array([(one.auroc.value - one.auroc.low) ** 2 for one in known])
        few = np.array([one.patients < MIN_PATIENTS for one in known])
        return (
            f"the interval of {self.key} is wide below, because {few.sum()} of {len(known)} classes have fewer than "
            f"{MIN_PATIENTS} patients: the intervals of these classes make {100 * arms[few].sum() / arms.sum():.0f} % of the "
            f"squared distance to its lower end, while the standard error of {self.number(self.key).difference(estimate.se, self.task.unit)} only describes how the mean "
            "varies between test sets"
        )

    def breakdowns(
        self, rows: Mapping[str, Mapping[str, np.ndarray]], skipped: dict[str, str]
    ) -> tuple[dict[str, Breakdown], list[str]]:
        """Score the groups of each breakdown over the classes that have enough patients with and without them in every group."""
        found: dict[str, Breakdown] = {}
        notes = []
        for name, groups in rows.items():
            chosen = comparable_classes(self.sampler, groups)
            if not chosen.any():
                skipped[name] = f"no class that {MIN_PER_CLASS} patients of each group have and {MIN_PER_CLASS} lack"
                continue
            found |= breakdowns(self.metric, self.key, self.sampler.take_classes(chosen), {name: groups})
            notes.append(
                f"scores by {name} are over {chosen.sum()} of {len(chosen)} classes, which {MIN_PER_CLASS} patients of "
                "each group have"
            )
        return found, notes

    def class_sentences(self) -> list[str]:
        """Return sentences about classes with few patients, and classes left out of the mean."""
        classes, truth, clusters = np.array(self.task.classes), self.sampler.sample.y_true, self.sampler.clusters
        with_it, without = (np.array([clusters.count_in(column == value) for column in truth.T]) for value in (1, 0))
        scored = (with_it > 0) & (without > 0)
        sentences = []
        if self.sampler.sample.probabilities is None:
            wanted = [one for one in metrics_of(self.task) if load_metric(one).needs_probabilities]
            sentences.append(f"decisions without probabilities: no {', '.join(wanted)}, and ranked by {self.key}")
        if len(rare := classes[scored & (with_it < MIN_PATIENTS)]):
            sentences.append(
                f"fewer than {MIN_PATIENTS} patients with {len(rare)} of the {len(classes)} classes: {first_n(rare)}"
            )
        if len(absent := classes[~scored]):
            sentences.append(
                f"left out of the mean, because no scored row or every scored row has it: {first_n(absent)}"
            )
        return sentences


class Multilabel(ClassKind):
    """Rules of a task with a separate answer for each of its classes."""

    answer = "labels"
    formulas = ("classification_report",)
    link = "sigmoid"
    empty_label = True
    table = ScoredLabels

    def check_task(self, task: Task) -> None:
        """Refuse a task with fewer than two different classes, or with names that are not allowed in a cell."""
        super().check_task(task)
        marked = [name for name in task.classes if LABEL_SEPARATOR in name or name.startswith(UNMEASURED)]
        if len(set(task.classes)) < max(2, len(task.classes)) or marked:
            raise ValueError(
                f"{task.name}: a multilabel task has two different classes or more, without '{LABEL_SEPARATOR}' and a "
                f"leading '{UNMEASURED}', got {task.classes}"
            )

    def label_values(self, cells: pd.Series, task: Task) -> np.ndarray:
        """Return the classes of each row, (n, K) float64: 1 where present, 0 where absent, NaN where unmeasured."""
        return multi_hot(cells, task.classes)

    def strange_labels(self, cells: Iterable[object], task: Task) -> list[str]:
        """Return the names in some cells that are not classes, or marked classes if the task does not allow them."""
        return sorted(label_names(str(cell) for cell in cells) - allowed_names(task))

    def each_class(self, cells: pd.Series) -> pd.Series:
        """Return the classes named in cells, one row each, including those marked as unmeasured."""
        return cells.str.split(LABEL_SEPARATOR).explode()

    def feature(self, task: Task) -> Any:
        """Return the type of a list of classes."""
        from datasets import Sequence

        return Sequence(super().feature(task))

    def stored_labels(self, cell: Any, task: Task) -> dict[str, list[str]]:
        """Return the list of present classes and, of a partially labelled task, that of unmeasured ones."""
        if pd.isna(cell):
            return {}
        present, unmeasured = split_labels(str(cell))
        return {task.target: present} | ({unmeasured_column(task): unmeasured} if task.partially_labelled else {})

    def restored_labels(self, frame: pd.DataFrame, task: Task) -> list[str | None]:
        """Return the cells of the two lists."""
        names, lacking = np.array(task.classes, dtype=object), [()] * len(frame)
        unmeasured = frame[unmeasured_column(task)] if task.partially_labelled else lacking
        return [
            None if present is None else label_set(names[list(present)], task.classes, names[list(unknown)])
            for present, unknown in zip(frame[task.target], unmeasured, strict=True)
        ]

    def reports(self, task: Task) -> tuple[str, ...]:
        """Return the mean areas under the curves, and the mean F1."""
        return ("auroc_macro", OF_DECISIONS)

    def compared(self, metric: Metric, samples: Sequence[ScoringInput]) -> Metric:
        """Return the mean F1 if one of the two has no probabilities and the metric needs them."""
        lacking = metric.needs_probabilities and any(sample.probabilities is None for sample in samples)
        return load_metric(OF_DECISIONS) if lacking else metric

    def decide(self, values: np.ndarray) -> np.ndarray:
        """Return 1 for each class with a probability of at least 0.5, else 0. The shape is (n, K)."""
        return (values >= EVEN).astype(np.float64)

    def named(self, answers: np.ndarray, task: Task) -> np.ndarray:
        """Return the cells of the classes that are given."""
        return label_cells(answers, task.classes)

    def errors(self, frame: pd.DataFrame, task: Task) -> pd.Series:
        """Return the mean distance of the probabilities, or of the answers, from the truth over measured classes, for wrong answers only."""
        sample = self.sample(frame, task)
        distance = np.abs(sample.scores - sample.y_true)
        measured = ~np.isnan(distance)
        error = np.nansum(distance, axis=1) / np.maximum(measured.sum(axis=1), 1)
        return pd.Series(error, index=frame.index).where(frame["y_true"] != frame["y_pred"], np.nan)
