"""k nearest neighbours by cosine similarity of frozen embeddings."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import PositiveInt
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GroupKFold, StratifiedKFold

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.embeddings.store import l2_normalize
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.features import mean_and_std
from cardiobench.protocols.options import Folds

PAPER_SEED = 42


def nearest(known: np.ndarray, asked: np.ndarray, count: int) -> np.ndarray:
    """Positions (n, count) of the `count` known vectors most like each asked one, the likest first; ties by position.

    Args:
        known: unit vectors (m, d).
        asked: unit vectors (n, d).
        count: at most m.
    """
    return np.argsort(-(asked @ known.T), axis=1, kind="stable")[:, :count]


@dataclass(frozen=True)
class NearestNeighbours(PredictionProtocol):
    """The mean label of the k nearest training and validation recordings, by cosine.

    k is chosen by patient-grouped folds of train and validation: macro F1, or mean absolute error. Features of
    models whose vectors have no common scale (pooling "mean") are standardised first. Profile "paper" chooses as the
    released code of arXiv:2510.00520 does for views: accuracy, folds balanced by class, patients not kept together,
    nothing standardised.

    Attributes:
        neighbours: values of k to choose from.
        folds: of the choice.
        profile: "default" or "paper".
    """

    neighbours: tuple[PositiveInt, ...] = (1, 3, 5, 7, 9, 11, 15, 21)
    folds: Folds = 5
    profile: Literal["default", "paper"] = "default"

    name = "knn"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"profile": config.profile}

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predictions for the test lines from their neighbours among train and validation."""
        known, test = data.lines("train", "validation"), data.lines("test")
        patients = np.unique(data.patients[known])
        if len(patients) < 2:
            raise NotApplicable(
                f"{data.task.name} has {len(patients)} training patients here, and neighbours need 2 or more"
            )
        held = [(known[a], known[b]) for a, b in self._folds(data, known)]
        allowed = [k for k in self.neighbours if k <= min(len(a) for a, _ in held)]
        truth = np.concatenate([data.labels[asked] for _, asked in held])
        labels = np.concatenate([self._labels(data, others, asked, max(allowed)) for others, asked in held])
        losses = [self._loss(data, truth, labels[:, :k]) for k in allowed]
        best = allowed[int(np.argmin(losses))]
        values = self._answers(data, self._labels(data, known, test, best))
        return ProtocolOutput(test, values, {"k": best, "from": list(allowed)})

    def _folds(self, data: TaskData, known: np.ndarray):
        patients = data.patients[known]
        if self.profile == "paper" and data.task.classes:
            splitter = StratifiedKFold(self.folds, shuffle=True, random_state=PAPER_SEED)
            return splitter.split(known, data.labels[known])
        return GroupKFold(min(self.folds, len(np.unique(patients)))).split(known, groups=patients)

    def _labels(self, data: TaskData, known: np.ndarray, asked: np.ndarray, count: int) -> np.ndarray:
        """Labels of the neighbours of each asked line, the likest first: (n, count)."""
        features = data.features
        if data.pooling == "mean" and self.profile != "paper":
            mean, deviation = mean_and_std(features[known])
            features = (features - mean) / deviation
        return data.labels[known][nearest(l2_normalize(features[known]), l2_normalize(features[asked]), count)]

    def _answers(self, data: TaskData, labels: np.ndarray) -> np.ndarray:
        """Mean number, or share of each class, of the neighbours' labels (n, k)."""
        if data.task.kind == "regression":
            return labels.mean(axis=1)
        return np.stack([(labels == index).mean(axis=1) for index in range(len(data.task.classes))], axis=1)

    def _loss(self, data: TaskData, truth: np.ndarray, labels: np.ndarray) -> float:
        answers = self._answers(data, labels)
        if data.task.kind == "regression":
            return float(np.abs(answers - truth).mean())
        if self.profile == "paper":
            return -float(accuracy_score(truth, answers.argmax(axis=1)))
        return -float(f1_score(truth, answers.argmax(axis=1), average="macro"))
