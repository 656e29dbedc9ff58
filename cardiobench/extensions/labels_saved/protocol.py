"""Learning curve: the score of protocols that learn from nested random subsets of the training patients."""

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
    """The score of protocols that learn, over nested random subsets of the training patients.

    The patients of train and validation are drawn alike, so that those who choose penalties and epochs are counted. Where a subset has
    too few validation patients to choose by, they are learned from, and the protocol splits the training patients itself. All patients
    together give the result of the protocol itself. A subset that cannot hold two patients of each class is left out.

    The interval is over test and training patients (`savings.joint_resamples`).

    Attributes:
        learners: Names of protocols; none for all installed ones that learn and need no training of networks that keeps checkpoints.
        shares: Shares of the patients; 1 is among them.
        draws: Number of random orders of the patients, from each of which all subsets are taken.
        seed: Seed of the orders.
        options: Learner -> its options, as the run sets them.
    """

    learners: tuple[Annotated[str, InFile()], ...] = ()
    shares: tuple[Share, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    draws: Annotated[int, Field(ge=2, le=1000)] = 5
    seed: Seed = 0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    name = "learning_curve"
    keeps_training = True

    def __post_init__(self) -> None:
        """Refuse shares without all patients, and learners that do not learn."""
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
        """Build the protocol with the settings of a run, those of its learners included."""
        made = super().from_config(config, **options)
        chosen = made.learners or learners(network=False)
        return replace(made, learners=chosen, options={one: protocol(one, config).get_params() for one in chosen})

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"seed": config.seed}

    @property
    def from_embeddings(self) -> bool:  # type: ignore[override]  # What a learner needs is known once it is chosen.
        """Return whether no learner trains networks."""
        return not any(one.keeps_training for one in self.uses())

    def uses(self) -> tuple[PredictionProtocol, ...]:
        """Return the learners."""
        names = self.learners or learners(network=False)
        made = [protocol(name, **self.options.get(name, {})) for name in names]
        return tuple(one for one in made if isinstance(one, PredictionProtocol))

    def own_models(self, tasks: Sequence[Task], models: Sequence[str]) -> tuple[str, ...]:
        """Return the models that learners bring."""
        return tuple(dict.fromkeys(model for one in self.uses() for model in one.own_models(tasks, models)))

    def takes(self, trained_by: str, tasks: Sequence[Task]) -> bool:
        """Return whether a learner is run with a model."""
        return any(one.takes(trained_by, tasks) for one in self.uses())

    def price(self, analysis: Analysis, encoder: Encoder, seconds: Mapping[str, float]) -> list[str]:
        """Return how often networks are trained, and how long it takes where the result of all patients says so."""
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
        """Return the curve of each learner, and the joint resamples by which curves are compared.

        Raises:
            NotApplicable: There is nothing to learn from, or no learner takes part.
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
            raise NotApplicable("; ".join(notes) or f"no learner takes {encoder.name}")
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
        """Return a digest of the recordings, splits and draws that two curves share where they can be compared."""
        rows = data.rows.sort_values("id")
        facts = [rows[name].astype(str).tolist() for name in ("id", "patient_id", "split")]
        drawn = [analysis.seed, analysis.resamples, self.seed, self.draws, self.shares[-2:]]
        return sha256_of_json([data.task.name, *facts, *drawn])


def _refusal(learner: PredictionProtocol, encoder: Encoder, task: Task) -> str:
    """Return why a learner takes no part with a model on a task; empty where it does."""
    try:
        learner.check(task)
        learner.check_encoder(encoder, task)
    except NotApplicable as error:
        return str(error)
    return ""


def learners(*, network: bool = True) -> tuple[str, ...]:
    """Return the names of the installed protocols that learn from training patients.

    Args:
        network: Also those that train networks and keep checkpoints.
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
