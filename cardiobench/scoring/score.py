"""Predictions to a result: the score with its interval, floors, groups and everything that its reader should know."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.results.provenance import stamp
from cardiobench.results.score_result import Estimate, Floor, ScoreResult, Verdict
from cardiobench.scoring.bootstrap import RESAMPLES, estimate, resample
from cardiobench.scoring.floors import floor_sample, floors, is_collapsed, verdict
from cardiobench.scoring.groups import MIN_PATIENTS, breakdown, resamples_by_group, split_rows
from cardiobench.scoring.metrics import load_metric
from cardiobench.scoring.predictions import Predictions

FEW_PATIENTS = 30


def score(
    predictions: Predictions,
    references: pd.DataFrame,
    *,
    metrics: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    protocol: str = "predictions",
    variant: str = "",
    options: Mapping[str, Any] | None = None,
    dataset: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    seen_in_pretraining: bool | None = None,
) -> ScoreResult:
    """Score predictions against their references.

    Args:
        predictions: what the model answered, joined with the references.
        references: id, patient_id, split, y_true of all splits; the train rows give the floors.
        metrics: folders of `hf_metrics/`, the first one ranks; None means those of the task.
        resamples: B of the bootstrap over patients.
        seed: of every draw.
        protocol: how the predictions came about.
        variant: of the protocol.
        options: of the protocol.
        dataset: name, version, digest.
        model: name, revision, loaded_by, preprocessing; by default the source of the predictions.
        seen_in_pretraining: whether the model saw this dataset before; None when nobody knows.

    Returns:
        The result. A number that cannot be had is NaN and says why.
    """
    task, sample, patients = predictions.task, predictions.sample(), predictions.patients
    loaded = [load_metric(name) for name in metrics or task.metrics]
    ranking, key = loaded[0], loaded[0].primary_key

    floor = floors(ranking, key, task, references, sample.y_true, seed)
    baseline = (
        None if np.isnan(floor["best_constant"].value) else floor_sample(floor["best_constant"], task, sample.y_true)
    )
    splits = {group.name: split_rows(group, predictions.frame) for group in task.groups}

    def everything(weights: np.ndarray) -> dict[object, np.ndarray]:
        """All numbers of the result in the same resamples."""
        drawn = {name: values for metric in loaded for name, values in metric.resamples(sample, weights).items()}
        if baseline is not None:
            drawn["", "floor"] = ranking.resamples(baseline, weights)[key]
        for name, split in splits.items():
            by_group = resamples_by_group(ranking, key, sample, split.rows, weights)
            drawn |= {(name, label): values for label, values in by_group.items()}
        return drawn

    drawn = resample(everything, patients, resamples, seed)
    overall = {
        name: estimate(value, drawn[name], patients)
        for metric in loaded
        for name, value in metric.value(sample).items()
    }
    beats = _against_floor(overall[key].value, floor["best_constant"], drawn, key, ranking.direction[key], patients)
    groups = {
        name: breakdown(ranking, key, sample, patients, split.rows, {label: drawn[name, label] for label in split.rows})
        for name, split in splits.items()
        if split.rows
    }
    skipped = {name: why for split in splits.values() for name, why in split.skipped.items()}
    collapsed = is_collapsed(task, sample)
    sentences = _warnings(predictions, overall[key], floor, beats, collapsed, bool(ranking.direction[key]))
    return ScoreResult(
        task=task.name,
        metric=key,
        higher_is_better=bool(ranking.direction[key]),
        unit=task.unit,
        overall=overall,
        floors=floor,
        beats_floor=beats,
        collapsed=collapsed,
        coverage={"scored": len(sample), "expected": predictions.expected},
        protocol=protocol,
        variant=variant,
        options=dict(options or {}),
        dataset=dict(dataset or {"name": task.dataset}),
        model=dict(model or {"name": f"file: {predictions.source}"}),
        groups=groups,
        skipped_groups=skipped,
        seen_in_pretraining=seen_in_pretraining,
        warnings=(*predictions.warnings, *sentences),
        stamp=stamp(seed=seed, resamples=resamples),
    )


def _against_floor(value: float, floor: Floor, drawn, key: str, higher_is_better: bool, patients) -> Verdict:
    if np.isnan(floor.value) or len(set(patients)) < 2:
        sign = 1 if higher_is_better else -1
        return Verdict("unknown", sign * (value - floor.value), np.nan, np.nan)
    return verdict(value, floor.value, drawn[key], drawn["", "floor"], higher_is_better)


def _warnings(
    predictions: Predictions,
    estimate: Estimate,
    floor: Mapping[str, Floor],
    beats: Verdict,
    collapsed: bool,
    higher_is_better: bool,
) -> list[str]:
    """What the reader of the number should know, most serious first."""
    frame, task = predictions.frame, predictions.task
    sentences = []
    if collapsed:
        spread = "every answer is the same class" if task.classes else "the answers hardly vary"
        sentences.append(f"collapsed: {spread}")
    if beats.verdict in ("tied", "no"):
        relation = "not distinguishable from" if beats.verdict == "tied" else "worse than"
        sentences.append(f"{relation} the best constant answer")
    margin = estimate.value - floor["chance"].value
    if (margin < 0) if higher_is_better else (margin > 0):
        sentences.append("worse than answers drawn by chance")
    if estimate.n_patients < FEW_PATIENTS:
        sentences.append(f"rests on {estimate.n_patients} patients: the interval is rough below {FEW_PATIENTS}")
    for name in task.classes:
        count = frame.loc[frame["y_true"] == name, "patient_id"].nunique()
        if 0 < count < MIN_PATIENTS:
            sentences.append(f"rests on {count} patients with {name}")
        elif not count:
            sentences.append(f"no scored row is {name}")
    if estimate.reason:
        sentences.append(estimate.reason)
    return sentences
