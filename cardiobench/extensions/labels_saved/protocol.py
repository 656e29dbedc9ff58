"""Compute learning curves on nested random subsets of the training patients."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import Field

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.core.io import sha256_of_json
from cardiobench.core.setting import Seed
from cardiobench.data.spec import Task
from cardiobench.extensions.labels_saved.scoring import ScoredSubsets, label_of, score_subsets
from cardiobench.extensions.labels_saved.subsets import draw_subsets
from cardiobench.models.base import Encoder
from cardiobench.protocols import list_protocols, protocol, protocol_class
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.base import PredictionProtocol, TaskData
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.learnable import check_learnable
from cardiobench.protocols.options import InFile
from cardiobench.protocols.task_scorer import TaskScorer
from cardiobench.results.score_result import Estimate
from cardiobench.runner.eta import format_seconds
from cardiobench.stats.bootstrap import estimate

COMPONENT = "protocol learning_curve"
VERSION = 1

Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class LearningCurve(AnalysisProtocol):
    """Score learners on nested random subsets of the training patients.

    Patients are drawn from train and validation together, so that validation patients count as labelled data too. If a
    subset has too few validation patients for model selection, they are used for training, and the protocol splits the
    training patients itself. The full set gives the result of the protocol itself. A subset without two patients of
    each class in every draw is omitted.

    Intervals are computed over test and training patients (`cardiobench.stats.variability.joint_resamples`).

    Attributes:
        learners: Protocol names; empty for all installed learners except those that train networks with checkpoints.
        shares: Fractions of the patients, including 1.
        draws: Number of random patient orders; each provides all subsets.
        seed: Random seed of the orders.
        options: Mapping from learner to its options in the run.
    """

    learners: tuple[Annotated[str, InFile()], ...] = ()
    shares: tuple[Share, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    draws: Annotated[int, Field(ge=2, le=1000)] = 5
    seed: Seed = 0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    name = "learning_curve"
    keeps_training = True

    def __post_init__(self) -> None:
        """Reject shares that do not end with 1 and protocols that do not learn."""
        if self.shares[-1:] != (1.0,) or list(self.shares) != sorted(set(self.shares)):
            raise BadConfig(f"{self.name}.shares={list(self.shares)}: give ascending shares that end with 1")
        for one in self.learners:
            kind = protocol_class(one)
            if not issubclass(kind, PredictionProtocol) or not kind.learns or kind.out_of_fold:
                raise BadConfig(
                    f"{self.name}.learners={one}: it does not learn from training patients. Choose among {', '.join(learners())}"
                )

    @classmethod
    def from_config(cls, config: RunConfig, **options: Any) -> Self:
        """Build the protocol and its learners from run settings."""
        made = super().from_config(config, **options)
        chosen = made.learners or learners(network=False)
        return replace(made, learners=chosen, options={one: protocol(one, config).get_params() for one in chosen})

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return options that depend on the run settings."""
        return {"seed": config.seed}

    @property
    def from_embeddings(self) -> bool:  # type: ignore[override]  # What a learner needs is known once it is chosen.
        """Return whether all learners work without training networks."""
        return not any(one.keeps_training for one in self.uses())

    def uses(self) -> tuple[PredictionProtocol, ...]:
        """Return the learners."""
        names = self.learners or learners(network=False)
        made = [protocol(name, **self.options.get(name, {})) for name in names]
        return tuple(one for one in made if isinstance(one, PredictionProtocol))

    def own_models(self, tasks: Sequence[Task], models: Sequence[str]) -> tuple[str, ...]:
        """Return the models required by the learners."""
        return tuple(dict.fromkeys(model for one in self.uses() for model in one.own_models(tasks, models)))

    def takes(self, trained_by: str, tasks: Sequence[Task]) -> bool:
        """Return whether a learner applies to a model."""
        return any(one.takes(trained_by, tasks) for one in self.uses())

    def price(self, analysis: Analysis, encoder: Encoder, seconds: Mapping[str, float]) -> list[str]:
        """Estimate the number and, if known from the full-data result, the duration of training runs."""
        (task,) = analysis.tasks
        known = analysis.references(task)
        patients = known.loc[known["split"] != "test", "patient_id"].nunique()
        counts = ", ".join(f"{share * patients:.0f}" for share in self.shares)
        work = self.draws * sum(self.shares[:-1]) + 1
        lines = []
        for one in self._of(encoder, task):
            if not one.keeps_training or _refusal(one, encoder, task):
                continue
            members = "a training"
            if isinstance(one, EnsembleProtocol) and one.members > 1:
                members = f"{one.members} trainings"
            for label in (label_of(one, variant) for variant in one.variants(task)):
                text = (
                    f"{self.name} of {label} on {task.name}: {members} for each of {self.draws} draws of "
                    f"{counts} patients (all at once); at most {work:.1f} times the work of {label} itself"
                )
                time = f", about {format_seconds(work * seconds[label])}" if label in seconds else ""
                lines.append(text + time)
        return lines

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return the curve of each learner, and the joint resamples for comparisons.

        Raises:
            NotApplicable: There is no training data, or no learner applies.
        """
        (task,) = analysis.tasks
        data = analysis.data(task)
        check_learnable(data, "a learning curve")
        scorer = TaskScorer(task, analysis.references(task), analysis.resamples, analysis.seed)
        subsets, notes = draw_subsets(data, self.shares, self.draws, self.seed)
        curves: list[ScoredSubsets] = []
        for one in self._of(encoder, task):
            if reason := _refusal(one, encoder, task):
                notes.append(f"{one.name} has no learning curve: {reason}")
                continue
            for variant in one.variants(task):
                try:
                    curves.append(score_subsets(one, variant, subsets, scorer, encoder))
                except NotApplicable as error:
                    notes.append(f"{label_of(one, variant)} has no learning curve: {error}")
        if not curves:
            raise NotApplicable("; ".join(notes) or f"no learner applies to {encoder.name}")
        notes += [note for curve in curves for note in curve.notes]
        resamples = pd.concat([curve.resamples(self.seed) for curve in curves], axis=1)
        values: dict[str, Estimate] = {}
        rows = []
        for curve in curves:
            for subset, mean in zip(curve.subsets, curve.means, strict=True):
                column = curve.column(subset)
                values[column] = found = estimate(mean, resamples[column].to_numpy(), curve.patients)
                rows.append({
                    "learner": curve.learner,
                    "patients": subset.patients,
                    "score": found.value,
                    "low": found.low,
                    "high": found.high,
                    "test_patients": found.n_patients,
                    "reference": curve.reference,
                })  # fmt: skip
        table = pd.DataFrame(rows).assign(
            metric=scorer.key,
            unit=scorer.unit,
            better="higher" if scorer.metric.higher_is_better else "lower",
            floor=scorer.floor(),
        )
        draws = pd.concat([curve.draws() for curve in curves], ignore_index=True)
        tables = {"curve": table, "draws": draws, "resamples": resamples}
        return AnalysisOutput(values, tables, {"paired_by": self._digest(data, analysis)}, tuple(notes))

    def _of(self, encoder: Encoder, task: Task) -> Iterator[PredictionProtocol]:
        trained_by = getattr(encoder, "trained_by", "")
        return (one for one in self.uses() if one.takes(trained_by, (task,)))

    def _digest(self, data: TaskData, analysis: Analysis) -> str:
        """Return a digest of recordings, splits and draws; comparable curves share it."""
        rows = data.rows.sort_values("id")
        facts = [rows[name].astype(str).tolist() for name in ("id", "patient_id", "split")]
        drawn = [analysis.seed, analysis.resamples, self.seed, self.draws, self.shares[-2:]]
        return sha256_of_json([data.task.name, *facts, *drawn])


def _refusal(learner: PredictionProtocol, encoder: Encoder, task: Task) -> str:
    """Return the reason why a learner does not apply to a model and a task; empty if it does."""
    try:
        learner.check(task)
        learner.check_encoder(encoder, task)
    except NotApplicable as error:
        return str(error)
    return ""


def learners(*, network: bool = True) -> tuple[str, ...]:
    """Return the names of installed protocols that learn from training patients.

    Args:
        network: Whether to include protocols that train networks with checkpoints.
    """
    kinds = {name: protocol_class(name) for name in list_protocols()}
    return tuple(
        name
        for name, kind in kinds.items()
        if issubclass(kind, PredictionProtocol)
        and kind.learns
        and not kind.out_of_fold
        and (network or not kind.keeps_training)
    )
