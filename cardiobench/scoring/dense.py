"""Scores of masks and landmarks: frame by frame, then by unit, with intervals over patients like any other score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.metrics.load import load_formula
from cardiobench.metrics.metric import Metric
from cardiobench.results.provenance import stamp
from cardiobench.results.score_result import Bounds, Breakdown, Estimate, Floor, NumberFacts, ScoreResult
from cardiobench.results.verdict import Rank
from cardiobench.scoring.context import ResultContext
from cardiobench.scoring.families import family_of
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import FEW_PATIENTS, GENERATED, MIN_PATIENTS
from cardiobench.scoring.verdict import judge
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.tasks.dense_information import dealt_test, shrunk
from cardiobench.tasks.dense_label import LENGTHS, DenseLabel
from cardiobench.tasks.floors import COLLAPSED_SPREAD
from cardiobench.tasks.frame_coverage import FrameCoverage
from cardiobench.tasks.frame_numbers import LENGTH_ERRORS, number_of, shown_by_structure, structure_columns
from cardiobench.tasks.groups import adjust_gaps, breakdowns, split_rows
from cardiobench.tasks.mask_volumes import MaskVolumes
from cardiobench.tasks.unit_means import estimate_mean, mean_metric, mean_sampler

REACHED_BY = {"segmentation": "the mean mask of the train frames", "landmarks": "the mean points of the train frames"}


@dataclass
class DenseScorer:
    """Scores predictions of a dense task frame by frame.

    Attributes:
        task: of the labels.
        with_volumes: measure the discs of the cavities too, which floors do not need.
        rows: one dict per frame: id, patient_id, split, recording, frame, view, phase and its numbers.
        truths: small pictures of the true masks, or the true points, in the order of the rows.
        answers: the same of the predictions.
        volumes: discs of the true and of the predicted masks.
    """

    task: Task
    with_volumes: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)
    truths: list[np.ndarray] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    volumes: MaskVolumes = field(default_factory=MaskVolumes)

    def update(self, label: DenseLabel, prediction: np.ndarray) -> None:
        """Score the prediction of one labelled frame.

        Args:
            label: with its mask or points.
            prediction: mask uint8 (H, W), or x and y of the points (k, 2), in pixels of the frame as it was recorded.
        """
        row = {
            "id": label.unit,
            "patient_id": label.patient,
            "split": label.split,
            "recording": label.recording,
            "frame": label.frame,
            "view": label.view,
            "phase": label.phase,
        }
        if label.mask is not None:
            row |= self._of_mask(label, label.mask, prediction)
            self.truths.append(shrunk(label.mask))
            self.answers.append(shrunk(prediction))
        elif label.points is not None:
            sides = label.spacing or (1.0, 1.0)
            row |= self._of_points(label.points, prediction, sides)
            self.truths.append(label.points * sides[::-1])
            self.answers.append(prediction * sides[::-1])
        else:
            raise ValueError(f"{label.recording}, frame {label.frame} has no label to score: {label.reason}")
        self.rows.append(row)

    def _of_mask(self, label: DenseLabel, mask: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
        names = self.task.structures
        values = load_formula("dice").dice_of_frame(mask, prediction, len(names))
        numbers = {f"dice_{name}": value for name, value in zip(names, values, strict=True)}
        if label.spacing is not None:
            values = load_formula("hausdorff95").hausdorff95_of_frame(mask, prediction, len(names), label.spacing)
            numbers |= {f"hausdorff95_{name}": value for name, value in zip(names, values, strict=True)}
        if self.with_volumes:
            self.volumes.update(label, mask == 1, prediction == 1)
        return numbers

    def _of_points(self, points: np.ndarray, prediction: np.ndarray, sides: tuple[float, float]) -> dict[str, float]:
        names = self.task.structures
        errors = load_formula("landmark_error").radial_errors(points, prediction, sides)
        numbers = {f"landmark_error_{name}": value for name, value in zip(names, errors, strict=True)}
        for radius in load_formula("landmark_error").RADII:
            found = np.where(np.isnan(errors), np.nan, errors <= radius)
            numbers |= {f"within_{radius:g}_{name}": value for name, value in zip(names, found, strict=True)}
        place = {name: number for number, name in enumerate(names)}
        for length, (one, other) in LENGTHS.items():
            if {one, other} <= set(place):
                spans = [(ends[place[other]] - ends[place[one]]) * sides[::-1] for ends in (points, prediction)]
                numbers[LENGTH_ERRORS[length].key] = abs(float(np.hypot(*spans[1]) - np.hypot(*spans[0])))
        return numbers

    @property
    def frame(self) -> pd.DataFrame:
        """One row per frame, as saved beside the result."""
        return pd.DataFrame(self.rows)

    @property
    def unit_scores(self) -> pd.DataFrame:
        """The numbers of each unit; see `unit_scores`."""
        return unit_scores(self.task, self.frame)


def unit_scores(task: Task, frame: pd.DataFrame) -> pd.DataFrame:
    """Average the numbers of frames over units: of each structure the mean over its frames, of each metric that over structures.

    Args:
        task: of the labels.
        frame: one row per frame, as saved beside a result.

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


def unit_predictions(task: Task, frame: pd.DataFrame, source: str) -> Predictions:
    """Return the ranking score of each unit in the form in which models are compared: answers, whose truth is 0.

    Args:
        task: segmentation or landmarks.
        frame: one row per frame, as saved beside a result.
        source: for messages.
    """
    table = unit_scores(task, frame)
    units = table.assign(y_true=0.0, y_pred=table[task.metrics[0]]).dropna(subset=["y_pred"]).reset_index()
    return Predictions(task, units[["id", "patient_id", "y_true", "y_pred"]], len(units), source)


def score_dense(
    scorer: DenseScorer,
    references: pd.DataFrame,
    context: ResultContext,
    *,
    floors: Mapping[str, DenseScorer],
    expected: int,
    ef: pd.Series | None = None,
) -> ScoreResult:
    """Score the predictions of a dense task; its coverage counts labelled frames.

    Args:
        scorer: with every labelled test frame that was predicted.
        references: id, patient_id, split, y_true (labelled frames) and the columns of the task's groups, one row per unit.
        context: Origin of the answers and seed of the draws.
        floors: name -> scorer of answers that need no model, on the same frames; `best_uninformed` is the mean mask or the
            mean points, by which the verdict is judged.
        expected: test units of the complete release.
        ef: listed ejection fraction of each unit, %; adds its error by the discs of the masks.
    """
    task, table = scorer.task, scorer.unit_scores
    key = task.metrics[0]
    patients = table.pop("patient_id")
    overall = {str(name): estimate_mean(number_of(task, str(name)), table[name], patients) for name in table}
    if ef is not None:
        overall |= scorer.volumes.estimates(ef, patients)
    metric, sampler = mean_metric(number_of(task, key)), mean_sampler(table[key], patients, context.seed)
    floor_scores = {name: other.unit_scores[key] for name, other in floors.items()}
    floor_table = {
        name: Floor(
            float(values.mean()),
            reached_by=REACHED_BY[task.kind] if name == "best_uninformed" else name.replace("_", " "),
        )
        for name, values in floor_scores.items()
    }
    estimate, bounds = overall[key], None
    coverage = FrameCoverage.of(references, expected, scorer.frame)
    if coverage.missing:
        estimate, bounds = _worst_case(metric, table[key], coverage, floor_scores)
    information = dealt_test(task, scorer.frame, scorer.truths, scorer.answers, seed=context.seed)
    verdict = judge(
        estimate,
        floor_table["best_uninformed"],
        information,
        family_of(task.name, context.protocol, context.variant),
        metric.higher_is_better,
    )
    collapsed = _collapsed(task, scorer.truths, scorer.answers)
    groups, skipped = _groups(metric, key, sampler, task, references, table.index[table[key].notna()])
    few = MIN_PATIENTS <= estimate.n_patients < FEW_PATIENTS
    sentences = [
        *([GENERATED] if context.generated else []),
        *context.warnings,
        *coverage.sentences(),
        *(["collapsed: every answer is the same"] if collapsed else []),
        *([f"{verdict.word}: {verdict.sentence}"] if verdict.word.rank is not Rank.WINS else []),
        *([f"rests on {estimate.n_patients} patients: the interval is rough below {FEW_PATIENTS}"] if few else []),
        *scorer.volumes.sentences(),
    ]
    return ScoreResult(
        task=task.name,
        metric=key,
        higher_is_better=metric.higher_is_better,
        unit=task.unit,
        overall=overall,
        numbers={key: NumberFacts.of(number_of(task, key)) for key in overall},
        floors=floor_table,
        verdict=verdict,
        collapsed=collapsed,
        coverage=coverage.counts,
        protocol=context.protocol,
        variant=context.variant,
        options=dict(context.options),
        dataset=dict(context.dataset),
        model=dict(context.model),
        groups=groups,
        skipped_groups=skipped,
        bounds=bounds,
        generated=context.generated,
        seen_in_pretraining=context.seen_in_pretraining,
        warnings=tuple(sentences),
        stamp=stamp(seed=context.seed, resamples=context.resamples),
    )


def _worst_case(
    metric: Metric, scores: pd.Series, coverage: FrameCoverage, floor_scores: Mapping[str, pd.Series]
) -> tuple[Estimate, Bounds]:
    """Return the estimate if every frame without a score were as bad as can be, and the range of such cases.

    The worst Dice is 0; the worst error is the largest that any unit has, by the model or by a floor.
    """
    largest = max(float(values.max()) for values in (scores, *floor_scores.values()))
    worst, best = (0.0, 1.0) if metric.higher_is_better else (largest, 0.0)
    filled = {value: coverage.completed(scores, value) for value in (worst, best)}
    estimate = estimate_metric(metric, mean_sampler(filled[worst], coverage.patients))[metric.name]
    return estimate, Bounds(coverage.missing, estimate.value, float(filled[best].mean()))


def _groups(
    metric: Metric, key: str, sampler: Sampler, task: Task, references: pd.DataFrame, units: pd.Index
) -> tuple[dict[str, Breakdown], dict[str, str]]:
    """Score each breakdown of the task; with the groups that are too small."""
    rows = references.set_index(references["id"].astype(str)).loc[units].reset_index(drop=True)
    splits = {group.name: split_rows(group, rows, ()) for group in task.groups if group.column in rows}
    chosen = {name: split.rows for name, split in splits.items() if split.rows}
    found = breakdowns(metric, key, sampler, chosen)
    plain = {name: replace(entry, others={}) for name, entry in found.items()}
    return adjust_gaps(plain), {name: why for split in splits.values() for name, why in split.skipped.items()}


def _collapsed(task: Task, truths: Sequence[np.ndarray], answers: Sequence[np.ndarray]) -> bool:
    """Tell whether all answers are (nearly) the same."""
    if len(answers) < 2:
        return False
    if task.kind == "segmentation":
        return all(np.array_equal(answer, answers[0]) for answer in answers[1:])
    return bool(np.std(answers, axis=0).max() <= COLLAPSED_SPREAD * np.nanstd(truths, axis=0).max())
