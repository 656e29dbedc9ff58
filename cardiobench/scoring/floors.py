"""What a score is worth: the same metric of answers that need no model."""

import numpy as np
import pandas as pd

from cardiobench.data.spec import Task
from cardiobench.results.score_result import Floor, Verdict
from cardiobench.scoring.bootstrap import percentile_interval
from cardiobench.scoring.metrics import Metric, ScoringInput

CHANCE_DRAWS = 200
COLLAPSED_SPREAD = 0.01  # of the references' standard deviation


def floors(metric: Metric, key: str, task: Task, references: pd.DataFrame, y_true: np.ndarray, seed: int = 0):
    """The floors of a task: `best_constant`, `train_constant` and `chance`.

    Args:
        metric: the metric that ranks models.
        key: its key.
        task: regression or classification.
        references: of all splits; the train rows give the second and third floor.
        y_true: true values or class codes of the scored rows, (n,).
        seed: of the draws by chance.

    Returns:
        {name: Floor}.
    """
    train = references.loc[references["split"] == "train", "y_true"]
    code = {name: place for place, name in enumerate(task.classes)}
    known = train.map(code).to_numpy(np.int64) if task.classes else train.to_numpy(np.float64)
    return {
        "best_constant": best_constant(metric, key, task, y_true),
        "train_constant": train_constant(metric, key, task, y_true, known),
        "chance": chance(metric, key, y_true, known, seed),
    }


def constant(y_true: np.ndarray, value: float) -> ScoringInput:
    """The rows with one and the same answer."""
    return ScoringInput(y_true, np.full(len(y_true), value, dtype=y_true.dtype))


def best_constant(metric: Metric, key: str, task: Task, y_true: np.ndarray) -> Floor:
    """The best that one answer to everything reaches on these rows.

    Of a classification the best class; of a regression the median (which no constant beats in absolute error) or the
    mean (which none beats in squared error), whichever is better.
    """
    values = range(len(task.classes)) if task.classes else (np.median(y_true), np.mean(y_true))
    scored = [(metric.value(constant(y_true, value))[key], value) for value in values]
    defined = [pair for pair in scored if not np.isnan(pair[0])]
    if not defined:
        return Floor(np.nan, reason="the metric is undefined for a constant answer")
    best = max if metric.direction[key] else min
    score, value = best(defined, key=lambda pair: pair[0])
    return Floor(float(score), _answer(task, value))


def train_constant(metric: Metric, key: str, task: Task, y_true: np.ndarray, train: np.ndarray) -> Floor:
    """The score of the answer that the train split suggests: its majority class, or its mean."""
    if not len(train):
        return Floor(np.nan, reason="the references have no train rows")
    value = np.bincount(train).argmax() if task.classes else train.mean()
    return Floor(float(metric.value(constant(y_true, value))[key]), _answer(task, value))


def chance(metric: Metric, key: str, y_true: np.ndarray, train: np.ndarray, seed: int = 0) -> Floor:
    """Mean score of answers drawn from the labels of the train split, whatever the input."""
    if not len(train):
        return Floor(np.nan, reason="the references have no train rows")
    rng = np.random.default_rng(seed)
    drawn = rng.choice(train, size=(CHANCE_DRAWS, len(y_true)))
    return Floor(float(np.mean([metric.value(ScoringInput(y_true, answer))[key] for answer in drawn])))


def _answer(task: Task, value: float) -> str | float:
    return task.classes[int(value)] if task.classes else float(value)


def floor_sample(floor: Floor, task: Task, y_true: np.ndarray) -> ScoringInput:
    """The rows answered with the floor's constant."""
    return constant(y_true, task.classes.index(floor.prediction) if task.classes else floor.prediction)


def verdict(
    score: float, floor: float, scores: np.ndarray, floor_scores: np.ndarray, higher_is_better: bool
) -> Verdict:
    """Whether a score beats its floor, resample by resample on the same patients.

    Args:
        score: of the model.
        floor: of the constant on the same rows.
        scores: of the model in each resample, (B,); none where nothing can be resampled.
        floor_scores: of the constant in the same resamples, (B,).
        higher_is_better: direction of the metric.
    """
    sign = 1 if higher_is_better else -1
    difference = sign * (score - floor)
    low, high = percentile_interval(sign * (scores - floor_scores))
    if np.isnan(low):
        return Verdict("unknown", difference, low, high)
    return Verdict("yes" if low > 0 else "no" if high < 0 else "tied", difference, low, high)


def is_collapsed(task: Task, sample: ScoringInput) -> bool:
    """Whether a model answers (nearly) the same to everything.

    One class only, or values whose standard deviation is at most 1 % of that of the references. A single row says
    nothing about it.
    """
    if len(sample) < 2:
        return False
    if task.classes:
        return len(np.unique(sample.y_pred)) == 1
    return bool(np.std(sample.y_pred) <= COLLAPSED_SPREAD * np.std(sample.y_true))
