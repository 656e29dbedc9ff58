"""Predictions to a result: every metric with its interval, floor, verdict, groups and what its reader should know."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from cardiobench.core.errors import first_n
from cardiobench.data.spec import Task
from cardiobench.metrics.load import load_metric, load_metrics
from cardiobench.metrics.metric import Metric
from cardiobench.results.provenance import stamp
from cardiobench.results.score_result import Bounds, Breakdown, Estimate, Floor, Judgement, NumberFacts, ScoreResult
from cardiobench.results.verdict import Rank
from cardiobench.scoring.context import DEFAULT_CONTEXT, ResultContext
from cardiobench.scoring.families import family_of
from cardiobench.scoring.metrics import metrics_of
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.verdict import Rarest, judge
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric, estimate_metrics, score_classes
from cardiobench.stats.information import information_test
from cardiobench.stats.variability import training_spread, widen
from cardiobench.tasks.bounds import completed
from cardiobench.tasks.floors import best_constant, best_uninformed, floors, is_collapsed
from cardiobench.tasks.groups import (
    MIN_PER_CLASS,
    Split,
    adjust_gaps,
    breakdowns,
    comparable_classes,
    intersection,
    split_rows,
)
from cardiobench.tasks.labels import label_values

FEW_PATIENTS = 20
GENERATED = "generated recordings: the score says nothing about patients"


def score(predictions: Predictions, references: pd.DataFrame, context: ResultContext = DEFAULT_CONTEXT) -> ScoreResult:
    """Score predictions against their references.

    Args:
        predictions: Answers of the model, joined with the references.
        references: id, patient_id, split, y_true of all splits; the train rows give further floors.
        context: Origin of the answers, metrics and draws.

    Returns:
        The result. A number that cannot be had is NaN and says why.
    """
    task, sample, clusters = predictions.task, predictions.sample(), Clusters.of(predictions.patients)
    loaded = load_metrics(context.metrics or metrics_of(task))
    ranking, key = loaded[0], loaded[0].primary_key
    present = sample.present_classes(len(task.classes))
    if (
        task.classes and not sample.multilabel and present.sum() < 2
    ):  # nothing to tell apart: the share answered right, and no comparison
        ranking, key = load_metric("classification_report"), "accuracy"
        loaded = list(dict.fromkeys((*loaded, ranking)))
    sampler = Sampler(sample, clusters, present, context.resamples, context.seed)
    overall = estimate_metrics(loaded, sampler)
    spread = training_spread(context.refit_scores) if len(context.refit_scores) > 1 else None
    if spread is not None:
        overall[key] = widen(overall[key], spread)
    table = floors(ranking, key, task, references, sample.y_true, context.seed)
    groups, skipped, notes = _groups(ranking, key, sampler, predictions)
    verdict, bounds = _judge(
        ranking, key, sampler, overall[key], table["best_uninformed"], predictions, context, spread
    )
    collapsed = is_collapsed(task, sample)
    return ScoreResult(
        task=task.name,
        metric=key,
        higher_is_better=ranking.higher_is_better,
        unit=task.unit,
        overall=overall,
        numbers={key: NumberFacts.of(number) for metric in loaded for key, number in metric.numbers.items()},
        floors=table,
        verdict=verdict,
        collapsed=collapsed,
        coverage={"scored": len(sample), "expected": predictions.expected},
        protocol=context.protocol,
        variant=context.variant,
        options=dict(context.options),
        dataset=dict(context.dataset or {"name": task.dataset}),
        model=dict(context.model or {"name": f"file: {predictions.source}"}),
        groups=groups,
        skipped_groups=skipped,
        bounds=bounds,
        per_class=score_classes(sampler, task.classes) if sample.multilabel else {},
        generated=context.generated,
        out_of_fold=predictions.out_of_fold,
        seen_in_pretraining=context.seen_in_pretraining,
        warnings=(
            *([GENERATED] if context.generated else []),
            *predictions.warnings,
            *context.warnings,
            *_warnings(predictions, overall[key], table, verdict, collapsed, clusters),
            *notes,
        ),
        stamp=stamp(seed=context.seed, resamples=context.resamples),
    )


def _groups(
    ranking: Metric, key: str, sampler: Sampler, predictions: Predictions
) -> tuple[dict[str, Breakdown], dict[str, str], list[str]]:
    """Score each breakdown of the task, and women and men by age together.

    Returns:
        The breakdowns, why other groups have no score, and sentences on what the groups' scores are means of.
    """
    task, frame = predictions.task, predictions.frame
    several = task.kind == "multilabel"
    classes = [] if several else [name for name, here in zip(task.classes, sampler.present, strict=True) if here]
    splits: dict[str, Split] = {group.name: split_rows(group, frame, classes) for group in task.groups}
    by_name = {group.name: group for group in task.groups}
    if {"sex", "age"} <= set(by_name):
        splits["sex x age"] = intersection(by_name["sex"], by_name["age"], frame, classes)
    skipped = {name: why for split in splits.values() for name, why in split.skipped.items()}
    scored = {name: split.rows for name, split in splits.items() if split.rows}
    if not several:
        return adjust_gaps(breakdowns(ranking, key, sampler, scored)), skipped, []
    found: dict[str, Breakdown] = {}
    notes = []
    for name, rows in scored.items():
        chosen = comparable_classes(sampler, rows)
        if not chosen.any():
            skipped[name] = f"no class that {MIN_PER_CLASS} patients of each group have and {MIN_PER_CLASS} have not"
            continue
        found |= breakdowns(ranking, key, sampler.take_classes(chosen), {name: rows})
        notes.append(
            f"scores by {name} are over {chosen.sum()} of {len(chosen)} classes, which {MIN_PER_CLASS} patients of each group "
            "have"
        )
    return adjust_gaps(found), skipped, notes


def _judge(
    ranking: Metric,
    key: str,
    sampler: Sampler,
    estimate: Estimate,
    floor: Floor,
    predictions: Predictions,
    context: ResultContext,
    spread: float | None,
) -> tuple[Judgement, Bounds | None]:
    """Judge the score; where answers are missing, with all of them as wrong as they can be."""
    task, missing, bounds = predictions.task, predictions.missing, None
    if missing is not None:
        truth = label_values(missing["y_true"], task)
        worst = completed(sampler.sample, truth, sampler.classes, task.label_range)
        best = completed(sampler.sample, truth, sampler.classes, task.label_range, worst=False)
        patients = np.concatenate([predictions.patients, missing["patient_id"].to_numpy()])
        present = worst.present_classes(sampler.classes)
        sampler = Sampler(worst, Clusters.of(patients), present, sampler.resamples, sampler.seed)
        estimate = estimate_metric(ranking, sampler, [key])[key]
        estimate = estimate if spread is None else widen(estimate, spread)
        constant = best_constant(ranking, key, task, worst.y_true)
        floor = best_uninformed(key, worst.y_true, len(task.classes), constant, ranking)
        bounds = Bounds(len(missing), estimate.value, float(ranking.value(best)[key]))
    information = information_test(sampler.sample, sampler.clusters, sampler.classes, seed=sampler.seed)
    family = family_of(task.name, context.protocol, context.variant)
    rarest = rarest_class(sampler, task)
    return judge(estimate, floor, information, family, ranking.higher_is_better, rarest), bounds


def rarest_class(sampler: Sampler, task: Task) -> Rarest | None:
    """Return the class of the test set that the fewest patients have; None for numbers and for a mean over classes."""
    if sampler.sample.multilabel:
        return None
    counts = {
        task.classes[code]: sampler.clusters.count_in(sampler.sample.y_true == code)
        for code in np.flatnonzero(sampler.present)
    }
    return Rarest(*min(counts.items(), key=lambda item: item[1])) if counts else None


def _warnings(
    predictions: Predictions,
    estimate: Estimate,
    table: Mapping[str, Floor],
    verdict: Judgement,
    collapsed: bool,
    clusters: Clusters,
) -> list[str]:
    """Return what the reader of the number should know, most serious first."""
    frame, task = predictions.frame, predictions.task
    sentences = []
    if collapsed:
        one_class = task.kind in ("binary", "multiclass")
        spread = "every answer is the same class" if one_class else "the answers hardly vary"
        sentences.append(f"collapsed: {spread}")
    if verdict.word.rank is not Rank.WINS:
        sentences.append(f"{verdict.word}: {verdict.sentence}")
    if MIN_PATIENTS <= estimate.n_patients < FEW_PATIENTS:
        sentences.append(f"rests on {estimate.n_patients} patients: the interval is rough below {FEW_PATIENTS}")
    sentences += _of_labels(predictions, clusters) if task.kind == "multilabel" else _of_classes(frame, task, clusters)
    if estimate.reason:
        sentences.append(estimate.reason)
    return sentences


def _of_classes(frame: pd.DataFrame, task: Task, clusters: Clusters) -> list[str]:
    """Return the classes that few patients have, and those that none has."""
    sentences, truth = [], frame["y_true"].to_numpy()
    for name in task.classes:
        count = clusters.count_in(truth == name)
        if 0 < count < MIN_PATIENTS:
            sentences.append(f"rests on {count} patients with {name}")
        elif not count:
            sentences.append(f"no scored row is {name}")
    return sentences


def _of_labels(predictions: Predictions, clusters: Clusters) -> list[str]:
    """Return the classes that few patients have, and those left out of the mean."""
    classes, truth = np.array(predictions.task.classes), predictions.sample().y_true
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
