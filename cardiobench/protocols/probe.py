"""Linear probe: ridge or logistic regression on frozen embeddings."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from cardiobench.data.spec import Task
from cardiobench.errors import NotApplicable
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import Output, TaskData
from cardiobench.protocols.features import standardiser


def ridge_path(features: np.ndarray, values: np.ndarray, penalties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression for many penalties from one singular value decomposition.

    Args:
        features: (n, d).
        values: (n,).
        penalties: (k,), added to the squared singular values of the centred features.

    Returns:
        Coefficients (d, k) and intercepts (k,).
    """
    centre, mean = features.mean(axis=0), values.mean()
    left, singular, right = np.linalg.svd(features - centre, full_matrices=False)
    shrunk = singular[:, None] / (singular[:, None] ** 2 + penalties[None, :])
    coefficients = right.T @ (shrunk * (left.T @ (values - mean))[:, None])
    return coefficients, mean - centre @ coefficients


RANK_TOLERANCE = 1e-12  # of the largest squared singular value: what is below is rounding error
SMALL = 5_000_000  # numbers; below it, threads that wait for each other cost more than they do


def row_space(known: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same features in as many dimensions as there are known lines, where there are fewer of them than of features.

    A penalty on the squared coefficients leaves nothing outside the space that the known lines span, so a classifier
    answers the same in these coordinates, and is fitted in a fraction of the time.

    Args:
        known: (n, d).
        asked: (m, d).

    Returns:
        (n, r) and (m, r), where r is d or, if that is smaller, the rank of `known`.
    """
    if known.shape[1] <= known.shape[0]:
        return known, asked
    # The n x n products are all that is needed; a decomposition of the n x d features takes ten times as long.
    squares, axes = np.linalg.eigh(known @ known.T)
    kept = squares > RANK_TOLERANCE * squares[-1]
    lengths, axes = np.sqrt(squares[kept]), axes[:, kept]
    return axes * lengths, asked @ known.T @ axes / lengths


@dataclass(frozen=True)
class LinearProbe:
    """One linear layer on the standardised embedding.

    Regression: ridge. Classification: logistic regression. The penalty is chosen on the validation split, or, where
    there is none, by folds of the training patients: mean absolute error, or log loss. The chosen model is fitted
    again on train and validation together. Test lines are never looked at.

    Attributes:
        penalties: ridge penalties per training line, and the inverse of logistic regression's C.
        class_weight: "balanced" makes up for rare classes, which macro F1 counts like common ones; None does not.
        folds: where there is no validation split.
    """

    penalties: tuple[float, ...] = tuple(10.0**power for power in range(-3, 7))
    class_weight: str | None = "balanced"
    folds: int = 5

    name = "probe"

    def variants(self, task: Task) -> tuple[str, ...]:
        """One way only."""
        return ("",)

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> Output:
        """Predictions of the probe for the test lines."""
        train, test = data.lines("train"), data.lines("test")
        if not len(train):
            raise NotApplicable(f"{data.task.name} has no training rows here, and a probe learns from them")
        if data.task.classes and len(np.unique(data.labels[train])) < 2:
            only = data.task.classes[data.labels[train][0]]
            raise NotApplicable(
                f"all {len(train)} training rows of {data.task.name} are '{only}', and a probe needs two classes"
            )
        both = np.concatenate([train, data.lines("validation")])
        with threadpool_limits(1 if data.features.size < SMALL else None):
            losses = np.mean([self._losses(data, *fold) for fold in self._folds(data)], axis=0)
            best = int(np.argmin(losses))
            values = self._fit(data, both, test, self.penalties[best : best + 1])[0]
        details = {
            "penalty": self.penalties[best],
            "penalty_at_edge": best in (0, len(self.penalties) - 1),
            "fitted_on": len(both),
        }
        return Output(test, values, details)

    def _folds(self, data: TaskData) -> list[tuple[np.ndarray, np.ndarray]]:
        train, validation = data.lines("train"), data.lines("validation")
        if len(validation):
            return [(train, validation)]
        groups = data.patients[train]
        splitter = GroupKFold(min(self.folds, len(np.unique(groups))))
        return [(train[fit], train[held]) for fit, held in splitter.split(train, groups=groups)]

    def _losses(self, data: TaskData, fit: np.ndarray, held: np.ndarray) -> np.ndarray:
        predicted = self._fit(data, fit, held, self.penalties)
        truth = data.labels[held]
        if data.task.kind == "regression":
            return np.abs(predicted - truth).mean(axis=1)
        return np.array([log_loss(truth, p, labels=np.arange(len(data.task.classes))) for p in predicted])

    def _fit(self, data: TaskData, fit: np.ndarray, ask: np.ndarray, penalties) -> np.ndarray:
        """Predictions for the lines `ask` for each penalty: (k, n) numbers or (k, n, classes) probabilities."""
        mean, deviation = standardiser(data.features[fit])
        known, asked = row_space((data.features[fit] - mean) / deviation, (data.features[ask] - mean) / deviation)
        labels = data.labels[fit]
        if data.task.kind == "regression":
            coefficients, intercepts = ridge_path(known, labels, np.asarray(penalties))
            return (asked @ coefficients + intercepts).T
        answers = np.zeros((len(penalties), len(ask), len(data.task.classes)))
        for number, penalty in enumerate(penalties):
            model = LogisticRegression(C=1.0 / penalty, class_weight=self.class_weight, max_iter=2000)
            model.fit(known, labels)
            answers[number][:, model.classes_] = model.predict_proba(asked)
        return answers
