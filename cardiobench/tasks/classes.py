"""Binary and multiclass classification: one class per unit."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.estimates import Sampler
from cardiobench.tasks.answers import probability_columns
from cardiobench.tasks.scored import Patients
from cardiobench.tasks.tables import ScoredTable, TableKind
from cardiobench.tasks.task import Task


class ScoredClasses(ScoredTable):
    """Rows with one class each."""

    COLLAPSED = "every answer is the same class"

    def ranking(self, metrics: Sequence[Metric]) -> tuple[Sequence[Metric], Metric, str]:
        """Return the first metric; the share answered right where one class leaves nothing to tell apart."""
        if not self.sampler.one_class:
            return super().ranking(metrics)
        report = load_metric("classification_report")
        return list(dict.fromkeys((*metrics, report))), report, "accuracy"

    def patients(self, sampler: Sampler) -> Patients:
        """Return the patients of some rows, and of those outside the class that most rows have."""
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
        """Return sentences on the classes that few patients have, and those that none has."""
        sentences, truth = [], self.answers.frame["y_true"].to_numpy()
        for name in self.task.classes:
            count = self.sampler.clusters.count_in(truth == name)
            if 0 < count < MIN_PATIENTS:
                sentences.append(f"rests on {count} patients with {name}")
            elif not count:
                sentences.append(f"no scored row is {name}")
        return sentences


class Classification(TableKind):
    """Rules of a task whose answer is one of its classes."""

    answer = "class"
    link = "softmax"
    table = ScoredClasses

    def label_values(self, cells: pd.Series, task: Task) -> np.ndarray:
        """Return codes in the task's class order, (n,) int64."""
        return cells.map({name: code for code, name in enumerate(task.classes)}).to_numpy(dtype=np.int64)

    @abstractmethod
    def decide(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the code of the most probable class, (n,)."""

    def unit_answers(self, means: np.ndarray, task: Task) -> pd.DataFrame:
        """Return the probabilities of each unit and its most probable class."""
        frame = pd.DataFrame(means, columns=probability_columns(task))
        return frame.assign(y_pred=np.asarray(task.classes, dtype=object)[self.decide(means)])


class Binary(Classification):
    """Two classes, the last of which is the positive one."""

    two_classes = True

    def check_task(self, task: Task) -> None:
        """Refuse a task without exactly two classes."""
        super().check_task(task)
        if len(task.classes) != 2:
            raise ValueError(f"{task.name}: a binary task has two classes, got {task.classes}")

    def reports(self, task: Task) -> tuple[str, ...]:
        """Return the reports on classes and on calibration."""
        return ("classification_report", "calibration_report")

    def decide(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the code of the most probable class, the positive one on a tie, (n,)."""
        return (probabilities[:, 1] >= probabilities[:, 0]).astype(np.int64)


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

    def decide(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the code of the most probable class, the first one on a tie, (n,)."""
        return probabilities.argmax(axis=1)
