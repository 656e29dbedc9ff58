"""Comparison of two models on the same patients: better, equivalent within a predefined margin, or undecided."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import BadPredictions, first_n
from cardiobench.core.setting import check_draws
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.formatting import p_value
from cardiobench.results.printing import PrintedTable, html_table, text_table
from cardiobench.scoring.families import margin
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.pairs import Outcome, outcome
from cardiobench.scoring.refits import ANSWERS, Variation, on_labels, variation_of_answers
from cardiobench.scoring.verdict import DETECTABLE
from cardiobench.stats.bootstrap import MIN_PATIENTS, patient_weights
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.influence import row_influence
from cardiobench.stats.intervals import made_up_answers, smoothed_cells, standard_error
from cardiobench.stats.paired import (
    MIN_PER_LABEL,
    UNKNOWN,
    Difference,
    comparable_labels,
    difference_of_classes,
    label_difference,
    moves_of_shares,
    outward_percentiles,
    percentiles,
    students,
    wider,
)
from cardiobench.stats.unequal import stretch_of_mean, stretch_of_tables, stretch_of_weights
from cardiobench.stats.variability import BOTH, SEEDS
from cardiobench.tasks.answers import TableAnswers


@dataclass(frozen=True, repr=False)
class Comparison:
    """Result of comparing two models on one task.

    Attributes:
        task: `<dataset>/<target>`.
        metric: Key of the metric.
        a: Score of the first model.
        b: Score of the second.
        difference: Difference a - b, in the metric's own direction.
        low: Lower end of the 95 % interval of the paired difference over patients.
        high: Upper end.
        inner_low: Lower end of its 90 % interval, which equivalence is judged by.
        inner_high: Upper end.
        p_value: Two-sided p-value of no difference.
        margin: Predefined difference below which the two count as equivalent; None if there is none.
        detectable: Smallest difference that is usually detected with these patients.
        higher_is_better: Direction of the metric.
        n: Number of rows.
        n_patients: Number of patients.
        names: Names of the two models.
        unit: Unit of the task's label; empty for classes.
        number: Direction, range and unit of the metric.
        p_adjusted: P-value corrected for the family of comparisons, or the p-value itself if there is no family.
        labels: Sentence about the compared labels; empty except for multilabel tasks.
        covers: Sources of variation that intervals and p-value include (`scoring.refits.Variation`). Without the
            variation of the training, the outcome is about two sets of answers, not about models.
        refits: Number of refits, or of trainings with other seeds, behind this.
    """

    task: str
    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    inner_low: float
    inner_high: float
    p_value: float
    margin: float | None
    detectable: float
    higher_is_better: bool
    n: int
    n_patients: int
    names: tuple[str, str]
    unit: str
    number: Number = field(repr=False)
    p_adjusted: float = np.nan
    labels: str = ""
    covers: str = ANSWERS
    refits: int = 0

    def __str__(self) -> str:
        title, columns, rows = self._table
        return f"{title}\n{text_table(columns, rows)}\n{self._conclusion}"

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.task}, {' against '.join(self.names)}, {self.metric_name}: {self.sentence}>"
        )

    def _repr_html_(self) -> str:
        title, columns, rows = self._table
        return html_table(columns, rows, [self._conclusion], title)

    @property
    def _table(self) -> PrintedTable:
        first, second = self.names
        units = f"{self.n} units of {self.n_patients} patients" if self.n != self.n_patients else f"{self.n} patients"
        rows = [
            (first, self.text(self.a), ""),
            (second, self.text(self.b), ""),
            (", ".join(filter(None, ("difference", self._points))), self.text(self.difference), self.ends),
        ]
        about = "".join(f", {text}" for text in (self.labels, self.scope) if text)
        return PrintedTable(f"{self.task}, {units}{about}", (self.metric_name, "score", "95 % CI"), rows)

    @property
    def _conclusion(self) -> str:
        p = f"p = {p_value(self.p_value)}".replace("= <", "<")
        if not np.isnan(self.p_adjusted) and self.p_adjusted != self.p_value:
            p += f", {p_value(self.p_adjusted)} after the correction for its family"
        return f"{p}: {self._words}"

    @property
    def scope(self) -> str:
        """Training variation behind the difference in words; empty for models that do not train."""
        if self.of_answers:
            return "answers only: other training patients are not covered"
        sources = {BOTH: "refits on other training patients", SEEDS: "trainings with other seeds"}
        return f"{self.refits} {sources[self.covers]}" if self.covers in sources else ""

    @property
    def outcome(self) -> Outcome:
        """The outcome for the first model: better, worse, equivalent to the second, or undecided.

        Without the variation of the training there is no better model, but two sets of answers may differ.
        """
        found = outcome(self._found, self.difference, self.p_adjusted, self.margin, self.higher_is_better)
        return "answers differ" if self.of_answers and found in ("better", "worse") else found

    @property
    def of_answers(self) -> bool:
        """Whether this compares two sets of answers only, because the variation of the training is not known."""
        return self.covers == ANSWERS

    @property
    def _found(self) -> Difference:
        ends = self.low, self.high, self.inner_low, self.inner_high
        return Difference(*ends, self.detectable / DETECTABLE, self.p_value)

    @property
    def better(self) -> str:
        """The better model, `a` or `b`; else `answers differ`, `equivalent`, `undecided` or `too few to say`."""
        return {"better": "a", "worse": "b"}.get(self.outcome, self.outcome)

    @property
    def sentence(self) -> str:
        """The outcome with its numbers as text."""
        if self.outcome == "too few to say":
            return self._words
        return f"{self._words}; difference {self.difference_text}"

    @property
    def difference_text(self) -> str:
        """Difference with its 95 % interval and unit as text."""
        ends = f"[{self.text(self.low)}, {self.text(self.high)}]"
        return f"{self.text(self.difference)} {ends} {self._points}".rstrip()

    @property
    def _words(self) -> str:
        match self.outcome:
            case "better" | "worse":
                return f"{self.names[self.outcome == 'worse']} is better"
            case "answers differ":
                higher = (self.difference > 0) == self.higher_is_better
                return f"these two sets of answers differ, in favour of {self.names[not higher]}"
            case "equivalent":
                of = "these two sets of answers are " if self.of_answers else ""
                return f"{of}equivalent within ±{self.number.margin(self.margin or 0.0, self.unit)}"
            case "undecided":
                seen = self.number.difference(self.detectable, self.unit)
                return f"undecided, only differences above about {seen} are usually seen with these {self.n_patients} patients"
        if self.n_patients >= MIN_PATIENTS and self.labels:
            return f"too few to say: {self.labels}"
        return f"too few to say: {self.n_patients} patients, {MIN_PATIENTS} needed"

    @property
    def _points(self) -> str:
        return self.number.difference_unit(self.unit)

    @property
    def metric_name(self) -> str:
        """Name of the metric with its unit and direction."""
        unit = self.number.shown_unit(self.unit)
        return " ".join(filter(None, (self.metric, unit, "↑" if self.higher_is_better else "↓")))

    @property
    def ends(self) -> str:
        """Ends of the 95 % interval of the difference as text; "none" if there is no interval."""
        return "none" if np.isnan(self.low) else f"{self.text(self.low)} – {self.text(self.high)}"

    def text(self, value: float) -> str:
        """Format a value of the metric, without its unit."""
        return self.number.text(value)


def compare(
    a: TableAnswers, b: TableAnswers, metric: str | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Compare two models on the same patients.

    Intervals and p-value cover the variation of the training, if both models have refits with the same draws or do not
    train; otherwise they compare two sets of answers (`scoring.refits`).

    Missing answers count as wrong in both scores. Intervals and p-value then cover both extremes: the missing answers
    of one model wrong and those of the other right, and the reverse.

    Args:
        a: Predictions of the first model; for tasks of single frames the scores of its units
            (`cardiobench.tasks.frames.unit_answers`).
        b: Predictions of the second model for the same units.
        metric: Folder of `hf_metrics/`; None means the task's ranking metric.
        resamples: Number of bootstrap resamples.
        seed: Seed of the draws.

    Raises:
        BadPredictions: The two do not have predictions for the same units of the same task.
    """
    check_draws(resamples, seed)
    if a.task.name != b.task.name:
        raise BadPredictions(
            f"{a.source} answers {a.task.name} and {b.source} answers {b.task.name}. Compare predictions for the same task."
        )
    if a.missing is not None or b.missing is not None:
        cases = ((True, True), (True, False), (False, True))
        pairs = [(fill_missing(a, worst=one), fill_missing(b, worst=other)) for one, other in cases]
        return _worst_case(*(compare(*pair, metric, resamples=resamples, seed=seed) for pair in pairs))
    rows = same_rows(a, b)
    other = b if rows is b.frame else replace(b, frame=rows)
    first, second, clusters, labels = a.sample(), other.sample(), Clusters.of(a.patients), ""
    classes = len(a.task.classes)
    loaded = a.task.rules.compared(load_metric(metric or a.task.metrics[0]), (first, second))
    if metric and load_metric(metric).needs_probabilities and loaded.name != metric:
        raise BadPredictions(
            f"{metric} needs probabilities, but one of the two has only decisions. Compare by {loaded.name}."
        )
    key = loaded.primary_key
    scores, found, varied, chosen = compare_samples(
        loaded, first, second, clusters, classes, partial(variation_of_answers, a, other), resamples, seed
    )
    if first.multilabel:
        over = f"over {chosen.sum()} of {len(chosen)} labels, those" if chosen.any() else "no label"
        labels = f"{over} that at least {MIN_PER_LABEL} patients have and {MIN_PER_LABEL} lack"
    return Comparison(
        task=a.task.name,
        metric=key,
        a=scores[0],
        b=scores[1],
        difference=scores[0] - scores[1],
        low=found.low,
        high=found.high,
        inner_low=found.inner_low,
        inner_high=found.inner_high,
        p_value=found.p_value,
        margin=margin(key, a.task.unit),
        detectable=DETECTABLE * found.se,
        higher_is_better=loaded.higher_is_better,
        n=len(first),
        n_patients=clusters.count,
        names=_names(a.source, b.source),
        unit=a.task.unit,
        number=loaded.numbers[key],
        p_adjusted=found.p_value,
        labels=labels,
        covers=varied.covers,
        refits=varied.refits,
    )


class ComparedSamples(NamedTuple):
    """Two predictions for the same rows, compared.

    Attributes:
        scores: Both scores.
        found: Intervals and p-value of their difference, with the variation of the training.
        varied: Variation of the training.
        chosen: Labels that are compared, bool (K,); empty except for multilabel tasks.
    """

    scores: tuple[float, float]
    found: Difference
    varied: Variation
    chosen: np.ndarray


def compare_samples(
    metric: Metric,
    first: ScoringInput,
    second: ScoringInput,
    clusters: Clusters,
    classes: int,
    vary: Callable[[Metric, np.ndarray], Variation],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ComparedSamples:
    """Compare two predictions for the same rows by the primary number of a metric.

    Args:
        metric: Metric whose primary number is compared.
        first: Rows of one prediction.
        second: Rows of the other.
        clusters: Patients of the rows.
        classes: Number of classes of the task; 0 for numbers.
        vary: Function that returns the variation of the training, given the metric and the compared labels, bool (K,).
        resamples: Number of bootstrap resamples.
        seed: Seed of the draws.
    """
    key = metric.primary_key
    chosen = comparable_labels(first.y_true, clusters) if first.multilabel else np.ones(0, dtype=bool)
    one, other = on_labels(first, chosen), on_labels(second, chosen)
    scores = float(metric.value(one)[key]), float(metric.value(other)[key])
    varied = vary(metric, chosen)
    enough = clusters.count >= MIN_PATIENTS and bool(chosen.any() or not first.multilabel)
    difference, found = scores[0] - scores[1], UNKNOWN
    if enough and not np.isnan(difference):
        found = paired_difference(metric, key, one, other, clusters, classes, resamples, seed)
        found = varied.add_to(found, difference, clusters.count)
    return ComparedSamples(scores, found, varied, chosen)


class ComparedDraws(NamedTuple):
    """Two learners compared by joint resamples of test and training patients.

    Attributes:
        difference: Difference of their scores; positive if the first is better.
        found: Intervals and p-value of the difference.
        ratios: 95 % interval of each ratio that follows from the scores, such as that of patients needed.
        p_adjusted: P-value corrected for all comparisons that it is shown with.
    """

    difference: float
    found: Difference
    ratios: tuple[tuple[float, float], ...]
    p_adjusted: float

    @property
    def outcome(self) -> Outcome:
        """The outcome for the first learner: better, worse, undecided or too few to say."""
        return outcome(self.found, self.difference, self.p_adjusted, None, higher_is_better=True)


def compare_draws(difference: float, drawn: np.ndarray, ratios: Sequence[np.ndarray], patients: int) -> ComparedDraws:
    """Compare two learners by the values of their scores in joint resamples (`stats.variability.joint_resamples`).

    Args:
        difference: Observed difference of the scores; positive if the first is better.
        drawn: Difference in each resample of test and training patients, (B,); NaN if undefined.
        ratios: Other quantities in each resample, (B,), which may be infinite.
        patients: Number of test patients; fewer than `MIN_PATIENTS` give no interval.
    """
    if patients < MIN_PATIENTS:
        return ComparedDraws(difference, UNKNOWN, ((np.nan, np.nan),) * len(ratios), np.nan)
    found = percentiles(difference, drawn, 1.0)
    return ComparedDraws(difference, found, tuple(map(outward_percentiles, ratios)), found.p_value)


def _worst_case(both_wrong: Comparison, *extremes: Comparison) -> Comparison:
    """Return a comparison whose intervals and p-value hold for all possible missing answers."""
    every = (both_wrong, *extremes)
    return replace(
        both_wrong,
        low=float(np.min([one.low for one in every])),
        high=float(np.max([one.high for one in every])),
        inner_low=float(np.min([one.inner_low for one in every])),
        inner_high=float(np.max([one.inner_high for one in every])),
        p_value=float(np.max([one.p_value for one in every])),
        p_adjusted=float(np.max([one.p_value for one in every])),
        detectable=float(np.max([one.detectable for one in every])),
    )


def _names(first: str, second: str) -> tuple[str, str]:
    """Return the sources as names, with `a` and `b` appended if they are equal."""
    return (first, second) if first != second else (f"{first} (a)", f"{second} (b)")


def paired_difference(
    metric: Metric,
    key: str,
    first: ScoringInput,
    second: ScoringInput,
    clusters: Clusters,
    classes: int,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Compute the interval of the difference of two predictions for the same rows.

    Scores of confusion tables use a smoothed bootstrap over all pairs of answers with one additional patient per class;
    the interval also contains Student's t over patients, because percentiles alone are too narrow for few patients.
    Means over labels use `label_difference`, scores with an influence function use Student's t over patients, and
    others use percentiles of a patient bootstrap. All intervals are widened for unequal patients.

    Returns:
        Intervals, standard error and p-value.
    """
    if metric.numbers[key].method == "class_mean":
        moves = None
        if metric.shares is not None:
            one, other = (metric.shares(**metric.inputs(sample))[key] for sample in (first, second))
            moves = moves_of_shares(one, other, metric.numbers[key].method_detail)
        return label_difference(first, second, clusters, moves)
    observed = float(metric.value(first)[key] - metric.value(second)[key])
    if metric.from_tables is not None and classes and metric.of_counts(key):
        present = np.bincount(first.y_true, minlength=classes) > 0
        moved = row_influence(metric.from_tables, key, first, present)
        moved = moved - row_influence(metric.from_tables, key, second, present)
        drawn = percentiles(
            observed, *_table_differences(metric, key, first, second, clusters, classes, resamples, seed)
        )
        return wider(drawn, difference_of_classes(observed, moved, first.y_true, clusters))
    if metric.influence is not None:
        return _by_t(metric, key, first, second, clusters)
    return percentiles(observed, *_weighted_differences(metric, key, first, second, clusters, resamples, seed))


def _table_differences(
    metric: Metric,
    key: str,
    first: ScoringInput,
    second: ScoringInput,
    clusters: Clusters,
    classes: int,
    resamples: int,
    seed: int,
) -> tuple[np.ndarray, float]:
    """Compute the differences in smoothed draws of the cells (true class, answer of a, answer of b).

    Returns an array (B,).

    Returns:
        The differences, and the factor by which they are widened for unequal patients.
    """
    if metric.from_tables is None:
        raise ValueError(f"{metric.name} is not a function of a confusion table")
    width = max(first.outcomes(classes), second.outcomes(classes))
    from_tables, shape = metric.from_tables, (-1, classes, width, width)
    pair = first.y_pred * width + second.y_pred
    answers = made_up_answers(first.y_true, classes, width)
    both = np.einsum("ka,kb->kab", answers, answers).reshape(classes, width**2)
    cells, _ = smoothed_cells(first.y_true, pair, clusters, both, resamples, seed)
    present = np.bincount(first.y_true, minlength=classes) > 0

    def differences(counts: np.ndarray) -> dict[str, np.ndarray]:
        of_first, of_second = (from_tables(counts.reshape(shape).sum(axis=axis), present)[key] for axis in (3, 2))
        return {key: of_first - of_second}

    factors = stretch_of_tables(first.y_true * width**2 + pair, classes * width**2, clusters, differences)
    return differences(cells)[key], factors.get(key, 1.0)


def _weighted_differences(
    metric: Metric, key: str, first: ScoringInput, second: ScoringInput, clusters: Clusters, resamples: int, seed: int
) -> tuple[np.ndarray, float]:
    """Compute differences in resamples of the patients, (B,), and the factor by which they are widened for unequal patients."""

    def differences(weights: np.ndarray) -> np.ndarray:
        gap: np.ndarray = metric.resamples(first, weights)[key] - metric.resamples(second, weights)[key]
        return gap

    drawn = np.concatenate([differences(chunk) for chunk in patient_weights(clusters.of_row, resamples, seed)])
    observed = metric.value(first)[key] - metric.value(second)[key]
    return drawn, stretch_of_weights(differences, observed, float(np.nanstd(drawn)), clusters)


def _by_t(metric: Metric, key: str, first: ScoringInput, second: ScoringInput, clusters: Clusters) -> Difference:
    if metric.influence is None:
        raise ValueError(f"{metric.name} has no influence function")
    influence = metric.influence(**metric.inputs(first))[key] - metric.influence(**metric.inputs(second))[key]
    difference = float(metric.value(first)[key] - metric.value(second)[key])
    se = standard_error(influence, clusters)
    return students(difference, se, clusters.count - 1, stretch_of_mean(influence, clusters))


def same_rows(a: TableAnswers, b: TableAnswers) -> pd.DataFrame:
    """Return the rows of b in the order of a: its own table if that has this order.

    Raises:
        BadPredictions: The two answer different units, or have different references.
    """
    of_a, of_b = set(a.frame["id"]), set(b.frame["id"])
    if of_a != of_b:
        only = [
            f"{p.source} alone has {first_n(sorted(ids))}" for p, ids in ((a, of_a - of_b), (b, of_b - of_a)) if ids
        ]
        raise BadPredictions(f"the two do not have predictions for the same units of {a.task.name}: {'; '.join(only)}.")
    in_order = np.array_equal(a.frame["id"], b.frame["id"])
    frame = b.frame if in_order else b.frame.set_index("id").loc[a.frame["id"]].reset_index()
    for column in ("y_true", "patient_id"):
        odd = a.frame["id"][(a.frame[column].to_numpy() != frame[column].to_numpy())]
        if len(odd):
            raise BadPredictions(
                f"{a.source} and {b.source} were joined with different references: {column} of {first_n(odd)}."
            )
    return frame
