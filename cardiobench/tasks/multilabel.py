"""Multilabel classification: any number of the classes per unit, none included."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, first_n
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import Breakdown, ClassScore
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.estimates import score_classes
from cardiobench.tasks.answers import check_classes, given_probabilities, probability_columns
from cardiobench.tasks.checks import check_probabilities
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
from cardiobench.tasks.task import LABEL_SEPARATOR, UNMEASURED, Task


class ScoredLabels(ScoredTable):
    """Rows with a probability for each class."""

    def per_class(self) -> dict[str, ClassScore]:
        """Return the scores of each class against its absence."""
        return score_classes(self.sampler, self.task.classes)

    def breakdowns(
        self, rows: Mapping[str, Mapping[str, np.ndarray]], skipped: dict[str, str]
    ) -> tuple[dict[str, Breakdown], list[str]]:
        """Score the groups of each breakdown over the classes that some patients of every group have and some have not."""
        found: dict[str, Breakdown] = {}
        notes = []
        for name, groups in rows.items():
            chosen = comparable_classes(self.sampler, groups)
            if not chosen.any():
                skipped[name] = (
                    f"no class that {MIN_PER_CLASS} patients of each group have and {MIN_PER_CLASS} have not"
                )
                continue
            found |= breakdowns(self.metric, self.key, self.sampler.take_classes(chosen), {name: groups})
            notes.append(
                f"scores by {name} are over {chosen.sum()} of {len(chosen)} classes, which {MIN_PER_CLASS} patients of "
                "each group have"
            )
        return found, notes

    def class_sentences(self) -> list[str]:
        """Return sentences on the classes that few patients have, and those left out of the mean."""
        classes, truth, clusters = np.array(self.task.classes), self.sampler.sample.y_true, self.sampler.clusters
        with_it, without = (np.array([clusters.count_in(column == value) for column in truth.T]) for value in (1, 0))
        scored = (with_it > 0) & (without > 0)
        sentences = []
        if len(rare := classes[scored & (with_it < MIN_PATIENTS)]):
            sentences.append(
                f"fewer than {MIN_PATIENTS} patients with {len(rare)} of the {len(classes)} classes: {first_n(rare)}"
            )
        if len(absent := classes[~scored]):
            sentences.append(f"left out of the mean, since no scored row has it or all have: {first_n(absent)}")
        return sentences


class Multilabel(ClassKind):
    """Rules of a task that asks for each of its classes by itself."""

    answer = "labels"
    link = "sigmoid"
    empty_label = True
    table = ScoredLabels

    def check_task(self, task: Task) -> None:
        """Refuse a task with fewer than two different classes, or with names that a cell cannot hold."""
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
        """Return the names among some cells that are no classes, nor classes marked as unmeasured where that may be."""
        return sorted(label_names(str(cell) for cell in cells) - allowed_names(task))

    def each_class(self, cells: pd.Series) -> pd.Series:
        """Return the classes that cells name, one row each, those marked as unmeasured among them."""
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
        """Return the mean areas under the curves."""
        return ("auroc_macro",)

    def check_answers(self, answers: pd.DataFrame, task: Task, source: str) -> None:
        """Refuse answers without probabilities, those outside [0, 1], and names that are no classes."""
        if not given_probabilities(answers, task, source):
            raise BadPredictions(
                f"{source} has no probabilities; {task.name} is ranked by them. Give a column for each class: "
                f"{', '.join(probability_columns(task))}; 1 and 0 where only the labels are known, as of people."
            )
        check_classes(answers, task, source)
        check_probabilities(answers, probability_columns(task), source, task.name)

    def sample(self, frame: pd.DataFrame, task: Task) -> ScoringInput:
        """Return the classes of each row with the probability of each class."""
        return ScoringInput(
            self.label_values(frame["y_true"], task), frame[probability_columns(task)].to_numpy(np.float64)
        )

    def cells(self, sample: ScoringInput, task: Task) -> dict[str, np.ndarray]:
        """Return the classes of at least 0.5, and all probabilities."""
        columns = dict(zip(probability_columns(task), sample.y_pred.T, strict=True))
        return {"y_pred": label_cells(sample.y_pred, task.classes), **columns}

    def errors(self, frame: pd.DataFrame, task: Task) -> pd.Series:
        """Return the mean distance of the probabilities from 0 and 1, over measured classes; of wrong answers alone."""
        sample = self.sample(frame, task)
        distance = np.abs(sample.y_pred - sample.y_true)
        measured = ~np.isnan(distance)
        error = np.nansum(distance, axis=1) / np.maximum(measured.sum(axis=1), 1)
        return pd.Series(error, index=frame.index).where(frame["y_true"] != frame["y_pred"], np.nan)

    def unit_answers(self, means: np.ndarray, task: Task) -> pd.DataFrame:
        """Return the probabilities of each unit, and the classes with a probability of at least 0.5."""
        frame = pd.DataFrame(means, columns=probability_columns(task))
        return frame.assign(y_pred=label_cells(means, task.classes))
