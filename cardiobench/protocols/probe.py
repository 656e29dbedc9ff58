"""Linear probe: ridge or logistic regression on frozen embeddings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.model_selection import GroupKFold, GroupShuffleSplit
from threadpoolctl import threadpool_limits

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.core.setting import Positive, Seed
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import HeldOut, PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.cut import FEWEST, cut_by_validation
from cardiobench.protocols.learnable import check_learnable, two_answers
from cardiobench.protocols.linear.model import LinearModel, fit_linear_models, linear_path, predict_all
from cardiobench.protocols.linear.path import SEARCH_TOLERANCE, TOLERANCE
from cardiobench.protocols.options import Penalty, Refits, Repeats
from cardiobench.protocols.profile import check_recipe
from cardiobench.protocols.refits import digest_of_draws, redrawn_rows
from cardiobench.scoring.metrics import macro_auroc

COMPONENT = "protocol probe"
VERSION = 3

INNER = 5
"""Number of folds whose predictions give the threshold if there are few validation patients."""
TIE = 1e-4
"""Relative tolerance between losses; losses within it are considered equal, and the stronger penalty is chosen. Over a
wide range the loss hardly depends on the penalty, and the solver's tolerance would decide."""


Search = tuple[tuple[np.ndarray, np.ndarray], ...]
"""Held-out recordings of each partition, (m,), and their losses for each penalty, (k, m)."""


@dataclass(frozen=True)
class FittedProbe:
    """A fitted probe with its threshold, for recordings of its dataset or of others.

    Attributes:
        model: The linear layer.
        cut: Weights of the classes, chosen on held-out patients of the training dataset; None for no weights.
        details: Choices made during fitting, including the threshold.
        refits: Probes fitted to other draws of the training patients; empty for none.
        refit_cuts: Weights of the classes of each of them; empty to use those of `cut`.
        draws: Digest of these draws.
        drawn_with: Seed of these draws.
    """

    model: LinearModel
    cut: np.ndarray | None
    details: Mapping[str, Any]
    refits: tuple[LinearModel, ...] = ()
    refit_cuts: tuple[np.ndarray, ...] = ()
    draws: str = ""
    drawn_with: int = 0

    def predict(self, data: TaskData) -> ProtocolOutput:
        """Predict the test recordings."""
        test = data.indices("test")
        values = self.model.predict(data.features, test)
        return ProtocolOutput(
            test,
            values,
            self.details,
            cut=self.cut,
            refits=tuple(predict_all(self.refits, data.features, test)) if self.refits else (),
            refit_cuts=self.refit_cuts,
            draws=self.draws,
            drawn_with=self.drawn_with,
        )


@dataclass(frozen=True)
class LinearProbe(PredictionProtocol):
    """Fit one linear layer to the standardised embedding.

    Regression uses ridge. Classification uses logistic regression; multilabel tasks use one-vs-rest with a common
    penalty. The penalty is chosen on the validation split by mean absolute error, log loss, or macro AUROC for
    multilabel tasks. With fewer than `min_samples` recordings to learn from, or without a validation split, it is
    chosen on several random partitions of the patients of train and validation, because the choice on one small split
    would be random. Among equally good penalties the strongest is chosen. The search of a multilabel task starts with
    the strongest penalty and stops after two consecutive penalties that score worse, because the smallest ones take the
    most time. The chosen model is refitted to train and validation together. Test recordings are not used.

    Attributes:
        penalties: Penalties of ridge, or inverses of C of logistic regression.
        class_weight: "balanced" weights rare classes up, because macro F1 counts all classes equally; None does not.
            Ignored for multilabel tasks, which are scored by ranking.
        min_samples: Number of train and validation recordings below which the choice uses `resamples`.
        resamples: Number of partitions of the patients, with a fifth held out in each.
        refits: Number of refits of the chosen probe on other draws of the training patients whose spread the interval of
            the score includes, so that it covers test and training patients. 0 for none.
        comparison_refits: Number of refits that are kept for comparisons with other models, if it is larger. 0 for none.
        seed: Seed of the partitions and draws.
        profile: Recipe; other profiles are classes of extensions (`cardiobench.protocols.profile`).
    """

    penalties: tuple[Penalty, ...] = tuple(10.0**power for power in range(-3, 7))
    class_weight: Literal["balanced"] | None = "balanced"
    min_samples: Positive = 500
    resamples: Repeats = 10
    refits: Refits = 0
    comparison_refits: Refits = 20
    seed: Seed = 0
    profile: Literal["default"] = "default"

    name = "probe"
    learns = True
    from_embeddings = True
    headline_rank = 1

    def __post_init__(self) -> None:
        """Refuse recipes of other profiles, which have their own classes."""
        check_recipe(self)

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that follow from the settings of a run."""
        return {"seed": config.seed}

    def without_refits(self) -> Self:
        """Return the same protocol without refits."""
        return replace(self, refits=0, comparison_refits=0)

    def params_for(self, task: Task) -> dict[str, Any]:
        """Return the options shown in a result of a task; multilabel tasks have no class weights."""
        return {**self.get_params(), **({"class_weight": None} if task.rules.answer == "labels" else {})}

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the test recordings with a probe fitted on train and validation."""
        self.check(data.task)
        _, output, search = self._fit_and_predict(data)
        return self._with_refits(data, output, search)[0]

    def fit(self, data: TaskData) -> FittedProbe:
        """Choose the penalty, fit the probe, and choose its threshold, with the same test predictions as protocol `probe`.

        Raises:
            NotApplicable: The task has nothing to learn from.
        """
        model, output, search = self._fit_and_predict(data)
        output, refits = self._with_refits(data, output, search)
        output = cut_by_validation(data, output)
        digest = digest_of_draws(data, output.drawn) if refits else ""
        return FittedProbe(model, output.cut, output.details, refits, output.refit_cuts, digest, output.drawn_with)

    def _fit_and_predict(self, data: TaskData) -> tuple[LinearModel, ProtocolOutput, Search]:
        """Fit the probe, and predict the test recordings and those for choosing the threshold."""
        test = data.indices("test")
        model, details, validation, search = self._fit_and_hold_out(data)
        inner = self._inner_folds(data, details["penalty"])
        values = model.predict(data.features, test)
        return model, ProtocolOutput(test, values, details, validation=validation, inner=inner), search

    def _fit_and_hold_out(self, data: TaskData) -> tuple[LinearModel, dict[str, Any], HeldOut | None, Search]:
        """Fit the probe, and predict the validation recordings by a model of the same penalty fitted to train only.

        Returns:
            The model; the choices: penalty, basis, its range over partitions, number of recordings; the predictions of
            the validation recordings; and the losses of the search.
        """
        check_learnable(data)
        both = data.indices("train", "validation")
        with threadpool_limits(1):  # Blocks are small, so waiting threads cost more than they save.
            folds = self._folds(data)
            if data.task.rules.answer == "labels":
                losses, held_out = self._multilabel_losses(data, folds)
                search: Search = ()
            else:
                searched = [self._losses(data, *fold) for fold in folds]
                losses, held_out = np.array([one.mean(axis=1) for one, _ in searched]), dict(enumerate(searched[-1][1]))
                search = tuple((held, one) for (_, held), (one, _) in zip(folds, searched, strict=True))
            best = self._stiffest_of_best(losses.mean(axis=0))
            (model,) = self._fit(data, both, self.penalties[best : best + 1], TOLERANCE)
            by_validation = np.array_equal(folds[-1][1], data.indices("validation"))
            validation = self._validation(data, self.penalties[best], held_out[best] if by_validation else None)
        choices = [self.penalties[self._stiffest_of_best(row)] for row in losses]
        details = {
            "penalty": self.penalties[best],
            "penalty_at_edge": best in (0, len(self.penalties) - 1),
            "penalty_chosen_on": "validation" if len(folds) == 1 else f"{len(folds)} partitions of the patients",
            "penalty_range": [min(choices), max(choices)],
            "fitted_on": len(both),
            **self._multilabel_details(data, losses),
        }
        return model, details, validation, search

    def _validation(self, data: TaskData, penalty: float, values: np.ndarray | None) -> HeldOut | None:
        """Return predictions of the validation recordings; `values` if the search for the penalty has computed them.

        `values` are numbers (n,) or probabilities (n, classes).
        """
        train, validation = data.indices("train"), data.indices("validation")
        several = len(np.unique(data.patients[train])) > 1
        if values is None and len(validation) and several and self._learnable(data, train):
            (model,) = self._fit(data, train, (penalty,), SEARCH_TOLERANCE)
            values = model.predict(data.features, validation)
        return None if values is None else HeldOut(validation, values)

    def _inner_folds(self, data: TaskData, penalty: float) -> HeldOut | None:
        """Return predictions of train and validation recordings by folds, if there are too few validation patients for a threshold."""
        both = data.indices("train", "validation")
        several = data.task.rules.answer == "class" and len(np.unique(data.patients[both])) >= FEWEST
        if not several or len(np.unique(data.patients[data.indices("validation")])) >= FEWEST:
            return None
        groups, values = data.patients[both], np.zeros((len(both), len(data.task.classes)))
        with threadpool_limits(1):
            for fit, held in GroupKFold(INNER).split(both, groups=groups):
                if not two_answers(data.labels[both[fit]]):
                    return None
                (model,) = self._fit(data, both[fit], (penalty,), SEARCH_TOLERANCE)
                values[held] = model.predict(data.features, both[held])
        return HeldOut(both, values)

    def _multilabel_details(self, data: TaskData, losses: np.ndarray) -> dict[str, Any]:
        """Return the details that differ for a multilabel task: no weights, and possibly untried penalties.

        Takes losses (folds, penalties), infinite for untried penalties.
        """
        if data.task.rules.answer != "labels":
            return {}
        tried = np.isfinite(losses[0])
        return {
            "class_weight": None,
            "penalties_tried": [self.penalties[position] for position in np.flatnonzero(tried)],
        }

    def _with_refits(
        self, data: TaskData, output: ProtocolOutput, search: Search
    ) -> tuple[ProtocolOutput, tuple[LinearModel, ...]]:
        """Return an output with the predictions of each refit, and the refits.

        The penalty of a refit is the best one for its patients by the losses of the search. The validation recordings
        are predicted by fits to the drawn patients of the training split.
        """
        both, chosen = data.indices("train", "validation"), output.details["penalty"]
        draws = list(redrawn_rows(data, both, max(self.refits, self.comparison_refits), self.seed))
        if not draws:
            return output, ()
        penalties = [self._penalty_of_draw(data, rows, search, chosen) for rows in draws]
        with threadpool_limits(1):
            models = self._fit_each(data, draws, penalties)
            values = tuple(predict_all(models, data.features, output.indices))
            ours = self._with_penalty(data, draws[: self.refits], models, penalties, chosen)
            for_interval = tuple(predict_all(ours, data.features, output.indices)) if ours else ()
            validation = output.validation
            train = [rows[np.isin(rows, data.indices("train"))] for rows in draws]
            if validation is not None and all(self._learnable(data, rows) for rows in train):
                of_train = self._fit_each(data, train, penalties)
                held_out = tuple(predict_all(of_train, data.features, validation.indices))
                validation = replace(validation, refits=held_out)
        found = replace(
            output,
            refits=values,
            interval_refits=for_interval,
            drawn=tuple(draws),
            drawn_with=self.seed,
            validation=validation,
        )
        return found, models

    def _penalty_of_draw(self, data: TaskData, rows: np.ndarray, search: Search, chosen: float) -> float:
        """Return the best penalty if each recording counts as often as its patient was drawn.

        If no held-out recording was drawn, this is the chosen penalty. `rows` are the drawn rows, (n,), with repetitions.
        """
        often = np.bincount(rows, minlength=len(data.rows))
        losses = [losses @ often[held] / often[held].sum() for held, losses in search if often[held].any()]
        return self.penalties[self._stiffest_of_best(np.mean(losses, axis=0))] if losses else chosen

    def _with_penalty(
        self,
        data: TaskData,
        draws: Sequence[np.ndarray],
        models: Sequence[LinearModel],
        penalties: Sequence[float],
        chosen: float,
    ) -> list[LinearModel]:
        """Return the refits with the penalty of the model itself; those that chose it are not fitted again.

        Each of the `draws` has the rows of one refit, (n,), with repetitions.
        """
        return [
            model if penalty == chosen else self._fit_each(data, [rows], [chosen])[0]
            for rows, model, penalty in zip(draws, models, penalties, strict=False)
        ]

    def _fit_each(
        self, data: TaskData, draws: Sequence[np.ndarray], penalties: Sequence[float]
    ) -> tuple[LinearModel, ...]:
        """Return a model fitted to the rows of each draw."""
        return tuple(
            self._fit(data, rows, (penalty,), SEARCH_TOLERANCE)[0]
            for rows, penalty in zip(draws, penalties, strict=True)
        )

    def _learnable(self, data: TaskData, rows: np.ndarray) -> bool:
        """Return whether a model can be fitted to some rows."""
        return len(rows) > 1 and (not data.task.classes or two_answers(data.labels[rows]))

    def _stiffest_of_best(self, losses: np.ndarray) -> int:
        """Return the position of the strongest penalty whose loss is the lowest, within the tolerance `TIE`.

        Takes the loss of each penalty, (penalties,).
        """
        stiffest = losses[int(np.argmax(self.penalties))]
        equal = np.flatnonzero(losses <= losses.min() + TIE * stiffest)
        return int(max(equal, key=lambda position: self.penalties[position]))

    def _folds(self, data: TaskData) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (training indices, indices for choosing), without a patient in both."""
        train, validation = data.indices("train"), data.indices("validation")
        both = np.concatenate([train, validation])
        chooses = data.task.rules.answer != "labels" or two_answers(data.labels[validation])
        if len(validation) and chooses and len(both) >= self.min_samples:
            return [(train, validation)]
        groups = data.patients[both]
        if len(np.unique(groups)) < 2:
            raise NotApplicable(f"{data.task.name} has 1 patient to learn from here, and a probe needs 2 or more")
        splitter = GroupShuffleSplit(self.resamples, test_size=0.2, random_state=self.seed)
        folds = [(both[fit], both[held]) for fit, held in splitter.split(both, groups=groups)]
        if data.task.classes:  # A partition with a single class in its training part is not informative.
            sides = (0, 1) if data.task.rules.answer == "labels" else (0,)
            folds = [fold for fold in folds if all(two_answers(data.labels[fold[side]]) for side in sides)]
        if not folds:
            raise NotApplicable(f"{data.task.name} has too few patients of its rarer class to learn from here")
        return folds

    def _losses(self, data: TaskData, fit: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the loss of each held-out recording for each penalty, (k, m), and their predictions."""
        truth = data.labels[held]
        models = self._fit(data, fit, self.penalties, SEARCH_TOLERANCE)
        predicted = predict_all(models, data.features, held)
        if data.task.rules.answer == "number":
            return np.array([np.abs(values - truth) for values in predicted]), predicted
        of_truth = np.array([values[np.arange(len(truth)), truth] for values in predicted])
        return -np.log(np.maximum(of_truth, np.finfo(np.float64).eps)), predicted

    def _multilabel_losses(
        self, data: TaskData, folds: list[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Return 1 - macro AUROC on the held-out recordings of each fold for each penalty.

        The shape is (folds, k); infinity if not tried.

        The second value has the predictions of the last fold by position of the penalty.
        """
        predicted: dict[int, np.ndarray] = {}
        paths = [
            linear_path(data.features, fit, data.labels[fit], self.penalties, tolerance=SEARCH_TOLERANCE)
            for fit, _ in folds
        ]
        losses, means = np.full((len(folds), len(self.penalties)), np.inf), []
        for fitted in zip(*paths, strict=True):
            position = self.penalties.index(fitted[0][0])
            for row, (_, model), (_, held) in zip(losses, fitted, folds, strict=True):
                predicted[position] = model.predict(data.features, held)
                row[position] = 1 - macro_auroc(data.labels[held], predicted[position])
            means.append(losses[:, position].mean())
            if len(means) > 2 and (np.diff(means[-3:]) > TIE * means[0]).all():
                break
        return losses, predicted

    def _fit(
        self, data: TaskData, indices: np.ndarray, penalties: tuple[float, ...], tolerance: float
    ) -> list[LinearModel]:
        """Return a model for each penalty, fitted to the rows `indices` (n,)."""
        return fit_linear_models(
            data.features,
            indices,
            data.labels[indices],
            penalties,
            classes=len(data.task.classes),
            class_weight=self.class_weight,
            tolerance=tolerance,
        )
