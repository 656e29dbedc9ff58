"""Find the probabilities of one class in results: those of test patients and, for recalibration, of validation patients."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cardiobench.core.command import command
from cardiobench.core.errors import BadConfig, BadPredictions, MissingData
from cardiobench.core.registry import look_up
from cardiobench.data import catalog
from cardiobench.report.contests import contest_of, model_names, predictions_of, ranked_results
from cardiobench.results.collect import Problem, ResultEntry, collect
from cardiobench.results.predictions_file import load_validation
from cardiobench.scoring.score import GENERATED
from cardiobench.stats.clusters import Clusters
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.task import Task, lacks_metrics

METRICS = ("calibration_report", "classification_report")
"""Metrics that calibration computes for a task of any kind."""


@dataclass(frozen=True)
class Probabilities:
    """Probabilities of one class.

    Attributes:
        truth: Whether each row has the class, bool (n,).
        given: Probability of the class, (n,).
        clusters: Patients of the rows.
    """

    truth: npt.NDArray[np.bool_]
    given: npt.NDArray[np.float64]
    clusters: Clusters


@dataclass(frozen=True)
class ModelAnswers:
    """Answers of one model under one protocol.

    Attributes:
        name: Name in tables.
        protocol: Protocol and variant, or the condition of external predictions.
        test: Probabilities of the test patients.
        validation: Probabilities of the validation patients; None if there are none.
    """

    name: str
    protocol: str
    test: Probabilities
    validation: Probabilities | None


@dataclass(frozen=True)
class FoundAnswers:
    """Answers of all models on one class of a task.

    Attributes:
        task: Name of the task.
        label: Name of the class.
        answers: Answers by model and protocol.
        notes: Sentences for the reader.
        problems: Results that cannot be used.
    """

    task: str
    label: str
    answers: tuple[ModelAnswers, ...]
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def find_answers(folders: Sequence[Path], name: str, label: str = "", protocol: str = "") -> FoundAnswers:
    """Return the probabilities of one class in the ranked results of a task.

    Args:
        folders: Folders of results.
        name: Name of the task.
        label: Name of the class; empty for the positive class of two.
        protocol: Protocol and variant; empty for all.

    Raises:
        BadConfig: The task has no classes, or the class is not one of them or not given.
        MissingData: No result has probabilities for the task.
    """
    (task,) = look_up([name], catalog.task)
    chosen = chosen_class(task, label)
    if lacking := lacks_metrics("calibration", METRICS):
        raise MissingData(f"{lacking}. Reinstall cardiobench, or copy their folders back to hf_metrics/.")
    collection = collect(folders)
    groups = ranked_results([entry for entry in collection.entries if entry.result.task == task.name])
    groups = {key: group for key, group in groups.items() if protocol in ("", key[1])}
    if not groups:
        others = sorted({contest_of(one.result)[1] for one in collection.entries if one.result.task == task.name})
        known = f"There are {', '.join(others)}: choose one with --protocol" if protocol and others else ""
        advice = known or f"Run: {command('eval', '--model', 'ID', '--tasks', task.name)}"
        wanted = f" by {protocol}" if protocol else ""
        raise MissingData(f"no ranked result of {task.name}{wanted} in {' '.join(map(str, folders))}. {advice}")
    answers, problems = list[ModelAnswers](), list(collection.problems)
    for (_, condition), group in groups.items():
        for model, entry in zip(model_names(group), group, strict=True):
            try:
                answers.append(_answers(entry, model, condition, task, chosen))
            except BadPredictions as error:
                problems.append(
                    Problem(str(entry.path), "no probabilities", str(error), f"{entry.setting}, {task.name}")
                )
    if not answers:
        raise MissingData(f"no result of {task.name} has probabilities ({problems[-1].message}).")
    generated = any(entry.result.generated for group in groups.values() for entry in group)
    notes = (GENERATED,) if generated else ()
    return FoundAnswers(task.name, chosen, tuple(answers), notes, tuple(problems))


def chosen_class(task: Task, label: str) -> str:
    """Return the class whose probabilities are measured.

    Raises:
        BadConfig: The task has no classes, or the class is not one of them or not given.
    """
    if not task.classes or task.rules.answer not in ("class", "labels"):
        raise BadConfig(
            f"{task.name} has no classes, so it has no probabilities to calibrate (its kind is {task.kind}). "
            "Choose a task with classes; `cardiobench report` shows bias and limits of agreement of measurements."
        )
    if label and label not in task.classes:
        raise BadConfig(f"{task.name} has no class '{label}'. Give --class one of: {', '.join(task.classes)}.")
    if not label and not task.rules.two_classes:
        raise BadConfig(f"{task.name} has {len(task.classes)} classes. Give --class one of: {', '.join(task.classes)}.")
    return label or task.classes[1]


def _answers(entry: ResultEntry, name: str, condition: str, task: Task, label: str) -> ModelAnswers:
    test = probabilities_of(predictions_of(entry), label)
    frame = load_validation(entry.result, entry.path)
    validation = None
    if frame is not None:
        stored: TableAnswers = task.rules.stored_answers(frame, task, len(frame), name)
        validation = probabilities_of(stored, label)
    return ModelAnswers(name, condition, test, validation)


def probabilities_of(answers: TableAnswers, label: str) -> Probabilities:
    """Return the probabilities of a class, for the rows in which it was measured.

    Raises:
        BadPredictions: The answers are not probabilities, or the class was measured in no row.
    """
    sample, place = answers.sample(), answers.task.classes.index(label)
    if sample.probabilities is None:
        raise BadPredictions(f"{answers.source} gives classes of {answers.task.name}, not probabilities.")
    truth = sample.y_true[:, place] if sample.multilabel else (sample.y_true == place).astype(np.float64)
    known = ~np.isnan(truth)
    if not known.any():
        raise BadPredictions(f"{label} was not measured in any recording of {answers.source}.")
    given = np.asarray(sample.probabilities[known, place], dtype=np.float64)
    return Probabilities(truth[known] == 1, given, Clusters.of(answers.patients[known]))
