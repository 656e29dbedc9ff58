"""Base class of analyses: protocols that describe a model's embeddings, alone, across datasets or compared with other models.

A `PredictionProtocol` (protocols/base.py) predicts test recordings and is scored by `scoring/`. An analysis computes
something else, such as a curve, a geometry or an agreement. It returns an `AnalysisOutput`, which is saved as an
`AnalysisResult` with its figures.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cardiobench.data.media.types import Clip, Ecg
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.base import BaseProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.features import row_blocks
from cardiobench.results.score_result import Estimate

ROUNDING = 1e-6  # Relative to the largest component; covers rounding differences between equal vectors.


@dataclass(frozen=True)
class Perturbation:
    """A perturbation that is applied to recordings before the model encodes them.

    Attributes:
        name: Name such as shuffle or speckle.
        severity: 0 leaves a recording unchanged.
        apply: Function (recording, severity, generator) -> changed recording; the recording's id seeds the generator.
        version: Version, increased whenever the output of `apply` changes; part of the embedding key.
        patients: Number of test-split patients whose recordings are perturbed; None for all of them.
        order: Function (number of frames, severity, generator) -> indices of the shown frames, if `apply` only selects
            frames.
    """

    name: str
    severity: float
    apply: Callable[[Clip | Ecg, float, np.random.Generator], Clip | Ecg] = field(repr=False, compare=False)
    version: int = 1
    patients: int | None = None
    order: Callable[[int, float, np.random.Generator], np.ndarray] | None = field(
        default=None, repr=False, compare=False
    )

    def rows(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the test rows to perturb: those of all patients, or of a subset chosen by a hash of the ids.

        The hash is needed because the order of files in a release often depends on the patients.
        """
        test = rows[rows["split"] == "test"]
        patients = test["patient_id"].unique()
        if self.patients is None or len(patients) <= self.patients:
            return test
        chosen = sorted(patients, key=lambda name: hashlib.sha256(str(name).encode()).digest())[: self.patients]
        return test[test["patient_id"].isin(chosen)]

    @property
    def key(self) -> str:
        """Perturbation as one word, for stamps and cache keys."""
        return f"{self.name}-{self.severity:g}-v{self.version}"


@dataclass(frozen=True)
class ScoredPredictions:
    """Predictions of an analysis that are scored as a separate result, like those of a `PredictionProtocol`.

    Attributes:
        task: Task whose recordings are predicted.
        variant: Variant of the protocol; unique within the task.
        output: Positions in `Analysis.data(task)`, predictions, and details for the stamp.
    """

    task: Task
    variant: str
    output: ProtocolOutput


@dataclass(frozen=True)
class AnalysisOutput:
    """Values, tables and warnings of an analysis; see `cardiobench.results.analysis_result.AnalysisResult` for the fields.

    Attributes:
        predictions: Predictions that are also scored.
    """

    values: Mapping[str, Estimate]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    predictions: tuple[ScoredPredictions, ...] = ()


@dataclass(frozen=True)
class Analysis:
    """Embeddings of one model for the tasks of one subject, loaded on demand.

    Attributes:
        subject: A task's name, a dataset's name, or a label across datasets.
        tasks: Tasks of the subject.
        model: Name, revision, pooling, preprocessing.
        seed: Seed of all random draws.
        resamples: Number of bootstrap resamples.
        load: Function (task, perturbation) -> recordings, labels and embeddings; a perturbed task has only test rows.
        references: Mapping from task to references (id, patient_id, split, y_true, groups) of all splits.
    """

    subject: str
    tasks: tuple[Task, ...]
    model: Mapping[str, Any]
    seed: int
    resamples: int
    load: Callable[[Task, Perturbation | None], TaskData] = field(repr=False)
    references: Callable[[Task], pd.DataFrame] = field(repr=False)

    @cached_property
    def _loaded(self) -> dict[tuple[str, str], TaskData]:
        return {}

    def data(self, task: Task, perturbation: Perturbation | None = None) -> TaskData:
        """Return recordings, labels and embeddings of a task; they are loaded once."""
        key = task.name, perturbation.key if perturbation else ""
        if key not in self._loaded:
            self._loaded[key] = self.load(task, perturbation)
        return self._loaded[key]


class AnalysisProtocol(BaseProtocol):
    """A protocol that describes one model's embeddings of a subject: a task, a dataset or a label across datasets.

    Attributes:
        comparison_formulas: Metrics that `compare_models` computes; without one of them, models are not compared.
    """

    comparison_formulas: ClassVar[tuple[str, ...]] = ()

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Return the subjects of the analysis among these tasks: subject -> its tasks. By default each task alone."""
        return {task.name: (task,) for task in tasks}

    def perturbations(self, tasks: Sequence[Task]) -> tuple[Perturbation, ...]:
        """Return the perturbations under which test recordings of these tasks are encoded; by default none."""
        return ()

    def price(self, analysis: Analysis, encoder: Encoder, seconds: Mapping[str, float]) -> list[str]:
        """Return lines that describe the work before it starts; by default none.

        Args:
            analysis: Recordings; only the references are read.
            encoder: Model.
            seconds: Mapping from label of a protocol to duration of its existing result for the same model and task.
        """
        return []

    @abstractmethod
    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Analyze one model's embeddings of one subject.

        Raises:
            NotApplicable: The analysis does not apply to the model.
        """

    def compare_models(self, analyses: Sequence[Analysis]) -> AnalysisOutput | None:
        """Compare two or more models on the same subject; None for protocols that do not compare models."""
        return None


def collapse_warnings(analysis: Analysis) -> tuple[str, ...]:
    """Return a sentence for each task whose test recordings all have the same vector."""
    sentences = []
    for task in analysis.tasks:
        data = analysis.data(task)
        test = data.indices("test")
        if len(test) > 1 and _spread(data.features, test) <= ROUNDING:
            sentences.append(f"collapsed: the model gives all {len(test)} test recordings of {task.name} one vector")
    return tuple(sentences)


def _spread(features: np.ndarray, indices: np.ndarray) -> float:
    """Return the largest range of a column over some rows, relative to the largest absolute value; 0 if all are 0.

    Takes features (N, d) and positions of rows (n,).
    """
    low, high = np.full(features.shape[1], np.inf), np.full(features.shape[1], -np.inf)
    for _, block in row_blocks(features, indices):
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
    largest = max(np.abs(low).max(), np.abs(high).max())
    return float((high - low).max() / largest) if largest else 0.0
