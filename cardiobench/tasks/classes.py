"""Binary and multiclass classification: one class per unit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.context import ABSENT_CLASS
from cardiobench.results.score_result import Estimate
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.estimates import Sampler
from cardiobench.tasks.answers import MOST_OUTSIDE, OTHER, OTHER_COLUMN, probability_columns, split_columns
from cardiobench.tasks.checks import SUM_TOLERANCE, check_probabilities, require
from cardiobench.tasks.scored import Patients
from cardiobench.tasks.tables import ClassKind, ScoredTable
from cardiobench.tasks.task import Task

ROUNDING = 1e-12
"""Relative tolerance between equal probabilities."""


def most_probable(probabilities: np.ndarray) -> np.ndarray:
    """Return the code of the most probable class, (n,): for ties the positive class of two, else the first.

    Probabilities that differ only by rounding are ties, so that a table with 0.5 and means that equal 0.5 agree.

    Args:
        probabilities: Probabilities, possibly weighted, shape (n, K).
    """
    if probabilities.shape[1] == 2:
        return (probabilities[:, 1] >= probabilities[:, 0] * (1 - ROUNDING)).astype(np.int64)
    return (probabilities >= probabilities.max(axis=1, keepdims=True) * (1 - ROUNDING)).argmax(axis=1)


class ScoredClasses(ScoredTable):
    """Rows with one class each."""

    COLLAPSED = "every answer is the same class"

    def ranking(self, metrics: Sequence[Metric]) -> tuple[Sequence[Metric], Metric, str]:
        """Return the first metric, or accuracy if the test set has a single class."""
        if not self.sampler.one_class:
            return super().ranking(metrics)
        report = load_metric("classification_report")
        return list(dict.fromkeys((*metrics, report))), report, "accuracy"

    def patients(self, sampler: Sampler) -> Patients:
        """Return the patients of some rows, and of those outside the most frequent class."""
        truth, found = sampler.sample.y_true, super().patients(sampler)
        if not len(truth):
            return found
        most = int(np.bincount(truth).argmax())
        others = sampler.clusters.effective_in(truth != most)
        return found._replace(others=others, frequent=self.task.classes[most])

    def group_classes(self) -> list[str]:
        """Return the classes of the whole test set."""
        return [name for name, here in zip(self.task.classes, self.sampler.present, strict=True) if here]

    def class_sentences(self) -> list[str]:
        """Return sentences about classes with few or no patients."""
        sentences, truth = [], self.answers.frame["y_true"].to_numpy()
        for name in self.task.classes:
            count = self.sampler.clusters.count_in(truth == name)
            if 0 < count < MIN_PATIENTS:
                sentences.append(f"rests on {count} patients with {name}")
            elif not count:
                sentences.append(f"{ABSENT_CLASS}{name}")
        if outside := self.outside_sentence():
            sentences.append(outside)
        return sentences

    def overall(self) -> dict[str, Estimate]:
        """Return every number; undefined ones say how many answers are outside the classes."""
        found, reason = super().overall(), self.undefined_reason()
        if not reason:
            return found
        return {key: replace(one, reason=reason) if np.isnan(one.value) else one for key, one in found.items()}

    def outside(self) -> int:
        """Return the number of answers outside the classes."""
        return int((self.sampler.sample.y_pred >= len(self.task.classes)).sum())

    def undefined_reason(self) -> str:
        """Return why numbers that need probabilities are undefined; empty if they are not, or if there are none."""
        count, total = self.outside(), len(self.sampler.sample)
        known = set(probability_columns(self.task)) <= set(self.answers.frame.columns)
        if not known or self.sampler.sample.probabilities is not None:
            return ""
        return f"undefined: {count} of {total} answers are outside the classes, more than {100 * MOST_OUTSIDE:.0f} %"

    def outside_sentence(self) -> str:
        """Return a sentence on the answers outside the classes; empty if there are none."""
        if not (count := self.outside()):
            return ""
        rows = f"{count} of {len(self.sampler.sample)} answers are outside the classes and count as wrong ({OTHER})"
        undefined = f"; with more than {100 * MOST_OUTSIDE:.0f} %, numbers that need probabilities are undefined"
        return rows + (undefined if self.undefined_reason() else "")


class Classification(ClassKind):
    """Rules of a task whose answer is one of its classes, with optional probabilities."""

    answer = "class"
    link = "softmax"
    table = ScoredClasses

    def label_values(self, cells: pd.Series, task: Task) -> np.ndarray:
        """Return codes in the task's class order. The array is int64 (n,)."""
        return cells.map({name: code for code, name in enumerate(task.classes)}).to_numpy(dtype=np.int64)

    def decide(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the code of the most probable class.

        The shape is (n,); for ties the positive of two, else the first.
        """
        return most_probable(probabilities)

    def optional_columns(self, task: Task) -> list[str]:
        """Return the column of the probability outside the classes."""
        return [OTHER_COLUMN] if self.outside_answer(task) else []

    def outside_answer(self, task: Task) -> str:
        """Return `OTHER`; empty if a class has this name."""
        return "" if OTHER in task.classes else OTHER

    def check_answers(self, answers: pd.DataFrame, task: Task, source: str) -> None:
        """Refuse unknown classes, and probabilities outside [0, 1] or that do not sum to 1."""
        super().check_answers(answers, task, source)
        if given := split_columns(answers, task)[0]:
            given = [*given, *(name for name in self.optional_columns(task) if name in answers)]
            check_probabilities(answers, given, source, task.name)
            advice = f" {OTHER_COLUMN} may hold the probability of other answers." if self.outside_answer(task) else ""
            require(
                np.abs(answers[given].to_numpy(np.float64).sum(axis=1) - 1) <= SUM_TOLERANCE,
                answers,
                source,
                "rows have probabilities that do not sum to 1",
                f"Give the softmax over {', '.join(task.classes)}.{advice}",
            )

    def complete_answers(self, answers: pd.DataFrame, task: Task) -> pd.DataFrame:
        """Return the columns, with answers derived from all probabilities if there are none."""
        if "y_pred" not in answers:
            columns = [*probability_columns(task), *(name for name in self.optional_columns(task) if name in answers)]
            means = answers[columns].to_numpy(np.float64)
            answers = answers.assign(y_pred=self.unit_answers(means, task)["y_pred"].to_numpy())
        return super().complete_answers(answers, task)

    def sample(self, frame: pd.DataFrame, task: Task) -> ScoringInput:
        """Return answers as codes, K for an answer outside the classes.

        Probabilities are left as they are. If more than `MOST_OUTSIDE` of the answers are outside the classes, there are
        none, because most rows would then be ranked by probabilities of classes that were not answered.
        """
        outside, columns = (frame["y_pred"] == self.outside_answer(task)).to_numpy(), probability_columns(task)
        codes = np.full(len(frame), len(task.classes), dtype=np.int64)
        codes[~outside] = self.label_values(frame["y_pred"][~outside], task)
        known = set(columns) <= set(frame.columns) and outside.mean() <= MOST_OUTSIDE
        possible = bool(outside.any()) or bool(set(self.optional_columns(task)) & set(frame.columns))
        return ScoringInput(
            self.label_values(frame["y_true"], task),
            codes,
            frame[columns].to_numpy(np.float64) if known else None,
            len(task.classes) if possible else None,
        )

    def unit_answers(self, means: np.ndarray, task: Task) -> pd.DataFrame:
        """Return the probabilities of each unit, and the most probable answer; of equal ones a class."""
        inside, beyond = np.split(means, [len(task.classes)], axis=1)
        frame = super().unit_answers(inside, task)
        if not beyond.shape[1]:
            return frame
        outside = beyond.max(axis=1) > inside.max(axis=1) * (1 + ROUNDING)
        frame["y_pred"] = frame["y_pred"].where(~outside, OTHER)
        return frame.assign(**{OTHER_COLUMN: beyond.sum(axis=1)})

    def fill_answers(self, answers: pd.DataFrame, task: Task) -> pd.DataFrame:
        """Return the answers with probability 0 for classes without a column if the others sum to 1."""
        given, absent = split_columns(answers, task)
        whole = [*given, *(name for name in self.optional_columns(task) if name in answers)]
        if given and (np.abs(answers[whole].to_numpy(np.float64).sum(axis=1) - 1) <= SUM_TOLERANCE).all():
            return answers.assign(**dict.fromkeys(absent, 0.0))
        return answers

    def doubts(self, answers: pd.DataFrame, task: Task) -> list[str]:
        """Return a sentence with the number of rows whose class is not the most probable one, as after applying a threshold."""
        columns = probability_columns(task)
        if not set(columns) <= set(answers.columns):
            return []
        answers = answers[answers["y_pred"] != self.outside_answer(task)]
        table, answer = answers[columns].to_numpy(np.float64), self.label_values(answers["y_pred"], task)
        odd = int((table[np.arange(len(table)), answer] < table.max(axis=1) - 1e-9).sum())
        if not odd:
            return []
        rows = f"{odd} of {len(answers)} rows"
        return [
            f"y_pred is not the most probable class in {rows}, as after applying a threshold; both are used as given"
        ]

    def named(self, answers: np.ndarray, task: Task) -> np.ndarray:
        """Return the names of classes, and `OTHER` for answers outside of them."""
        return np.array([*task.classes, OTHER], dtype=object)[answers]

    def errors(self, frame: pd.DataFrame, task: Task) -> pd.Series:
        """Return 1 minus the probability of the true class (1 if unknown) for wrong answers, 0 for right ones."""
        error, columns = np.ones(len(frame)), probability_columns(task)
        if set(columns) <= set(frame.columns):
            code = self.label_values(frame["y_true"], task)
            error = 1 - frame[columns].to_numpy(np.float64)[np.arange(len(frame)), code]
        return pd.Series(error, index=frame.index).where(frame["y_true"] != frame["y_pred"], np.nan)


class Binary(Classification):
    """Two classes, the last of which is the positive one."""

    two_classes = True

    def check_task(self, task: Task) -> None:
        """Refuse a task without exactly two classes."""
        super().check_task(task)
        if len(task.classes) != 2:
            raise ValueError(f"{task.name}: a binary task has two classes, got {task.classes}")

    def fill_answers(self, answers: pd.DataFrame, task: Task) -> pd.DataFrame:
        """Return the answers with 1 minus the probability of the other class if one class has no column."""
        given, absent = split_columns(answers, task)
        if not (given and absent):
            return answers
        outside = sum(answers[name] for name in self.optional_columns(task) if name in answers)
        return answers.assign(**{absent[0]: 1 - answers[given[0]] - outside})

    def reports(self, task: Task) -> tuple[str, ...]:
        """Return the reports on classes and on calibration."""
        return ("classification_report", "calibration_report")


class Multiclass(Classification):
    """Three classes or more."""

    def check_task(self, task: Task) -> None:
        """Refuse a task with fewer than three classes."""
        super().check_task(task)
        if len(task.classes) < 3:
            raise ValueError(f"{task.name}: a multiclass task has three classes or more, got {task.classes}")

    def reports(self, task: Task) -> tuple[str, ...]:
        """Return the report on classes."""
        return ("classification_report",)
