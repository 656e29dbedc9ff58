"""Kinds of task with labels in single frames: frames are scored one by one and averaged over units."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.context import ResultContext
from cardiobench.results.score_result import Bounds, Breakdown, Estimate, Floor
from cardiobench.stats.estimates import estimate_metric
from cardiobench.stats.failures import FAILED, failures_sentence, share_failed
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.dense_information import permutation_test
from cardiobench.tasks.dense_label import DenseLabel
from cardiobench.tasks.frame_coverage import FrameCoverage
from cardiobench.tasks.frame_numbers import LENGTH_ERRORS, number_of, shown_by_structure, structure_columns
from cardiobench.tasks.groups import adjust_gaps, breakdowns, split_rows
from cardiobench.tasks.mask_volumes import MaskVolumes
from cardiobench.tasks.scored import Evidence, Patients, Scored
from cardiobench.tasks.task import Task, TaskKind
from cardiobench.tasks.unit_means import estimate_mean, mean_metric, mean_sampler


class Measured(NamedTuple):
    """Measurements of one scored frame.

    Attributes:
        numbers: Mapping from column to number of the frame.
        truth: Reduced mask or points of the label, for the information test.
        answer: Reduced mask or points of the prediction.
        diagonal: Diagonal of the image as far as it is known, mm: the largest possible distance error in it.
    """

    numbers: dict[str, float]
    truth: np.ndarray
    answer: np.ndarray
    diagonal: float = np.nan


class FrameKind(TaskKind):
    """Rules of a kind whose labels are pixels of single frames.

    Attributes:
        mean_answer: Name of the constant answer whose score is the floor.
    """

    answer = "frames"
    reads = "frames"
    counted = "labelled frames"
    mean_answer: ClassVar[str]

    def check_task(self, task: Task) -> None:
        """Refuse a task without structures."""
        if not task.structures:
            raise ValueError(
                f"{task.name}: a {task.kind} task has structures {task.structures}; only dense tasks have some"
            )

    def label_values(self, cells: pd.Series, task: Task) -> np.ndarray:
        """Return scores of units. The array is float64 (n,)."""
        return cells.to_numpy(dtype=np.float64)

    def wanted(self, task: Task) -> str:
        """Return the kind of task, with the note that answers are for single frames."""
        return f"{task.kind} of single frames"

    def unit_labels(self, labels: pd.Series, units: pd.Series) -> pd.Series:
        """Return the number of labelled frames of the whole unit."""
        return labels.groupby(units).transform("sum")

    def check_answers(self, answers: pd.DataFrame, task: Task, source: str) -> None:
        """Refuse every table."""
        raise NotApplicable(
            f"{task.name} is a {task.kind} task on single frames, but a table has one answer per unit. Score the output of "
            "a model with `cardiobench eval --model`, or a table of a task with one answer per unit."
        )

    def stored_answers(self, frame: pd.DataFrame, task: Task, expected: int | None, source: str) -> TableAnswers:
        """Return the ranking score of each unit as the answers, with 0 as the truth."""
        table = unit_scores(task, frame)
        units = table.assign(y_true=0.0, y_pred=table[task.metrics[0]]).dropna(subset=["y_pred"]).reset_index()
        return TableAnswers(task, units[["id", "patient_id", "y_true", "y_pred"]], len(units), source)

    def scored(self, answers: "FrameAnswers", references: pd.DataFrame, context: ResultContext) -> Scored:
        """Return the frames in the format for scoring."""
        return ScoredFrames(answers, references, context)

    def compared(self, metric: Metric, samples: Sequence[ScoringInput]) -> Metric:
        """Return the mean of the unit scores, which are computed already (`stored_answers`)."""
        return mean_metric(metric.primary)

    @abstractmethod
    def measure(self, label: DenseLabel, prediction: np.ndarray, task: Task) -> Measured:
        """Score the prediction of one labelled frame.

        Args:
            label: Label with its mask or points.
            prediction: Mask uint8 (H, W), or x and y of the points (k, 2), in pixels of the recorded frame.
            task: Task of the label.

        Raises:
            ValueError: The label is missing.
        """

    @abstractmethod
    def closeness(self, truth: np.ndarray, answer: np.ndarray, structures: int) -> np.ndarray:
        """Return the fit of each answer to each frame, (n, m) float64, for the information test; higher is better.

        Args:
            truth: `Measured.truth` of n frames, stacked.
            answer: `Measured.answer` of m frames, stacked.
            structures: Number of structures.
        """

    @abstractmethod
    def all_same(self, truths: Sequence[np.ndarray], answers: Sequence[np.ndarray]) -> bool:
        """Return whether two or more answers are (nearly) the same."""


def frame_kind(task: Task) -> FrameKind:
    """Return the rules of a task with labels in frames.

    Raises:
        TypeError: The task has one answer per unit.
    """
    rules = task.rules
    if not isinstance(rules, FrameKind):
        raise TypeError(f"{task.name} is a {task.kind} task, whose answers are not pixels of frames")
    return rules


@dataclass
class DenseScorer:
    """Scores predictions of a task with labels in frames, one frame at a time.

    Attributes:
        task: Task of the labels.
        with_volumes: Whether to measure the discs of the cavities, which is not needed for floors.
        rows: One dict per frame: id, patient_id, split, recording, frame, view, phase and its numbers.
        truths: `Measured.truth` of each row.
        answers: `Measured.answer` of each row.
        diagonal: Largest `Measured.diagonal`, mm; NaN if unknown.
        volumes: Discs of the true and of the predicted masks.
    """

    task: Task
    with_volumes: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)
    truths: list[np.ndarray] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    diagonal: float = np.nan
    volumes: MaskVolumes = field(default_factory=MaskVolumes)

    def update(self, label: DenseLabel, prediction: np.ndarray) -> None:
        """Score the prediction of one labelled frame; arguments as of `FrameKind.measure`."""
        measured = frame_kind(self.task).measure(label, prediction, self.task)
        row = {
            "id": label.unit,
            "patient_id": label.patient,
            "split": label.split,
            "recording": label.recording,
            "frame": label.frame,
            "view": label.view,
            "phase": label.phase,
        }
        self.rows.append(row | measured.numbers)
        self.truths.append(measured.truth)
        self.answers.append(measured.answer)
        self.diagonal = float(np.fmax(self.diagonal, measured.diagonal))
        if self.with_volumes and label.mask is not None:
            self.volumes.update(label, label.mask == 1, prediction == 1)

    @property
    def frame(self) -> pd.DataFrame:
        """Table with one row per frame, as saved next to the result."""
        return pd.DataFrame(self.rows)

    @property
    def unit_scores(self) -> pd.DataFrame:
        """The numbers of each unit; see `unit_scores`."""
        return unit_scores(self.task, self.frame)


def unit_scores(task: Task, frame: pd.DataFrame) -> pd.DataFrame:
    """Average the numbers of frames over units: structures over frames, then metrics over structures.

    Args:
        task: Task of the labels.
        frame: One row per frame, as saved next to a result.

    Returns:
        One row per unit, indexed by id; `patient_id`, then a column per key.
    """
    units = frame.groupby("id", sort=False)
    table = units[["patient_id"]].first()
    by_structure = shown_by_structure(task)
    for key, names in structure_columns(task, frame).items():
        means = units[names].mean()
        table[key] = means.mean(axis=1)
        if key in by_structure:
            table[names] = means
    for number in LENGTH_ERRORS.values():
        if number.key in frame:
            table[number.key] = units[number.key].mean()
    first = task.metrics[0]
    names = [f"{first}_{structure}" for structure in task.structures]
    for column in ("view", "phase"):
        values = [value for value in frame[column].dropna().unique() if frame[column].nunique() > 1]
        for value in sorted(values):
            of_value = frame[frame[column] == value].groupby("id", sort=False)[names].mean().mean(axis=1)
            table[f"{first}_{str(value).lower()}"] = of_value
    return table


@dataclass(frozen=True)
class FrameAnswers:
    """Answers to the labelled test frames of a task.

    Attributes:
        scorer: Scorer with every answered test frame.
        floors: Mapping from name to scorer of answers that need no model, on the same frames; `best_uninformed` is the
            mean of the train labels and decides the verdict.
        expected: Number of test units of the complete release.
        ef: Listed ejection fraction of each unit, %, to compute its error from the discs of the masks; None if not
            listed.
        source: Origin of the answers, for messages.
        warnings: Sentences for the reader of the score.
    """

    scorer: DenseScorer
    floors: Mapping[str, DenseScorer]
    expected: int
    ef: pd.Series | None = None
    source: str = "predictions"
    warnings: tuple[str, ...] = ()
    out_of_fold: ClassVar[bool] = False
    refits: ClassVar[None] = None

    @property
    def task(self) -> Task:
        """Answered task."""
        return self.scorer.task


class ScoredFrames(Scored):
    """Scored frames: means over the frames of each unit, with intervals over patients."""

    def __init__(self, answers: FrameAnswers, references: pd.DataFrame, context: ResultContext) -> None:
        """Average the frames over units."""
        self.task, self.answers, self.references = answers.task, answers, references
        self.kind, self.scorer, self.seed = frame_kind(answers.task), answers.scorer, context.seed
        self.key = self.task.metrics[0]
        self.table = self.scorer.unit_scores
        self.patients = self.table.pop("patient_id")
        self.metric = mean_metric(number_of(self.task, self.key), self.worst(self.key))
        self.floor_scores = {name: floor.unit_scores[self.key] for name, floor in answers.floors.items()}
        self.frames = FrameCoverage.of(references, answers.expected, self.scorer.frame)

    def overall(self) -> dict[str, Estimate]:
        """Return the mean of each number over units, and the error of ejection fractions if these are listed."""
        found = {
            str(name): estimate_mean(
                number_of(self.task, str(name)), self.table[name], self.patients, self.worst(str(name))
            )
            for name in self.table
        }
        found |= {} if self.failed is None else {FAILED.key: self.failed}
        ef = self.answers.ef
        return found if ef is None else found | self.scorer.volumes.estimates(ef, self.patients)

    @cached_property
    def failed(self) -> Estimate | None:
        """Share of patients whose answers failed; None if the ranking number defines no limit."""
        sampler = mean_sampler(self.table[self.key], self.patients)
        return share_failed(sampler.sample.y_pred, sampler.clusters, self.metric.primary, self.task.unit)

    def worst(self, key: str) -> float:
        """Return the worst possible score of a unit: no overlap, or the diagonal of the image."""
        number = number_of(self.task, key)
        return number.range[0] if number.higher_is_better else self.scorer.diagonal

    def number(self, key: str) -> Number:
        """Return the definition of a number from the metrics of frames."""
        return FAILED if key == FAILED.key else number_of(self.task, key)

    def floors(self) -> dict[str, Floor]:
        """Return the mean score of each floor."""
        reached = {"best_uninformed": self.kind.mean_answer}
        return {
            name: Floor(float(values.mean()), reached_by=reached.get(name, name.replace("_", " ")))
            for name, values in self.floor_scores.items()
        }

    def evidence(self, estimate: Estimate, floor: Floor) -> Evidence:
        """Return the evidence for the verdict; frames without a score count as the worst possible."""
        bounds = None
        if self.frames.missing:
            estimate, bounds = self._worst_case()
        scorer = self.scorer
        information = permutation_test(
            self.kind.closeness, self.task, scorer.frame, scorer.truths, scorer.answers, seed=self.seed
        )
        clusters = mean_sampler(self.table[self.key], self.patients).clusters
        patients = Patients(clusters.count, clusters.effective)
        return Evidence(estimate, floor, information, estimate.n_patients, patients, bounds)

    def _worst_case(self) -> tuple[Estimate, Bounds]:
        """Return the estimate with the worst score for every frame that lacks one, and its bounds.

        The worst error is the largest of any unit, by the model or by a floor.
        """
        scores = self.table[self.key]
        largest = max(float(values.max()) for values in (scores, *self.floor_scores.values()))
        worst, best = (0.0, 1.0) if self.metric.higher_is_better else (largest, 0.0)
        filled = {value: self.frames.completed(scores, value) for value in (worst, best)}
        estimate = estimate_metric(self.metric, mean_sampler(filled[worst], self.frames.patients))[self.key]
        return estimate, Bounds(self.frames.missing, estimate.value, float(filled[best].mean()))

    def groups(self) -> tuple[dict[str, Breakdown], dict[str, str], list[str]]:
        """Score each breakdown of the task over the scored units."""
        scores, references = self.table[self.key], self.references
        units = scores.index[scores.notna()]
        rows = references.set_index(references["id"].astype(str)).loc[units].reset_index(drop=True)
        splits = {group.name: split_rows(group, rows, ()) for group in self.task.groups if group.column in rows}
        chosen = {name: split.rows for name, split in splits.items() if split.rows}
        sampler = mean_sampler(scores, self.patients, self.seed)
        found = breakdowns(self.metric, self.key, sampler, chosen)
        plain = {name: replace(entry, others={}) for name, entry in found.items()}
        skipped = {name: why for split in splits.values() for name, why in split.skipped.items()}
        return adjust_gaps(plain), skipped, []

    def collapsed(self) -> str:
        """Return a description of answers that are all (nearly) the same."""
        truths, answers = self.scorer.truths, self.scorer.answers
        return "every answer is the same" if len(answers) > 1 and self.kind.all_same(truths, answers) else ""

    def coverage(self) -> Mapping[str, int | None]:
        """Return the number of labelled frames with a score, and of all labelled frames."""
        return self.frames.counts

    def coverage_sentences(self) -> list[str]:
        """Return a sentence with the number of labelled frames without a score."""
        return self.frames.sentences()

    def sentences(self, estimate: Estimate) -> list[str]:
        """Return the number of failed patients, and the reasons why masks have no volume."""
        failed = [] if self.failed is None else [failures_sentence(self.failed, self.metric.primary, self.task.unit)]
        return [*failed, *self.scorer.volumes.sentences()]
