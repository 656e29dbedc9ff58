"""k-nearest neighbours by cosine similarity of frozen embeddings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.core.setting import Device, Positive, Seed
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import HeldOut, PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.features import UnitRows, mean_and_std
from cardiobench.protocols.learnable import check_learnable
from cardiobench.protocols.nearest import nearest
from cardiobench.protocols.options import Folds, Refits
from cardiobench.protocols.profile import check_recipe
from cardiobench.protocols.refits import redrawn_rows
from cardiobench.scoring.metrics import macro_auroc

COMPONENT = "protocol knn"
VERSION = 3


@dataclass(frozen=True)
class NearestNeighbours(PredictionProtocol):
    """Predict the mean label of the k nearest training and validation recordings by cosine similarity.

    k is chosen by patient-grouped cross-validation on train and validation: by macro F1, macro AUROC for multilabel
    tasks, or mean absolute error. Features of models whose vectors have no common scale (pooling "mean") are
    standardised first.

    The work is proportional to training recordings x query recordings. Above `max_queries`, k is chosen on the
    recordings of a random sample of patients; above `max_train`, neighbours come from such a sample. The result states
    both.

    Attributes:
        neighbours: Candidate values of k.
        folds: Number of folds for choosing k.
        max_queries: Maximum number of recordings for choosing k.
        max_train: Maximum number of train and validation recordings to search for neighbours.
        refits: Number of predictions from other draws of the training patients whose spread the interval of the score
            includes, so that it covers test and training patients. 0 for none.
        comparison_refits: Number of such predictions that are kept for comparisons with other models, if it is larger. 0
            for none.
        seed: Seed of the patient draws.
        device: Device of large searches; by default that of the run (`--device`). It does not change the neighbours.
        profile: Recipe; other profiles are classes of extensions (`cardiobench.protocols.profile`).
    """

    neighbours: tuple[Positive, ...] = (1, 3, 5, 7, 9, 11, 15, 21)
    folds: Folds = 5
    max_queries: Positive = 20_000
    max_train: Positive = 1_000_000
    refits: Refits = 0
    comparison_refits: Refits = 20
    seed: Seed = 0
    device: Device = "auto"
    profile: Literal["default"] = "default"

    name = "knn"
    learns = True
    from_embeddings = True
    headline_rank = 5
    selecting_options = frozenset({"device"})

    def __post_init__(self) -> None:
        """Refuse recipes of other profiles, which have their own classes."""
        check_recipe(self)

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that follow from the settings of a run."""
        return {"seed": config.seed, "device": config.device}

    def without_refits(self) -> Self:
        """Return the same protocol without refits."""
        return replace(self, refits=0, comparison_refits=0)

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the test recordings from their neighbours among train and validation."""
        self.check(data.task)
        check_learnable(data, "a classifier by neighbours")
        with threadpool_limits(1):  # Once for all searches: finding the libraries takes longer than a small search.
            return self._predict(data)

    def _predict(self, data: TaskData) -> ProtocolOutput:
        every, test = data.indices("train", "validation"), data.indices("test")
        patients = np.unique(data.patients[every])
        if len(patients) < 2:
            raise NotApplicable(
                f"{data.task.name} has {len(patients)} training patients here, and nearest neighbours need 2 or more"
            )
        train = every[whole_patients(data.patients[every], self.max_train, self.seed)]
        asked = train[whole_patients(data.patients[train], self.max_queries, self.seed)]
        folds = [(fit, held[np.isin(held, asked)]) for fit, held in self._folds(data, train)]
        allowed = [k for k in self.neighbours if k <= min(len(fit) for fit, _ in folds)]
        truth = np.concatenate([data.labels[held] for _, held in folds])
        rows = np.concatenate([self._neighbours(data, fit, held, max(allowed)) for fit, held in folds])
        losses = [self._loss(data, truth, rows[:, :k]) for k in allowed]
        best = allowed[int(np.argmin(losses))]
        values = self._predictions(data, self._neighbours(data, train, test, best))
        asked_refits = max(self.refits, self.comparison_refits)
        draws = [one for one in redrawn_rows(data, train, asked_refits, self.seed) if len(one) >= best]
        refits = tuple(self._predictions(data, self._neighbours(data, drawn, test, best)) for drawn in draws)
        details: dict[str, Any] = {"k": best, "from": list(allowed)}
        if len(refits) != asked_refits:
            details["refits_made"] = len(refits)
        if len(asked) < len(train):
            details["k_chosen_on"] = _drawn(data, asked, train, self.seed)
        if len(train) < len(every):
            details["neighbours_among"] = _drawn(data, train, every, self.seed)
        held = np.concatenate([held for _, held in folds])
        of_validation = np.isin(held, data.indices("validation"))
        validation = HeldOut(held[of_validation], self._predictions(data, rows[of_validation, :best]))
        inner = HeldOut(held, self._predictions(data, rows[:, :best]))
        found = self._with_refits(data, validation, draws, best) if len(validation.indices) else None
        return ProtocolOutput(
            test,
            values,
            details,
            refits=refits,
            interval_refits=refits[: self.refits],
            drawn=tuple(draws),
            drawn_with=self.seed,
            validation=found,
            inner=inner,
        )

    def _with_refits(self, data: TaskData, held: HeldOut, draws: Sequence[np.ndarray], k: int) -> HeldOut:
        """Return predictions of validation recordings with those by neighbours among the drawn patients of the training split.

        Each of the `draws` has the rows of one refit, (n,), with the rows of a patient repeated as often as it was drawn.
        """
        train = [rows[np.isin(rows, data.indices("train"))] for rows in draws]
        if any(len(rows) < k for rows in train):
            return held
        values = (self._predictions(data, self._neighbours(data, rows, held.indices, k)) for rows in train)
        return replace(held, refits=tuple(values))

    def _folds(self, data: TaskData, train: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (indices to search for neighbours, indices to predict)."""
        patients, names = pd.factorize(data.patients[train], sort=True)
        for fit, held in GroupKFold(min(self.folds, len(names))).split(train, groups=patients):
            yield train[fit], train[held]

    def _neighbours(self, data: TaskData, train: np.ndarray, query: np.ndarray, count: int) -> np.ndarray:
        """Return the rows of the neighbours of each query recording, nearest first. The shape is (n, count)."""
        scale = self._scale(data, train)
        rows, queries = UnitRows(data.features, train, scale), UnitRows(data.features, query, scale)
        return train[nearest(rows, queries, count, device=self.device)]

    def _scale(self, data: TaskData, train: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean (d,) and standard deviation (d,) of the features; None if the vectors have a common scale."""
        return mean_and_std(data.features, train) if data.pooling == "mean" else None

    def _predictions(self, data: TaskData, neighbours: np.ndarray) -> np.ndarray:
        """Return the mean number (n,), or the share of each class (n, classes), of the neighbours (n, k)."""
        if data.task.rules.answer == "labels":
            return _shares_of_measured(data.labels, neighbours)
        labels = data.labels[neighbours]
        if data.task.rules.answer == "number":
            return labels.mean(axis=1)
        return np.stack([(labels == index).mean(axis=1) for index in range(len(data.task.classes))], axis=1)

    def _loss(self, data: TaskData, truth: np.ndarray, neighbours: np.ndarray) -> float:
        """Return what the choice of k minimises: the mean absolute error in the task's unit, or minus the macro AUROC or F1.

        Takes labels (n,) or (n, K), and the rows of the neighbours, (n, k).
        """
        predictions = self._predictions(data, neighbours)
        if data.task.rules.answer == "number":
            return float(np.abs(predictions - truth).mean())
        if data.task.rules.answer == "labels":
            return -macro_auroc(truth, predictions)
        return -float(f1_score(truth, predictions.argmax(axis=1), average="macro"))


def _shares_of_measured(labels: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Return the share of each class among the neighbours for which it was measured.

    The shape is (n, K); 0 if there are none.

    Args:
        labels: Labels of all rows, 0, 1 and NaN, shape (N, K).
        neighbours: Rows, (n, k); processed one neighbour at a time, because n x k x K numbers would not fit into
            memory.
    """
    found = np.zeros((len(neighbours), labels.shape[1]))
    measured = np.zeros_like(found)
    for rows in neighbours.T:
        of_rows = labels[rows]
        measured += ~np.isnan(of_rows)
        found += np.nan_to_num(of_rows)
    return found / np.maximum(measured, 1)


def whole_patients(patients: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Return positions of all recordings of randomly drawn patients, at most `most` recordings.

    Args:
        patients: Patient of each recording, shape (n,).
        most: Maximum number of recordings; if there are not more, all are returned.
        seed: Seed of the draw.
    """
    if len(patients) <= most:
        return np.arange(len(patients))
    codes, names = pd.factorize(patients, sort=True)
    order = np.random.default_rng(seed).permutation(len(names))
    kept = order[np.cumsum(np.bincount(codes)[order]) <= most]
    return np.flatnonzero(np.isin(codes, kept))


def _drawn(data: TaskData, chosen: np.ndarray, every: np.ndarray, seed: int) -> str:
    count = len(np.unique(data.patients[chosen]))
    return f"{len(chosen)} of {len(every)} recordings, all of {count} patients drawn with seed {seed}"
