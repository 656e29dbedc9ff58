"""Store scores with intervals, floors, verdicts, coverage and provenance in one JSON file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

from cardiobench.core.errors import BadData
from cardiobench.core.extensions import resolve
from cardiobench.metrics.load import find_numbers
from cardiobench.metrics.number import BETTER, Better
from cardiobench.metrics.number import Number as MetricNumber
from cardiobench.results.cost import Cost
from cardiobench.results.estimate import Estimate, Floor
from cardiobench.results.record import (
    EMBEDDINGS,
    Count,
    Coverage,
    DatasetFacts,
    ModelFacts,
    Name,
    Number,
    Part,
    Range,
    Record,
    Stamp,
)
from cardiobench.results.refits import Refits
from cardiobench.results.verdict import LEVEL, Verdict

OLDER_RULES = "scored by older rules, score again"
EXTERNAL = "predictions"
"""Protocol name of external predictions; their variant is the user's name for the method."""


@dataclass(frozen=True)
class Judgement(Part):
    """Verdict on a score and the numbers behind it; docs/verdict.md states the rules.

    Attributes:
        word: Verdict.
        sentence: Reason for the verdict, including numbers.
        difference: Score minus floor, signed so that positive is better; computed from the worst case if predictions
            are missing.
        low: Lower end of the 95 % interval of the difference.
        high: Upper end of the interval.
        p_value: P-value of the information test: how often the same answers, permuted over patients, score as well.
        p_adjusted: P-value adjusted for the family, counting other members as not run (p = 1); tripled for fixed
            out-of-fold predictions.
        p_reversed: Share of permutations of the same answers over patients that score as badly.
        statistic: Metric of the information test.
        test: Method behind the p-values, such as Mann-Whitney's test.
        refitted: Whether the test refits the embeddings on permuted labels instead of permuting fixed answers.
        family: Primary family of the result; empty for an exploratory, unadjusted result.
        detectable: Smallest difference from the floor that would usually be detected.
        n_effective: Effective number of patients, weighted by their share of rows.
        former: Verdict under older, invalid rules; empty under the current rules.
    """

    word: Verdict
    sentence: str
    difference: Number = math.nan
    low: Number = math.nan
    high: Number = math.nan
    p_value: Number = math.nan
    p_adjusted: Number = math.nan
    p_reversed: Number = math.nan
    statistic: str = ""
    test: str = ""
    refitted: bool = False
    family: str = ""
    detectable: Number = math.nan
    n_effective: Number = math.nan
    former: str = ""

    def __post_init__(self) -> None:
        """Accept the text of a verdict; other texts raise ValueError."""
        object.__setattr__(self, "word", Verdict(self.word))  # type: ignore[call-arg]  # a look-up by value

    @property
    def exploratory(self) -> bool:
        """Return whether the result is outside all primary families and its p-value is not adjusted."""
        return not self.family


@dataclass(frozen=True)
class Gap(Part):
    """Difference between the best and the worst group, with the gap expected by chance for groups of this size.

    Attributes:
        value: Gap between the best and the worst group, at least 0; NaN with a reason if undefined.
        expected: Mean gap of random groups of patients with the same true class.
        excess: Value minus expected, which may be negative.
        p_value: Fraction of random groups that differ at least as much.
        p_adjusted: P-value corrected for all breakdowns of the result.
        difference: Difference of two groups (first minus second) minus `mix`; NaN for more groups.
        low: Lower end of the 95 % interval of the difference.
        high: Upper end of the interval.
        reason: Reason for a NaN; empty otherwise.
        mix: Difference of two groups explained by their mix of true classes or values: its mean over random groups.
    """

    value: Number
    expected: Number = math.nan
    excess: Number = math.nan
    p_value: Number = math.nan
    p_adjusted: Number = math.nan
    difference: Number = math.nan
    low: Number = math.nan
    high: Number = math.nan
    reason: str = ""
    mix: Number = math.nan

    @property
    def shown(self) -> bool:
        """Whether groups differ: p is below .05 and, for two groups, the interval of the difference excludes 0."""
        return self.p_adjusted < LEVEL and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Breakdown(Part):
    """Ranking metric by subgroup of one column.

    Attributes:
        values: Mapping from group to estimate in group order.
        gap: Gap between the groups.
        worst: Name of the worst group.
        others: Gaps of other numbers: `fnr`, `fpr` and `calibration` for two classes, `bias` for regression.
    """

    values: Mapping[str, Estimate]
    gap: Gap
    worst: str
    others: Mapping[str, Gap] = field(default_factory=dict)


@dataclass(frozen=True)
class Bounds(Part):
    """Bounds of the score if all missing predictions were as wrong as possible, or correct.

    Attributes:
        missing: Number of units (for masks and landmarks: labelled frames) without predictions.
        worst: Worst case, which determines the verdict.
        best: The best case.
    """

    missing: Count
    worst: Number
    best: Number


@dataclass(frozen=True)
class ClassScore(Part):
    """Scores of one class in a multilabel task.

    Attributes:
        n: Number of rows in which the class was measured.
        positives: Number of scored rows with the class.
        patients: Number of patients with the class.
        auroc: AUROC against the rows without the class, with interval.
        auprc: Average precision; NaN if undefined.
        auprc_low: Lower end of its interval; NaN for fewer than 50 patients with the class.
        auprc_high: Upper end of its interval.
    """

    n: Count
    positives: Count
    patients: Count
    auroc: Estimate
    auprc: Number
    auprc_low: Number = math.nan
    auprc_high: Number = math.nan


@dataclass(frozen=True)
class NumberFacts(Part):
    """Facts about a number in a result, for readers without its metric.

    Attributes:
        better: Better direction; None if there is none.
        range: Smallest and largest possible value; null for no limit.
        unit: Unit: "fraction" for a share shown in percent, "label" for the unit of the task's label, else the unit
            itself.
    """

    better: Better | None
    range: Range
    unit: str

    @classmethod
    def of(cls, number: MetricNumber) -> Self:
        """Return the facts about a metric's number."""
        return cls(number.better, number.range, number.unit)

    def describes(self, number: MetricNumber) -> bool:
        """Return whether these are the facts about a metric's number."""
        return (self.better, self.range, self.unit) == (number.better, number.range, number.unit)


@dataclass(frozen=True)
class ScoreResult(Record):
    """Result of one model on one task under one protocol.

    Attributes:
        task: Task name `<dataset>/<target>`.
        metric: Key in `overall` of the ranking metric.
        higher_is_better: Whether higher values of the ranking metric are better.
        unit: Unit of a regression label; empty for fractions.
        overall: Mapping from metric key to estimate.
        further: Mapping from metric key to value for numbers without intervals that are shown on demand.
        numbers: Mapping from metric key to facts about numbers in `overall` and `further`.
        floors: Floors of the ranking metric: `best_uninformed` determines the verdict; `best_constant` (chosen on test
            labels) is additional.
        verdict: Verdict on the score.
        collapsed: Whether the model gives nearly the same answer to every recording.
        coverage: Numbers of `scored` and `expected` units of the complete release (for masks and landmarks: labelled
            frames). `expected` is None if the release of the references is unknown.
        protocol: Name of the protocol.
        variant: Variant of the protocol.
        options: Chosen options of the protocol.
        dataset: Name, version and digest of the dataset.
        model: Name, revision, loader and preprocessing of the model.
        groups: Mapping from breakdown name to breakdown.
        skipped_groups: Mapping from `breakdown=group` to the reason for a missing score.
        bounds: Worst and best case with missing predictions; None if none are missing.
        per_class: Mapping from class to score for multilabel tasks; empty otherwise.
        generated: Whether recordings are phantoms or from a synthetic twin; such results are never ranked with real
            ones.
        out_of_fold: Whether scored units come from all splits, each predicted by a model that has not seen its patient.
        rules: Version of the scoring rules. Under older rules, `verdict.former` is the verdict.
        seen_in_pretraining: Whether the model saw the dataset in pretraining; None if unknown.
        warnings: Warnings for readers.
        predictions_sha256: SHA-256 of the predictions file; empty if not saved.
        stamp: Versions, seed and time.
        cost: Cost of the embeddings; None for external predictions.
        refits: Scores of the same model fitted to other draws of its training data, for comparisons between models; None
            if there are none, as for external predictions and up to schema 6.
    """

    schema: ClassVar[int] = 7
    older: ClassVar[tuple[int, ...]] = (6,)
    task: Name
    metric: Name
    higher_is_better: bool
    unit: str
    overall: Mapping[str, Estimate]
    floors: Mapping[str, Floor]
    verdict: Judgement
    collapsed: bool
    coverage: Coverage
    protocol: Name = EXTERNAL
    variant: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    dataset: DatasetFacts = field(default_factory=dict)
    model: ModelFacts = field(default_factory=dict)
    groups: Mapping[str, Breakdown] = field(default_factory=dict)
    skipped_groups: Mapping[str, str] = field(default_factory=dict)
    bounds: Bounds | None = None
    per_class: Mapping[str, ClassScore] = field(default_factory=dict)
    generated: bool = False
    out_of_fold: bool = False
    rules: int = 4
    seen_in_pretraining: bool | None = None
    warnings: tuple[str, ...] = ()
    predictions_sha256: str = ""
    stamp: Stamp = field(default_factory=dict)
    numbers: Mapping[str, NumberFacts] = field(default_factory=dict)
    further: Mapping[str, Number] = field(default_factory=dict)
    cost: Cost | None = None
    refits: Refits | None = None

    def __str__(self) -> str:
        # Refer to the module, because `printing` imports this one.
        return resolve("cardiobench.results.printing:result_text")(self)

    def __repr__(self) -> str:
        return resolve("cardiobench.results.printing:result_repr")(self)

    def _repr_html_(self) -> str:
        return resolve("cardiobench.results.printing:result_html")(self)

    @property
    def external(self) -> bool:
        """Whether predictions are external; such results are ranked separately and shown as references."""
        return self.protocol == EXTERNAL

    @property
    def given_embeddings(self) -> bool:
        """Return whether embeddings are external; such results are ranked separately."""
        return self.model.get("loaded_by") == EMBEDDINGS

    @property
    def input_condition(self) -> str:
        """Condition that modifies recordings, such as fewer leads; empty for unmodified recordings.

        Results are only ranked with results of the same condition.
        """
        return str(self.model.get("condition") or "")

    @property
    def profile(self) -> str:
        """Profile of the run, which determines its definitions and seed; empty for the default."""
        return str(self.stamp.get("profile") or "")

    @property
    def computed_by(self) -> str:
        """Owner of a result reused from a dataset of results (`--reuse`); empty for a result of the user's own run."""
        source = self.stamp.get("reused") or ""
        return str(source.get("owner") or source) if isinstance(source, Mapping) else str(source)

    @property
    def label(self) -> str:
        """Protocol and variant as in file names and tables."""
        return f"{self.protocol}.{self.variant}" if self.variant else self.protocol

    @property
    def score(self) -> Estimate:
        """Estimate of the ranking metric."""
        return self.overall[self.metric]

    def number(self, key: str = "") -> MetricNumber:
        """Return facts about a number as recorded, else as declared by a metric, else only its direction.

        Args:
            key: Key in `overall`; empty for the ranking metric.
        """
        return self._ranking_number if key in ("", self.metric) else self._number(key)

    @cached_property
    def _ranking_number(self) -> MetricNumber:
        return self._number(self.metric)

    def _number(self, key: str) -> MetricNumber:
        declared, facts = find_numbers(key), self.numbers.get(key)
        if facts is not None:
            known = (number for number in declared if facts.describes(number))
            return next(known, MetricNumber(key, facts.better, facts.range, unit=facts.unit))
        if key != self.metric:
            return next(iter(declared), MetricNumber(key, None))
        known = (number for number in declared if number.higher_is_better == self.higher_is_better)
        return next(known, MetricNumber(key, BETTER[self.higher_is_better]))

    @property
    def floor(self) -> Floor:
        """Floor that determines the verdict: the best score without looking at the recording."""
        return self.floors["best_uninformed"]

    @property
    def scored(self) -> int:
        """Number of scored units (for masks and landmarks: labelled frames)."""
        return int(self.coverage["scored"] or 0)

    @property
    def expected(self) -> int | None:
        """Number of units in the complete release; None if unknown, as for hand-made references."""
        by_hand = "references" in self.dataset and not self.dataset.get("references_digest")
        return None if by_hand else self.coverage["expected"]

    @property
    def outdated(self) -> bool:
        """Return whether the result was scored under older rules."""
        return self.rules < type(self).rules

    @classmethod
    def upgrade(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """Upgrade a result of schema 6, which lacks refits.

        It keeps its scores but must be scored again, because its verdict follows older rules.
        """
        try:
            verdict = record["verdict"]
            unranked = {"word": Verdict.INCOMPARABLE, "sentence": OLDER_RULES, "former": verdict["word"]}
            return {**record, "verdict": {**verdict, **unranked}}
        except (KeyError, TypeError) as error:
            raise BadData(
                f"the record of schema {record['schema']} is not a valid {cls.__name__} ({error!r}). Run the evaluation again."
            ) from error
