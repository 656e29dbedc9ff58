"""What a score is on paper: every number with its interval, floors, coverage and provenance, as one JSON file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cardiobench.results.record import Count, Coverage, DatasetFacts, ModelFacts, Name, Number, Part, Record, Stamp


@dataclass(frozen=True)
class Estimate(Part):
    """A score and its 95 % interval over patients.

    Attributes:
        value: the score; NaN where it is undefined.
        low: 2.5 % quantile of the resamples.
        high: 97.5 % quantile.
        n: scored rows.
        n_patients: patients they come from.
        reason: why a number is NaN or rests on fewer resamples; empty otherwise.
    """

    value: Number
    low: Number
    high: Number
    n: Count
    n_patients: Count
    reason: str = ""


@dataclass(frozen=True)
class Floor(Part):
    """A score that needs no model.

    Attributes:
        value: of the ranking metric on the same rows; NaN with the reason where there is no such floor.
        prediction: the constant answer; None where answers vary.
        reason: why there is none; empty otherwise.
    """

    value: Number
    prediction: str | float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Verdict(Part):
    """Whether the model beats the best constant, by a paired bootstrap over patients.

    Attributes:
        verdict: `yes` or `no` when the interval of the difference is on one side of zero, `tied` when it holds zero,
            `unknown` when there is no interval.
        difference: model minus floor, turned so that positive is better than the floor.
        low: 2.5 % quantile.
        high: 97.5 % quantile.
    """

    verdict: Literal["yes", "no", "tied", "unknown"]
    difference: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class Gap(Part):
    """Best group minus worst group; never negative, so the interval of a gap between small groups leans upwards."""

    value: Number
    low: Number
    high: Number
    reason: str = ""


@dataclass(frozen=True)
class Breakdown(Part):
    """The ranking metric by the groups of one column.

    Attributes:
        values: group -> estimate, in the order of the groups.
        gap: between the best and the worst group.
        worst: name of the worst group.
    """

    values: Mapping[str, Estimate]
    gap: Gap
    worst: str


@dataclass(frozen=True)
class ScoreResult(Record):
    """One model on one task under one protocol.

    Attributes:
        task: `<dataset>/<target>`.
        metric: key of `overall` that ranks models.
        higher_is_better: direction of that metric.
        unit: of a regression label; empty for fractions.
        overall: metric key -> estimate.
        floors: `best_constant`, `train_constant`, `chance` of the ranking metric.
        beats_floor: against `best_constant`.
        collapsed: the model answers (nearly) the same to everything.
        coverage: `scored` of `expected` units.
        protocol: how predictions came about.
        variant: of the protocol.
        options: of the protocol, as chosen.
        dataset: name, version, digest.
        model: name, revision, loaded_by, preprocessing.
        groups: breakdown name -> breakdown.
        skipped_groups: `breakdown=group` -> why it has no score.
        seen_in_pretraining: whether the model saw the dataset before; None when nobody knows.
        warnings: sentences for the reader of the number.
        predictions_sha256: of the file of predictions beside the result; empty where none was saved.
        stamp: versions, seed and time.
    """

    task: Name
    metric: Name
    higher_is_better: bool
    unit: str
    overall: Mapping[str, Estimate]
    floors: Mapping[str, Floor]
    beats_floor: Verdict
    collapsed: bool
    coverage: Coverage
    protocol: Name = "predictions"
    variant: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    dataset: DatasetFacts = field(default_factory=dict)
    model: ModelFacts = field(default_factory=dict)
    groups: Mapping[str, Breakdown] = field(default_factory=dict)
    skipped_groups: Mapping[str, str] = field(default_factory=dict)
    seen_in_pretraining: bool | None = None
    warnings: tuple[str, ...] = ()
    predictions_sha256: str = ""
    stamp: Stamp = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The protocol with its variant, as in file names and tables."""
        return f"{self.protocol}.{self.variant}" if self.variant else self.protocol

    @property
    def score(self) -> Estimate:
        """The number that ranks models."""
        return self.overall[self.metric]
