"""Plan a study: the patients needed for an interval, for a score above the floor, and to tell two models apart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cardiobench.core.errors import BadConfig, BadPredictions, MissingData
from cardiobench.core.registry import look_up, unknown_name
from cardiobench.data import catalog
from cardiobench.extensions.planning.errors import CLOSED, StandardError, closed_form
from cardiobench.extensions.planning.margins import Margin, find_margin
from cardiobench.extensions.planning.sizes import (
    ValidationSizes,
    patients_above_floor,
    patients_for_difference,
    patients_for_half_width,
    patients_for_not_worse,
    validation_sizes,
)
from cardiobench.metrics.load import find_number, find_numbers, load_metric
from cardiobench.metrics.number import Number
from cardiobench.report.contests import predictions_of
from cardiobench.results.collect import ResultEntry, collect
from cardiobench.scoring.compare import compare
from cardiobench.scoring.verdict import DETECTABLE
from cardiobench.tasks.task import Task, lacks_metrics

SCORES = (0.7, 0.8, 0.9)
"""Expected scores if none is given."""
CORRELATIONS = (0.0, 0.5, 0.8)
"""Correlations of two models if none is given."""


@dataclass(frozen=True)
class PlanRequest:
    """Request of a plan.

    Attributes:
        task: Name of the task.
        metric: Key of the number; empty for the ranking metric of the task.
        margin: Difference to be shown, or margin within which two models count as equal.
        power: Share of studies that show it.
        half_width: Half-width of the interval; NaN for the margin.
        score: Expected score; NaN for several.
        floor: Floor; NaN for that of the metric.
        prevalence: Share of patients with the positive class; NaN for one half.
        correlation: Correlation of the errors of two models; NaN for several.
        tests: Number of tests whose p-values are corrected together.
        results: Result files of a pilot study, at most two.
    """

    task: str
    margin: float
    power: float
    metric: str = ""
    half_width: float = math.nan
    score: float = math.nan
    floor: float = math.nan
    prevalence: float = math.nan
    correlation: float = math.nan
    tests: int = 1
    results: tuple[Path, ...] = ()


@dataclass(frozen=True)
class PlannedSize:
    """Number of patients for one question.

    Attributes:
        question: What the study is to show, in words.
        assumed: Assumptions.
        patients: Number of patients; None if more than are searched.
    """

    question: str
    assumed: str
    patients: int | None


@dataclass(frozen=True)
class StudyPlan:
    """Plan of a study.

    Attributes:
        task: Task that the study is to answer.
        number: Facts about the metric.
        margin: What is known about its margin.
        sizes: Numbers of patients.
        validation: Sizes for calibration and AUROC by expected AUROC, for two classes.
        notes: Sentences for the reader.
    """

    task: Task
    number: Number
    margin: Margin
    sizes: tuple[PlannedSize, ...]
    validation: dict[float, ValidationSizes]
    notes: tuple[str, ...]


def plan(request: PlanRequest) -> StudyPlan:
    """Compute the numbers of patients.

    Raises:
        BadConfig: The metric has no closed form and no results are given, or a number is out of range.
        BadPredictions: The results are not of the task, or have no predictions.
        MissingData: There is no such file of results.
        UnknownName: No metric has such a number.
    """
    (task,) = look_up([request.task], catalog.task)
    if not request.metric and (lacking := lacks_metrics(task.name, task.metrics[:1])):
        raise BadConfig(f"{lacking}. Give another number with --metric.")
    metric = request.metric or load_metric(task.metrics[0]).primary_key
    number, notes = find_number(metric), list[str]()
    if not find_numbers(metric):
        raise unknown_name("number", metric, CLOSED)
    if not number.possible(request.floor):
        low, high = number.range
        raise BadConfig(f"--floor {request.floor:g}: {metric} lies between {low:g} and {high:g}. Give such a number.")
    if request.results:
        sizes = _of_pilot(request, task, number, notes)
    else:
        if metric not in CLOSED:
            fitting = CLOSED[:-1] if task.classes else CLOSED[-1:] if task.rules.answer == "number" else ()
            other = f", or --metric with one of: {', '.join(fitting)}" if fitting else ""
            raise BadConfig(
                f"{metric} has no closed form for the number of patients. Give one or two result files of a pilot study "
                f"with --results{other}."
            )
        sizes = _of_closed_forms(request, task, number, notes)
    validation = {}
    check_width_of(number, "--margin", request.margin)
    check_width_of(number, "--half-width", request.half_width)
    two = task.rules.two_classes or task.rules.answer == "labels"
    if task.classes and two and not request.results and metric != "mae":
        areas = (request.score,) if metric.startswith("auroc") and not math.isnan(request.score) else SCORES
        validation = {area: validation_sizes(_prevalence(request), area) for area in areas}
    if request.tests > 1:
        notes.append(f"p-values corrected for {request.tests} tests (Bonferroni)")
    return StudyPlan(task, number, find_margin(metric, task.unit), tuple(sizes), validation, tuple(notes))


def check_width_of(number: Number, flag: str, width: float) -> None:
    """Raise `BadConfig` if a margin or half-width reaches over the whole range of a metric, such as 3 for 3 points."""
    low, high = number.range
    if width >= high - low:
        raise BadConfig(
            f"{flag} {width:g}: {number.key} lies between {low:g} and {high:g}. Give a fraction, such as 0.03 for 3 points."
        )


def _prevalence(request: PlanRequest) -> float:
    return 0.5 if math.isnan(request.prevalence) else request.prevalence


def _of_closed_forms(request: PlanRequest, task: Task, number: Number, notes: list[str]) -> list[PlannedSize]:
    metric = number.key
    if metric == "mae" and math.isnan(request.score):
        raise BadConfig(
            f"the patients needed for {task.name} depend on the mean absolute error. Give the expected one with --score, "
            f"in {task.unit}, or results of a pilot study with --results."
        )
    if metric != "mae" and not task.classes:
        raise BadConfig(f"{task.name} has no classes, so {metric} does not apply. Leave --metric out.")
    shares = _shares(request, task, metric, notes)
    scores = SCORES if math.isnan(request.score) else (request.score,)
    floor = _floor(request, metric, len(shares))
    sizes = []
    for score in scores:
        se = closed_form(metric, score, shares)
        shown = number.with_unit(score, task.unit)
        if metric == "mae":
            shown += ", normal errors"
        # F1 and mean errors have symmetric intervals, others those of a score test.
        tested = metric not in ("f1_macro", "mae") and 0 < floor < 1
        at_floor = closed_form(metric, floor, shares) if tested else se
        sizes += _of_one(request, (se, at_floor), score, floor, shown, number, task)
        notes += _not_above(score, floor, number, task)
        for correlation in CORRELATIONS if math.isnan(request.correlation) else (request.correlation,):
            both = _of_pair(se, correlation)
            sizes += _of_two(request, both, f"{shown}, correlation {correlation:g}", number, task)
    notes.append("one recording per patient; with several that agree, as many patients and no fewer are needed")
    return sizes


def _of_pair(se: StandardError, correlation: float) -> StandardError:
    return lambda n: math.sqrt(2 * (1 - correlation)) * se(n)


def _shares(request: PlanRequest, task: Task, metric: str, notes: list[str]) -> tuple[float, ...]:
    """Return the shares of the classes, the positive one last."""
    if metric == "mae":
        if not math.isnan(request.prevalence):
            raise BadConfig(f"--prevalence applies to classes, and {task.name} is a number. Leave it out.")
        return ()
    if task.rules.two_classes or task.rules.answer == "labels":
        if math.isnan(request.prevalence):
            notes.append("prevalence not given: one half of the patients have the class. Give --prevalence")
        if task.rules.answer == "labels":
            notes.append("one label; a mean over several labels needs fewer patients, if each label is as common")
        return 1 - _prevalence(request), _prevalence(request)
    if not math.isnan(request.prevalence):
        raise BadConfig(f"--prevalence applies to tasks of two classes, and {task.name} has {len(task.classes)}.")
    notes.append(f"all {len(task.classes)} classes equally common")
    return (1 / len(task.classes),) * len(task.classes)


def _floor(request: PlanRequest, metric: str, classes: int) -> float:
    if not math.isnan(request.floor):
        return request.floor
    if metric.startswith("auroc"):
        return 0.5
    return 1 / classes if metric == "f1_macro" else math.nan


def _of_one(
    request: PlanRequest,
    errors: tuple[StandardError, StandardError],
    score: float,
    floor: float,
    assumed: str,
    number: Number,
    task: Task,
) -> list[PlannedSize]:
    """Return the patients for an interval and for a score above the floor; `errors` are those at score and floor."""
    se, at_floor = errors
    width = request.margin if math.isnan(request.half_width) else request.half_width
    found = [
        PlannedSize(
            f"95 % interval of ± {number.margin(width, task.unit)}", assumed, patients_for_half_width(se, width)
        )
    ]
    gain = (score - floor) if number.higher_is_better else (floor - score)
    if gain > 0:
        needed = patients_above_floor(se, at_floor, gain, request.power, request.tests)
        found.append(
            PlannedSize(f"shown to be better than the floor of {number.with_unit(floor, task.unit)}", assumed, needed)
        )
    return found


def _not_above(score: float, floor: float, number: Number, task: Task) -> list[str]:
    """Return a sentence on a score that is not better than the floor, or none."""
    if math.isnan(floor) or (score > floor if number.higher_is_better else score < floor):
        return []
    floor_text = number.with_unit(floor, task.unit)
    return [
        f"{number.with_unit(score, task.unit)} is not better than the floor of {floor_text}, so no number shows this"
    ]


def _of_two(request: PlanRequest, se: StandardError, assumed: str, number: Number, task: Task) -> list[PlannedSize]:
    margin = number.margin(request.margin, task.unit)
    settings = request.margin, request.power, request.tests
    return [
        PlannedSize(f"two models that differ by {margin} told apart", assumed, patients_for_difference(se, *settings)),
        PlannedSize(
            f"equal models shown to be worse by less than {margin}", assumed, patients_for_not_worse(se, *settings)
        ),
    ]


def _of_pilot(request: PlanRequest, task: Task, number: Number, notes: list[str]) -> list[PlannedSize]:
    """Return the numbers of patients with the variation of one or two results."""
    entries = [_entry(path, task) for path in request.results]
    for entry in entries:
        if number.key not in entry.result.overall:
            known = ", ".join(entry.result.overall)
            raise BadPredictions(f"{entry.path} has no interval of {number.key}. Give --metric one of: {known}.")
    sizes = []
    for entry in entries:
        estimate = entry.result.overall[number.key]
        if math.isnan(estimate.se) or not estimate.se > 0:
            raise BadPredictions(
                f"{entry.path}: {number.key} has no standard error ({estimate.reason}). Use more patients."
            )
        floor = request.floor if not math.isnan(request.floor) else math.nan
        if math.isnan(floor) and number.key == entry.result.metric:
            floor = entry.result.floor.value
        assumed = f"{entry.setting}: {number.with_unit(estimate.value, task.unit)}, {estimate.n_patients} patients"
        se = _scaled(estimate.se, estimate.n_patients)
        sizes += _of_one(request, (se, se), estimate.value, floor, assumed, number, task)
        notes += _not_above(estimate.value, floor, number, task)
    if len(entries) == 2:
        if request.metric and request.metric != entries[0].result.metric:
            raise BadConfig(f"two results are compared by {entries[0].result.metric}. Leave --metric out.")
        first, second = (replace(predictions_of(entry), refits=None) for entry in entries)
        found = compare(first, second)
        spread = found.detectable / DETECTABLE
        if not spread > 0:
            raise BadPredictions(
                "the difference of the two results does not vary over patients. Give two other results."
            )
        assumed = f"the difference varies as in the {found.n_patients} patients of these results"
        sizes += _of_two(request, _scaled(spread, found.n_patients), assumed, number, task)
        notes.append(
            "the variation of the training is not included: it does not shrink with the number of test patients"
        )
    return sizes


def _scaled(se: float, patients: int) -> StandardError:
    return lambda n: se * math.sqrt(patients / n)


def _entry(path: Path, task: Task) -> ResultEntry:
    if not path.exists():
        raise MissingData(f"there is no file {path}. Give the JSON file of a result.")
    if path.is_file() and path.suffix.lower() != ".json":
        raise BadPredictions(
            f"{path} is not the JSON file of a result. Give that file, which is beside its predictions."
        )
    collection = collect([path])
    if len(collection.entries) != 1:
        reason = collection.problems[0].message if collection.problems else f"{len(collection.entries)} results"
        raise BadPredictions(f"{path} is not one result: {reason}. Give the JSON file of a result.")
    (entry,) = collection.entries
    if entry.result.task != task.name:
        raise BadPredictions(
            f"{path} is a result of {entry.result.task}, not of {task.name}. Give results of one task."
        )
    return entry


def most(sizes: Sequence[PlannedSize]) -> int | None:
    """Return the largest number of patients; None if one is too large to be searched."""
    found = [one.patients for one in sizes]
    return None if None in found else max(number for number in found if number is not None)
