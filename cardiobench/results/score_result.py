"""Scores on disk: every number with its interval, floor, verdict, coverage and provenance, as one JSON file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from cardiobench.results.verdict import LEVEL, Verdict

OLDER_RULES = "scored by older rules, score again"
EXTERNAL = "predictions"
"""Protocol of predictions from elsewhere; their variant is the name that the user gave to how they came about."""


@dataclass(frozen=True)
class Judgement(Part):
    """The verdict on a score with its reason and its numbers; the rules are in docs/verdict.md.

    Attributes:
        word: Verdict.
        sentence: Reason for the verdict, with its numbers.
        difference: Score minus floor, turned so that positive is better than the floor; of the worst case where answers
            are missing.
        low: Lower end of its 95 % interval.
        high: Upper end.
        p_value: P-value of the information test: how often the same answers, dealt to other patients, score as well.
        p_adjusted: The same for the family, all other members of which count as not run (p = 1); three times as large where
            fixed out-of-fold answers were dealt.
        p_reversed: Share of dealings of the same answers to other patients that score as badly.
        statistic: Metric that the test compared.
        test: Origin of the p-values, such as Mann-Whitney's test.
        refitted: Whether labels were dealt to other patients and the embeddings fitted again, rather than answers dealt as they are.
        family: Primary family that the result belongs to; empty for an exploratory, unadjusted result.
        detectable: Smallest difference from the floor that would usually have been seen.
        n_effective: Patients, each counted by the share of rows.
        former: Verdict by older rules, which hold no longer; empty for one of the present rules.
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
        """Accept the verdict's text; a text that is no verdict is a ValueError."""
        object.__setattr__(self, "word", Verdict(self.word))  # type: ignore[call-arg]  # a look-up by value

    @property
    def exploratory(self) -> bool:
        """Return whether the result is of no primary family, so that its p-value is not adjusted."""
        return not self.family


@dataclass(frozen=True)
class Gap(Part):
    """Largest minus smallest score of the groups, beside the gap expected for groups of this size without a difference.

    Attributes:
        value: The gap, never negative; NaN with a reason.
        expected: Mean gap of groups dealt to patients of the same true class.
        excess: Value minus expected, which may be negative.
        p_value: Share of dealings whose groups differ at least as much.
        p_adjusted: The same, corrected for all breakdowns of the result.
        difference: Difference of two groups, the first minus the second minus `mix`; NaN for more groups.
        low: Lower end of its 95 % interval.
        high: Upper end.
        reason: Reason why a number is NaN; empty otherwise.
        mix: Difference of two groups that their mix of true classes or values explains: the mean over the dealings.
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
        """Whether groups differ: p is below .05 and, of two groups, the interval of the difference lies beside 0."""
        return self.p_adjusted < LEVEL and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Breakdown(Part):
    """The ranking metric by the groups of one column.

    Attributes:
        values: Group -> estimate, in the order of the groups.
        gap: Gap between the groups.
        worst: Name of the worst group.
        others: Gaps of other numbers: `fnr`, `fpr` and `calibration` of two classes, `bias` of numbers.
    """

    values: Mapping[str, Estimate]
    gap: Gap
    worst: str
    others: Mapping[str, Gap] = field(default_factory=dict)


@dataclass(frozen=True)
class Bounds(Part):
    """The bounds of the score if every missing prediction were as wrong as possible, or right.

    Attributes:
        missing: Units (of masks and landmarks: labelled frames) without an answer.
        worst: The worst case, which the verdict is judged on.
        best: The best case.
    """

    missing: Count
    worst: Number
    best: Number


@dataclass(frozen=True)
class ClassScore(Part):
    """Ranking scores of one class of a multilabel task.

    Attributes:
        n: Rows in which it was measured.
        positives: Number of scored rows that have it.
        patients: Number of patients with such a row.
        auroc: Against the rows without it, with its interval.
        auprc: Average precision; NaN where it is undefined.
        auprc_low: Lower end of its interval; NaN below 50 patients with the class.
        auprc_high: Upper end.
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
    """Facts of a number in a result, for readers who lack the metric that computes it.

    Attributes:
        better: Better direction; None for a number without one.
        range: Smallest and largest possible value; null for no limit.
        unit: "fraction" for a share shown in percent, "label" for the unit of the task's label, else the unit itself.
    """

    better: Better | None
    range: Range
    unit: str

    @classmethod
    def of(cls, number: MetricNumber) -> Self:
        """Return the facts of a number of a metric."""
        return cls(number.better, number.range, number.unit)


@dataclass(frozen=True)
class ScoreResult(Record):
    """One model on one task under one protocol.

    Attributes:
        task: `<dataset>/<target>`.
        metric: Key of `overall` that ranks models.
        higher_is_better: Direction of that metric.
        unit: Unit of a regression label; empty for fractions.
        overall: Metric key -> estimate.
        further: Metric key -> value of numbers that are shown on demand alone, without an interval; empty in a result of
            schema 4 or older, whose `overall` held them.
        numbers: Metric key -> what the number is, of `overall` and `further`; empty in a result of schema 3 or older, which did not record it.
        floors: Floors of the ranking metric: `best_uninformed`, by which the verdict is judged, and as further rows
            `best_constant` (chosen on the test labels); `train_constant` and `chance` in a result of schema 4 or
            older.
        verdict: Verdict on the score.
        collapsed: The model answers (nearly) the same to everything.
        coverage: `scored` of `expected` units of the complete release; of masks and landmarks, of labelled frames. `expected`
            is None where the release of the references is not known.
        protocol: Protocol that made the predictions.
        variant: Variant of the protocol.
        options: Chosen options of the protocol.
        dataset: Name, version, digest.
        model: Name, revision, loaded_by, preprocessing.
        groups: Breakdown name -> breakdown.
        skipped_groups: `breakdown=group` -> why it has no score.
        bounds: Worst and best case where answers are missing; None where none is.
        per_class: Class -> score, of a multilabel task; empty for another.
        generated: Whether the recordings are phantoms or a synthetic twin; such a result never meets real ones.
        out_of_fold: Whether the scored units are of all splits, each predicted by a model that never saw its patient; None in
            a result of schema 3 or older, which did not record it.
        rules: Edition of the rules that it was scored by. Of older rules `verdict.former` is the verdict; rules 1 had none.
        seen_in_pretraining: Whether the model saw the dataset before; None when nobody knows.
        warnings: Sentences for the reader of the number.
        predictions_sha256: SHA-256 of the predictions file beside the result; empty where none was saved.
        stamp: Versions, seed and time.
        cost: Cost of the embeddings that the answers were made from; None for predictions from elsewhere and in a result of
            schema 5 or older, which did not record it.
    """

    schema: ClassVar[int] = 6
    older: ClassVar[tuple[int, ...]] = (1, 2, 3, 4, 5)
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
    out_of_fold: bool | None = False
    rules: int = 3
    seen_in_pretraining: bool | None = None
    warnings: tuple[str, ...] = ()
    predictions_sha256: str = ""
    stamp: Stamp = field(default_factory=dict)
    numbers: Mapping[str, NumberFacts] = field(default_factory=dict)
    further: Mapping[str, Number] = field(default_factory=dict)
    cost: Cost | None = None

    def __str__(self) -> str:
        # By reference, since `printing` builds on this module.
        return resolve("cardiobench.results.printing:result_text")(self)

    def __repr__(self) -> str:
        return resolve("cardiobench.results.printing:result_repr")(self)

    def _repr_html_(self) -> str:
        return resolve("cardiobench.results.printing:result_html")(self)

    @property
    def external(self) -> bool:
        """Whether the predictions come from elsewhere: ranked among such results alone, a reference beside the others."""
        return self.protocol == EXTERNAL

    @property
    def given_embeddings(self) -> bool:
        """Return whether the vectors come from elsewhere; such results are ranked among themselves."""
        return self.model.get("loaded_by") == EMBEDDINGS

    @property
    def input_condition(self) -> str:
        """The condition under which models saw other recordings, such as fewer leads; empty for recordings as they are.

        Such a result is ranked with results of the same condition alone.
        """
        return str(self.model.get("condition") or "")

    @property
    def profile(self) -> str:
        """Profile of the run that made it, whose definitions and seed it follows; empty for the benchmark's own."""
        return str(self.stamp.get("profile") or "")

    @property
    def label(self) -> str:
        """The protocol with its variant, as in file names and tables."""
        return f"{self.protocol}.{self.variant}" if self.variant else self.protocol

    @property
    def score(self) -> Estimate:
        """The number that ranks models."""
        return self.overall[self.metric]

    def number(self, key: str = "") -> MetricNumber:
        """Return the facts of a number of the result: as recorded, else as declared by a metric, else its direction alone.

        Args:
            key: Key of `overall`; empty for the number that ranks models.
        """
        key = key or self.metric
        declared, facts = find_numbers(key), self.numbers.get(key)
        if facts is not None:
            known = (number for number in declared if NumberFacts.of(number) == facts)
            return next(known, MetricNumber(key, facts.better, facts.range, unit=facts.unit))
        if key != self.metric:
            return next(iter(declared), MetricNumber(key, None))
        known = (number for number in declared if number.higher_is_better == self.higher_is_better)
        return next(known, MetricNumber(key, BETTER[self.higher_is_better]))

    @property
    def floor(self) -> Floor:
        """The floor that the verdict is judged by: the best score without looking at the recording."""
        return self.floors["best_uninformed"]

    @property
    def scored(self) -> int:
        """Number of scored units; of masks and landmarks, of labelled frames."""
        return int(self.coverage["scored"] or 0)

    @property
    def expected(self) -> int | None:
        """Number of such units in the complete release; None where it is not known, as for references made by hand."""
        by_hand = "references" in self.dataset and not self.dataset.get("references_digest")
        return None if by_hand else self.coverage["expected"]

    @property
    def outdated(self) -> bool:
        """Return whether the result was scored by older rules."""
        return self.rules < type(self).rules

    @classmethod
    def upgrade(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result of an older schema.

        Schemas 2 and 3 recorded neither `out_of_fold` nor `numbers`, and schema 2 had no multilabel task. All keep their scores, and
        say that they have to be scored again, since their verdicts are by older rules; schema 1 had none. A result of schema 5
        is by the present rules and lacks its cost alone.
        """
        if record["schema"] == 5:
            return dict(record)
        record = {**record, **({"out_of_fold": None} if record["schema"] < 4 else {})}
        try:
            if record["schema"] > 1:
                verdict = record["verdict"]
                unranked = {"word": Verdict.INCOMPARABLE, "sentence": OLDER_RULES, "former": verdict["word"]}
                return {**record, "verdict": {**verdict, **unranked}}
            groups = {
                name: {
                    **entry,
                    "gap": {"value": entry["gap"]["value"], "reason": entry["gap"]["reason"] or OLDER_RULES},
                }
                for name, entry in record["groups"].items()
            }
            return {
                **{key: value for key, value in record.items() if key != "beats_floor"},
                "rules": 1,
                "verdict": {"word": Verdict.INCOMPARABLE, "sentence": OLDER_RULES},
                "floors": {**record["floors"], "best_uninformed": {"value": None, "reason": OLDER_RULES}},
                "groups": groups,
                "generated": bool(record["dataset"].get("twin", False)),
                "warnings": [OLDER_RULES, *record["warnings"]],
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise BadData(f"no {cls.__name__} of schema {record['schema']}: {error!r}") from error
