"""Predict studies or patients from all of their recordings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.extensions.study.recordings import StudyRecordings, recorded, views_of
from cardiobench.models.base import Encoder, StudyAggregation
from cardiobench.protocols.attention.recipe import AttentionRecipe
from cardiobench.protocols.base import HeldOut, ProtocolOutput, TaskData, aggregate
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.learnable import check_learnable, two_answers
from cardiobench.protocols.training.split import fit_and_held

if TYPE_CHECKING:
    from cardiobench.protocols.attention.training import AttentionTraining

COMPONENT = "protocol study"
VERSION = 1
LEARNER = "a probe of studies"
FLOOR = "which views were recorded"
ReadOut = Literal["attention", "mean", "best_view", "own"]
READ_OUTS: tuple[ReadOut, ...] = ("attention", "mean", "best_view", "own")


class Reader(NamedTuple):
    """Probe for selected recordings of each unit, ready for training.

    Attributes:
        name: View that the probe reads; empty for all recordings.
        present: Positions of units that the probe can predict.
        training: Training on these units.
    """

    name: str
    present: np.ndarray
    training: "AttentionTraining"


class Read(NamedTuple):
    """Predictions of a trained reader.

    Attributes:
        name: View that the reader uses; empty for all recordings.
        present: Positions of predicted units.
        values: Predictions as in `ProtocolOutput`.
        details: Training summary.
    """

    name: str
    present: np.ndarray
    values: np.ndarray
    details: Mapping[str, Any]


@dataclass(frozen=True)
class StudyProbe(AttentionRecipe, EnsembleProtocol):
    """Train one prediction per study or patient from all of its recordings.

    Every read-out is the attention probe of `AttentionRecipe` with different tokens:

    * `attention`: vectors of all recordings; missing views are masked.
    * `mean`: mean vector of all recordings.
    * `best_view`: mean vector of one view, selected by validation score. Units without this view use the next best one.
    * `own`: study vector computed by the model itself, as by the section weights of EchoPrime.

    Test labels and test patients do not affect the selection. The floor applies the same recipe to table facts: which
    views were recorded, their number, and their time if known. A result is above the floor if it is better than this
    recipe and than any constant.

    Memory: twice the pooled vectors. Time: seeds x epochs x recordings x dimension x heads; the best view needs this
    once for all views together.

    Attributes:
        read_outs: Names of the read-outs, one result each.
    """

    read_outs: tuple[ReadOut, ...] = READ_OUTS[:3]

    name = "study"
    selecting_options = frozenset({"read_outs"})
    from_embeddings = True

    def works_from_embeddings(self, encoder: Encoder) -> bool:
        """Return whether training uses the CPU and no read-out needs the model to combine recordings."""
        return "own" not in self.read_outs and super().works_from_embeddings(encoder)

    def params_for(self, task: Task) -> dict[str, Any]:
        """Return options as stated in a task's result; multilabel tasks have no class weights."""
        return {**self.get_params(), **({"class_weight": None} if task.rules.answer == "labels" else {})}

    def variants(self, task: Task) -> tuple[str, ...]:
        """Return the chosen read-outs."""
        return tuple(self.read_outs)

    def result_variants(self, task: Task) -> tuple[str, ...]:
        """Return all read-outs."""
        return READ_OUTS

    def check(self, task: Task) -> None:
        """Reject tasks whose units are single recordings."""
        super().check(task)
        if task.unit_column == "id":
            raise NotApplicable(f"each recording of {task.name} is a separate unit, so there is nothing to combine")

    def prepare(self, data: TaskData, encoder: Encoder, variant: str = "attention") -> list[Reader]:
        """Return the readers of a read-out: one per view for the best view, otherwise one.

        Raises:
            NotApplicable: No unit has several recordings, views are unknown, the model cannot combine recordings, or
                there is no training data.
        """
        self.check(data.task)
        check_learnable(data, LEARNER)
        recordings = StudyRecordings(data)
        if recordings.largest < 2:
            raise NotApplicable(f"no {data.task.unit_column} of {data.task.name} has more than one recording here")
        if variant == "attention":
            return self._readers([("", *recordings.recordings())])
        if variant == "mean":
            return self._readers([("", *recordings.means())])
        if variant == "own":
            vectors = _own_vectors(encoder, data.task, recordings)
            return self._readers([("", recordings.units(vectors), np.arange(len(vectors)))])
        views = views_of(data.rows)
        if views is None:
            raise NotApplicable(
                f"the table of {data.task.dataset} has no views, of which {self.name}.{variant} chooses one"
            )
        readers = self._readers([(view, *recordings.means(views == view)) for view in np.unique(views)])
        if not readers:
            raise NotApplicable(f"no view of {data.task.name} has training and validation patients to learn from")
        return readers

    def train(self, prepared: list[Reader], member: int) -> list[Read]:
        """Return the predictions of all readers for one seed.

        Raises:
            NotApplicable: The validation loss is not finite in any epoch.
        """
        read = []
        for name, present, training in prepared:
            probe, details = training.train(self.seed + member)
            read.append(Read(name, present, training.predict(probe, np.arange(len(present))), details))
        return read

    def combine(self, data: TaskData, answers: Sequence[list[Read]]) -> ProtocolOutput:
        """Return the mean prediction; individual runs are stored as repeats."""
        from cardiobench.protocols.training.objective import TrainingObjective

        recordings = StudyRecordings(data)
        units = recordings.units(np.empty((len(recordings.ids), 0)))
        fit, held = self._split(units)
        objective = TrainingObjective(units, fit)
        unknown = objective.answers(np.zeros((1, objective.outputs)))

        def of_all(readers: Sequence[Read]) -> np.ndarray:
            """Return the first available prediction of each unit, (n,) or (n, classes); others get the mean or uniform classes."""
            values = np.repeat(unknown, len(recordings.ids), axis=0)
            for one in reversed(readers):
                values[one.present] = one.values
            return values

        counts = np.bincount(recordings.of_recording)
        by_reader = list(zip(*answers, strict=True))
        qualities = [
            objective.quality(np.mean([of_all([one]) for one in seeds], axis=0)[held], held) for seeds in by_reader
        ]
        order = np.argsort(-np.nan_to_num(qualities, nan=-np.inf), kind="stable")
        values = [of_all([seed[reader] for reader in order]) for seed in answers]
        mean = np.mean(values, axis=0)
        test, validation = units.indices("test"), units.indices("validation")
        best = by_reader[order[0]]
        details = {
            "recordings": [int(counts.min()), int(counts.max())],
            "fitted_on": len(fit),
            "stopped_by": len(held),
            **{name: [one.details[name] for one in best] for name in best[0].details},
            **self._choice(by_reader, order, qualities, test),
        }
        return ProtocolOutput(
            recordings.first[test],
            mean[test],
            details,
            repeats=tuple(one[test] for one in values),
            seeds=tuple(range(self.seed, self.seed + len(values))),
            validation=HeldOut(recordings.first[validation], mean[validation], tuple(one[validation] for one in values))
            if len(validation)
            else None,
        )

    def floors(self, rows: pd.DataFrame, task: Task) -> Mapping[str, pd.DataFrame]:
        """Predict from the recordings table alone, in double precision on the CPU."""
        data = recorded(rows, task)
        recordings = StudyRecordings(data)
        protocol = replace(self, device="cpu")
        readers = protocol._readers([("", data, np.arange(len(recordings.ids)))])
        output = protocol.combine(data, [protocol.train(readers, member) for member in range(self.members)])
        return {FLOOR: aggregate(data, cut_by_validation(data, output))}

    @staticmethod
    def _choice(
        by_reader: Sequence[Sequence[Read]], order: np.ndarray, qualities: Sequence[float], test: np.ndarray
    ) -> dict[str, Any]:
        """Return the selected view, qualities of all views and coverage of test units; empty if no view is selected."""
        if not by_reader[0][0].name:
            return {}
        best = by_reader[order[0]][0]
        return {
            "view": best.name,
            "validation_quality": {by_reader[one][0].name: float(np.nan_to_num(qualities[one])) for one in order},
            "test_units_with_view": [int(np.isin(test, best.present).sum()), len(test)],
        }

    def _readers(self, parts: Sequence[tuple[str, TaskData, np.ndarray]]) -> list[Reader]:
        """Return readers for (view, units, positions), omitting views without training data."""
        from cardiobench.protocols.attention.training import AttentionTraining

        found = []
        for name, units, present in parts:
            try:
                fit, held = self._split(units)
            except NotApplicable:
                if not name:
                    raise
                continue
            if name and not _can_learn(units, fit, held):
                continue
            found.append(Reader(name, present, AttentionTraining(units, fit, held, self)))
        return found

    def _split(self, units: TaskData) -> tuple[np.ndarray, np.ndarray]:
        return fit_and_held(units, self.seed, LEARNER)


def _can_learn(units: TaskData, fit: np.ndarray, held: np.ndarray) -> bool:
    """Return whether a view has two classes or values for training and units for early stopping."""
    return len(held) > 0 and len(fit) > 0 and (not units.task.classes or two_answers(units.labels[fit]))


def _own_vectors(encoder: Encoder, task: Task, recordings: StudyRecordings) -> np.ndarray:
    """Return one vector per unit, float32 (units, dim), as combined by the model; raises `NotApplicable` if it cannot."""
    if not isinstance(encoder, StudyAggregation):
        raise NotApplicable(f"{encoder.name} has no method to combine the recordings of a study")
    return np.asarray(encoder.study_vectors(task.target, recordings.parts()), dtype=np.float32)
