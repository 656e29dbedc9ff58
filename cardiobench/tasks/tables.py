"""Kinds of task with one answer per unit: shared parts of regression, classification and multilabel tasks."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions
from cardiobench.metrics.load import load_metrics
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.context import ResultContext
from cardiobench.results.refits import Refits
from cardiobench.results.score_result import Bounds, Breakdown, Estimate, Floor
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric, estimate_metrics, further_numbers
from cardiobench.stats.failures import FAILED, failures_sentence, share_failed
from cardiobench.stats.information import Information, information_test
from cardiobench.stats.variability import BOTH, SEEDS, training_spread, widen
from cardiobench.tasks.answers import TableAnswers, check_classes, given_probabilities, probability_columns
from cardiobench.tasks.checks import check_probabilities
from cardiobench.tasks.floors import best_constant, best_uninformed, is_collapsed
from cardiobench.tasks.groups import Split, adjust_gaps, breakdowns, intersection, split_rows
from cardiobench.tasks.labels import label_values
from cardiobench.tasks.scored import Evidence, Patients, Scored
from cardiobench.tasks.task import Task, TaskKind, metrics_of


class TableKind(TaskKind):
    """Rules of a kind with one answer per unit."""

    table: ClassVar[type["ScoredTable"]]
    """Class of its answers while they are scored."""

    def scored(self, answers: TableAnswers, references: pd.DataFrame, context: ResultContext) -> Scored:
        """Return the rows of answers in the format for scoring."""
        return self.table(answers, references, context)

    def stored_answers(self, frame: pd.DataFrame, task: Task, expected: int | None, source: str) -> TableAnswers:
        """Return the rows of answers as they are."""
        return TableAnswers(task, frame, expected, source)


class ClassKind(TableKind):
    """Rules of a kind whose answer is one or more classes, with optional probabilities."""

    @abstractmethod
    def named(self, answers: np.ndarray, task: Task) -> np.ndarray:
        """Return answers as cells of `y_pred`."""

    def answer_columns(self, task: Task) -> list[str]:
        """Return the columns of the predicted classes and of the probabilities of all classes."""
        return ["y_pred", *probability_columns(task)]

    def check_answers(self, answers: pd.DataFrame, task: Task, source: str) -> None:
        """Refuse names that are not classes, and probabilities outside [0, 1]."""
        given = given_probabilities(answers, task, source)
        if not given and "y_pred" not in answers:
            raise BadPredictions(
                f"{source} has neither y_pred nor probabilities for {task.name}. Add a column y_pred, or one column per class."
            )
        check_classes(answers, task, source)
        if given:
            check_probabilities(answers, given, source, task.name)

    def complete_answers(self, answers: pd.DataFrame, task: Task) -> pd.DataFrame:
        """Return the columns, with answers derived from probabilities if there are none."""
        if "y_pred" not in answers:
            table = answers[probability_columns(task)].to_numpy(np.float64)
            answers = answers.assign(y_pred=self.unit_answers(table, task)["y_pred"].to_numpy())
        return super().complete_answers(answers, task)

    def sample(self, frame: pd.DataFrame, task: Task) -> ScoringInput:
        """Return answers, with the probabilities where they are known."""
        sample, columns = super().sample(frame, task), probability_columns(task)
        known = set(columns) <= set(frame.columns)
        return replace(sample, probabilities=frame[columns].to_numpy(np.float64)) if known else sample

    def cells(self, sample: ScoringInput, task: Task) -> dict[str, np.ndarray]:
        """Return the names of classes, and the probabilities where they are known."""
        named = {"y_pred": self.named(sample.y_pred, task)}
        if sample.probabilities is None:
            return named
        return named | dict(zip(probability_columns(task), sample.probabilities.T, strict=True))

    def scoring_input(self, truth: np.ndarray, means: np.ndarray) -> ScoringInput:
        """Return true classes with predicted ones and their probabilities."""
        return replace(super().scoring_input(truth, means), probabilities=means)

    def unit_answers(self, means: np.ndarray, task: Task) -> pd.DataFrame:
        """Return the probabilities of each unit, and the predicted classes."""
        frame = pd.DataFrame(means, columns=probability_columns(task))
        return frame.assign(y_pred=self.named(self.decide(means), task))


class ScoredTable(Scored):
    """Rows of answers during scoring.

    Attributes:
        task: Task that is answered.
        answers: Answers joined with their references.
        references: References of all splits; the train rows give further floors.
        context: Metrics and draws.
        metrics: All metrics of the result.
        sampler: Rows with their patients, classes and draws.
    """

    COLLAPSED: ClassVar[str] = "the answers hardly vary"

    def __init__(self, answers: TableAnswers, references: pd.DataFrame, context: ResultContext) -> None:
        """Prepare rows, metrics and draws without computing scores."""
        self.task, self.answers, self.references, self.context = answers.task, answers, references, context
        sample = answers.sample()
        present = sample.present_classes(len(self.task.classes))
        clusters = Clusters.of(answers.patients)
        self.sampler = Sampler(sample, clusters, present, context.resamples, context.seed)
        loaded = load_metrics(context.metrics or metrics_of(self.task))
        self.metrics, self.metric, self.key = self.ranking(loaded)
        refits = len(context.refit_scores) > 1
        drawn = context.refit_scores if refits else context.seed_scores
        self.spread = training_spread(drawn) if len(drawn) > 1 else None
        self.covers = BOTH if refits else SEEDS

    def ranking(self, metrics: Sequence[Metric]) -> tuple[Sequence[Metric], Metric, str]:
        """Return all metrics of the result, and the ranking one with its key; by default the first."""
        return metrics, metrics[0], metrics[0].primary_key

    def overall(self) -> dict[str, Estimate]:
        """Return every number of the metrics; the interval of the ranking one includes refits or seeds if there are any."""
        found = estimate_metrics(self.metrics, self.sampler, self.key)
        failed = {} if self.failed is None else {FAILED.key: self.failed}
        return {**failed, **found, self.key: self._widened(found[self.key])}

    def further(self) -> dict[str, float]:
        """Return the numbers of the metrics that are only in the file."""
        return further_numbers(self.metrics, self.sampler, self.key)

    def refits(self, overall: Mapping[str, Estimate]) -> Refits | None:
        """Return the defined numbers of the result for the answers of each refit."""
        refits = self.answers.refits
        if refits is None:
            return None
        keys = [key for key, one in overall.items() if key != FAILED.key and not np.isnan(one.value)]
        wanted = {metric.name: metric for metric in self.metrics if set(metric.numbers) & set(keys)}
        drawn = [one.sample() for one in self.answers.of_refits()]
        values = [{key: v for metric in wanted.values() for key, v in metric.value(one).items()} for one in drawn]
        scores = {key: tuple(float(one[key]) for one in values) for key in keys if values}
        return Refits(refits.varies, refits.seed, refits.draws, refits.count, scores)

    @cached_property
    def failed(self) -> Estimate | None:
        """Share of patients whose answers failed; None if the ranking number is not a mean of errors with a limit."""
        sampler, number = self.sampler, self.metric.numbers[self.key]
        if not number.failed or self.metric.per_row is None:
            return None
        errors = self.metric.per_row(**self.metric.inputs(sampler.sample))[self.key]
        return share_failed(errors, sampler.clusters, number, self.task.unit)

    def number(self, key: str) -> Number:
        """Return the definition of a number from its metric."""
        return next((metric.numbers[key] for metric in self.metrics if key in metric.numbers), FAILED)

    def floors(self) -> dict[str, Floor]:
        """Return the closed form and the best constant, and better floors that come with the answers."""
        y_true = self.sampler.sample.y_true
        constant = best_constant(self.metric, self.key, self.task, y_true)
        best = best_uninformed(self.key, y_true, len(self.task.classes), constant, self.metric)
        return {"best_uninformed": self.hardest(best), "best_constant": constant, **self.given_floors}

    @cached_property
    def given_floors(self) -> dict[str, Floor]:
        """Scores of the floors that come with the answers, by name."""
        given = self.answers.floors.items()
        return {name: Floor(float(self.metric.value(one)[self.key]), reached_by=name) for name, one in given}

    def hardest(self, floor: Floor) -> Floor:
        """Return the best floor: this one, or one that came with the answers; a NaN floor stays NaN."""
        sign = 1 if self.metric.numbers[self.key].higher_is_better else -1
        known = [one for one in self.given_floors.values() if not np.isnan(one.value)]
        return max([floor, *known], key=lambda one: sign * one.value) if not np.isnan(floor.value) else floor

    def evidence(self, estimate: Estimate, floor: Floor) -> Evidence:
        """Return the evidence for the verdict; missing answers count as the worst possible."""
        sampler, bounds, n_patients = self.sampler, None, estimate.n_patients
        if (missing := self.answers.missing) is not None:
            truth = label_values(missing["y_true"], self.task)
            worst, best = (self._completed(truth, worst=wrong) for wrong in (True, False))
            patients = np.concatenate([self.answers.patients, missing["patient_id"].to_numpy()])
            present = worst.present_classes(sampler.classes)
            sampler = Sampler(worst, Clusters.of(patients), present, sampler.resamples, sampler.seed)
            estimate = self._widened(estimate_metric(self.metric, sampler, [self.key])[self.key])
            floor = self.hardest(self.uninformed(worst))
            bounds = Bounds(len(missing), estimate.value, float(self.metric.value(best)[self.key]))
        information = self.information(sampler)
        return Evidence(
            estimate,
            floor,
            information,
            n_patients,
            self.patients(sampler),
            bounds,
            self.without_cut(information.statistic, sampler),
            self.task.rules.answer == "number",
        )

    def uninformed(self, sample: ScoringInput) -> Floor:
        """Return the best expected score of answers to some rows that ignore the recording."""
        constant = best_constant(self.metric, self.key, self.task, sample.y_true)
        return best_uninformed(self.key, sample.y_true, len(self.task.classes), constant, self.metric)

    def information(self, sampler: Sampler) -> Information:
        """Return the result of the information test."""
        if self.answers.information is not None and sampler is self.sampler:
            return self.answers.information
        return information_test(sampler.sample, sampler.clusters, sampler.classes, seed=sampler.seed)

    def _completed(self, truth: np.ndarray, *, worst: bool) -> ScoringInput:
        return self.task.rules.completed(self.sampler.sample, truth, self.task, worst=worst)

    def _widened(self, estimate: Estimate) -> Estimate:
        return estimate if self.spread is None else widen(estimate, self.spread, covers=self.covers)

    def without_cut(self, key: str, sampler: Sampler) -> Estimate | None:
        """Return the number of the information test with its interval if another number ranks models; None otherwise."""
        metric = next((metric for metric in self.metrics if key in metric.numbers), None)
        if key == self.key or metric is None or self.task.rules.answer != "class":
            return None
        return estimate_metric(metric, sampler, [key])[key]

    def patients(self, sampler: Sampler) -> Patients:
        """Return the patients of some rows; by default without classes."""
        return Patients(sampler.clusters.count, sampler.clusters.effective)

    def groups(self) -> tuple[dict[str, Breakdown], dict[str, str], list[str]]:
        """Score each breakdown of the task, and women and men by age."""
        splits = self.splits()
        skipped = {name: why for split in splits.values() for name, why in split.skipped.items()}
        rows = {name: split.rows for name, split in splits.items() if split.rows}
        found, notes = self.breakdowns(rows, skipped)
        return adjust_gaps(found), skipped, notes

    def splits(self) -> dict[str, Split]:
        """Return the rows of the groups of each breakdown."""
        frame, classes, by_name = self.answers.frame, self.group_classes(), {one.name: one for one in self.task.groups}
        found = {name: split_rows(group, frame, classes) for name, group in by_name.items()}
        if {"sex", "age"} <= set(by_name):
            found["sex x age"] = intersection(by_name["sex"], by_name["age"], frame, classes)
        return found

    def group_classes(self) -> list[str]:
        """Return the classes of which every group needs some patients; by default none."""
        return []

    def breakdowns(
        self, rows: Mapping[str, Mapping[str, np.ndarray]], skipped: dict[str, str]
    ) -> tuple[dict[str, Breakdown], list[str]]:
        """Score the groups of each breakdown.

        Args:
            rows: Breakdown -> group -> its rows.
            skipped: Reasons why groups have no score; further ones are added.

        Returns:
            The breakdowns, and sentences about them.
        """
        return breakdowns(self.metric, self.key, self.sampler, rows), []

    def collapsed(self) -> str:
        """Return a description of answers that are all (nearly) the same; empty for a single row."""
        return self.COLLAPSED if is_collapsed(self.task, self.sampler.sample) else ""

    def coverage(self) -> Mapping[str, int | None]:
        """Return the number of answered and of expected units."""
        return {"scored": len(self.sampler.sample), "expected": self.answers.expected}

    def sentences(self, estimate: Estimate) -> list[str]:
        """Return sentences about classes with few patients, and reasons for a missing number or interval."""
        failed = [] if self.failed is None else [failures_sentence(self.failed, self.number(self.key), self.task.unit)]
        return [*self.class_sentences(), *([estimate.reason] if estimate.reason else []), *failed]

    def class_sentences(self) -> list[str]:
        """Return sentences about classes with few patients; by default none."""
        return []
