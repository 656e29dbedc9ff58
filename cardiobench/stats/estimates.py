"""Scores with their intervals: all metrics of a result use the same predictions and the same draws."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import BadConfig
from cardiobench.metrics.load import load_formula
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import ClassScore, Estimate
from cardiobench.stats.areas import average_precision_interval, mean_auroc_interval, share_of_rows, stretched_auroc
from cardiobench.stats.bootstrap import FEW, MIN_PATIENTS, NO_WIDTH, patient_weights
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import (
    NONE,
    Interval,
    Scale,
    made_up_answers,
    quantile_interval,
    smoothed_cells,
    standard_error,
    t_interval,
)
from cardiobench.stats.shares import mean_of_shares
from cardiobench.stats.unequal import (
    stretch_of_mean,
    stretch_of_tables,
    stretch_of_weights,
    stretched,
)

SCALES: Mapping[str, Scale] = {
    "t": "identity",
    "log_t": "log",
    "log_t_complement": "log_complement",
    "fisher_z": "fisher_z",
}
METHODS: Mapping[str, str] = {
    "smoothed": "smoothed patient bootstrap: one made-up patient per class, with half of the answers right",
    "newcombe": "Newcombe's method 5 with class sizes divided by the patients' design effect",
    "share": "exact interval (Clopper and Pearson) with the effective number of rows of the patients",
    "average_precision": "Wilson's interval, from 50 patients with the finding",
    "t": "Student's t over patients",
    "log_t": "Student's t over patients on the log scale",
    "log_t_complement": "Student's t over patients on the log scale of 1 minus the score",
    "fisher_z": "Student's t over patients on Fisher's z",
    "class_mean": "intervals of the classes (AUROC: Newcombe's, shares: Wilson's), with their correlations (Zou and Donner)",
    "percentile": "percentiles of a bootstrap over patients",
    "none": "no interval",
}
MIN_PER_LABEL = 10
"""Minimum number of patients with each label, and without it, for the interval of a mean of shares over labels."""
ONE_CLASS = "one class in the test set: see the accuracy"
MEAN_PRECISION = "no interval: biased upwards if few patients have a label"

Found = Mapping[str, Interval | str]
"""Key -> interval, or the reason why there is none."""


class Sampler:
    """Rows of a test set or of one group, with data shared by all metrics: patients, classes, draws.

    Attributes:
        sample: The rows.
        clusters: Patients of the rows.
        classes: Number of classes of the task, K; 0 for numbers.
        present: Classes that occur in the whole test set, bool (K,).
    """

    def __init__(
        self,
        sample: ScoringInput,
        clusters: Clusters,
        present: np.ndarray,
        resamples: int = RESAMPLES,
        seed: int = 0,
    ):
        """Store the rows; draws are made when a metric needs them."""
        self.sample, self.clusters, self.present = sample, clusters, present
        self.resamples, self.seed = resamples, seed
        self._tables: tuple[np.ndarray, np.ndarray] | None = None
        self._values: dict[str, Mapping[str, float]] = {}

    @property
    def classes(self) -> int:
        """Number of classes of the task, K; 0 for numbers."""
        return len(self.present)

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Confusion tables with and without the made-up patients, (B, K, outcomes) each, shared by all metrics."""
        if self._tables is None:
            truth, width = self.sample.y_true, self.sample.outcomes(self.classes)
            made_up = made_up_answers(truth, self.classes, width)
            self._tables = smoothed_cells(truth, self.sample.y_pred, self.clusters, made_up, self.resamples, self.seed)
        return self._tables

    def values(self, metric: Metric) -> Mapping[str, float]:
        """Compute all numbers of a metric; the result is cached."""
        if metric.name not in self._values:
            self._values[metric.name] = metric.value(self.sample)
        return self._values[metric.name]

    @property
    def one_class(self) -> bool:
        """Return whether the whole test set has only one class."""
        return self.classes > 0 and int(self.present.sum()) < 2

    def take(self, rows: np.ndarray) -> "Sampler":
        """Select rows; the classes remain those of the whole test set."""
        return Sampler(self.sample.take(rows), self.clusters.take(rows), self.present, self.resamples, self.seed)

    def take_classes(self, chosen: np.ndarray) -> "Sampler":
        """Select the classes of a multilabel task that are true in a bool array (K,)."""
        sample = self.sample.take_classes(chosen)
        return Sampler(sample, self.clusters, self.present[chosen], self.resamples, self.seed)


def estimate_metrics(metrics: Sequence[Metric], sampler: Sampler, ranking: str = "") -> dict[str, Estimate]:
    """Compute the numbers shown in results, with the intervals that the formulas declare.

    Args:
        metrics: Metrics of a result.
        sampler: Rows.
        ranking: Key of the number that ranks models, which is always shown.

    Returns:
        {key: estimate}; undefined values are NaN with a reason.
    """
    keys = {
        metric.name: [key for key, number in metric.numbers.items() if number.shown == "yes" or key == ranking]
        for metric in metrics
    }
    return {
        key: estimate
        for metric in metrics
        if keys[metric.name]
        for key, estimate in estimate_metric(metric, sampler, keys[metric.name]).items()
    }


def further_numbers(metrics: Sequence[Metric], sampler: Sampler, ranking: str = "") -> dict[str, float]:
    """Compute the numbers that only the result file contains, without intervals."""
    return {
        key: float(sampler.values(metric)[key])
        for metric in metrics
        for key, number in metric.numbers.items()
        if number.shown == "further" and key != ranking
    }


def estimate_metric(metric: Metric, sampler: Sampler, keys: Sequence[str] = ()) -> dict[str, Estimate]:
    """Compute the numbers of one metric, or some of its keys, with their intervals.

    Raises:
        BadConfig: A number contradicts the declaration of its formula: it is missing, outside its range, or has an
            unknown interval.
    """
    values = dict(sampler.values(metric))
    wanted = [key for key in metric.numbers if not keys or key in keys]
    _check_declared(metric, values, wanted)
    intervals = _intervals(metric, values, wanted, sampler) if sampler.clusters.count >= MIN_PATIENTS else {}
    found = {}
    for key in wanted:
        number, given = metric.numbers[key], intervals.get(key, NONE)
        interval, reason = (NONE, given) if isinstance(given, str) else (given, "")
        if sampler.one_class and metric.of_counts(key) and not number.one_class:
            values[key], interval, reason = np.nan, NONE, ONE_CLASS
        elif np.isnan(values[key]):
            interval, reason = NONE, "undefined for these rows"
        elif sampler.clusters.count < MIN_PATIENTS:
            reason = FEW
        elif number.method == "none":
            reason = f"no interval: {number.method_detail}"
        elif reason:
            pass
        elif np.isnan(interval.low):
            reason = "no interval: the score does not vary between patients"
        elif interval.low == interval.high:
            reason = NO_WIDTH
        found[key] = Estimate(
            float(values[key]),
            interval.low,
            interval.high,
            len(sampler.sample),
            sampler.clusters.count,
            reason,
            se=interval.se,
            method="" if np.isnan(interval.low) else number.method,
        )
    return found


def _check_declared(metric: Metric, values: Mapping[str, float], keys: Sequence[str]) -> None:
    for key in keys:
        (low, high), method = metric.numbers[key].range, metric.numbers[key].method
        where = f"metric {metric.name}: {key}"
        if key not in values:
            raise BadConfig(
                f"{where} is declared, but compute returns {', '.join(values)}. Use the same names in both."
            )
        if not metric.numbers[key].possible(values[key]):
            raise BadConfig(
                f"{where} is {values[key]:g}, outside its declared range {low:g} to {high:g}. Correct NUMBERS."
            )
        if method not in METHODS:
            raise BadConfig(f"{where} names the interval '{method}'. Intervals: {', '.join(METHODS)}.")


def score_classes(sampler: Sampler, classes: Sequence[str]) -> dict[str, ClassScore]:
    """Compute the ranking score of each class of a multilabel task, over the rows in which it was measured."""
    areas = load_formula("auroc_macro").compute(sampler.sample.y_true, sampler.sample.scores, average=None)
    return {
        name: _class_score(sampler, code, areas["auroc"][code], areas["auprc"][code])
        for code, name in enumerate(classes)
    }


def _class_score(sampler: Sampler, code: int, auroc: float, auprc: float) -> ClassScore:
    truth, scores = sampler.sample.y_true[:, code], sampler.sample.scores[:, code]
    known = np.flatnonzero(~np.isnan(truth))
    clusters, positive = sampler.clusters.take(known), truth[known] == 1
    interval, reason = NONE, "" if clusters.count >= MIN_PATIENTS else FEW
    precision: Interval | str = NONE
    if np.isnan(auroc):
        reason = "no row has it" if not positive.any() else "all rows have it"
    elif not reason:
        interval = stretched_auroc(positive, scores[known], clusters)
        of_rows = load_formula("classification_report").area_influence(scores[known], positive)
        precision = average_precision_interval(auprc, of_rows[1], positive, clusters)
    method = "" if reason else "newcombe"
    estimate = Estimate(
        auroc, interval.low, interval.high, len(known), clusters.count, reason, se=interval.se, method=method
    )
    low, high, _ = NONE if isinstance(precision, str) else precision
    patients = clusters.count_in(positive)
    return ClassScore(len(known), int(positive.sum()), patients, estimate, auprc, low, high)


def _intervals(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    """Compute the intervals of a metric's values by their declared methods, clipped to the range of the number."""
    by_method: dict[str, list[str]] = {}
    for key in keys:
        if not np.isnan(values[key]):
            by_method.setdefault(metric.numbers[key].method, []).append(key)
    found: dict[str, Interval | str] = {}
    for method, names in by_method.items():
        if method != "none":
            found |= _METHODS[method](metric, values, names, sampler)
    return found


def _smoothed(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    if metric.from_tables is None:
        raise ValueError(
            f"{metric.name} declares the interval 'smoothed' but has no from_tables; declare 'percentile'."
        )
    from_tables, present, size = metric.from_tables, sampler.present, sampler.classes
    drawn = [from_tables(tables, present) for tables in sampler.tables[: 2 if present.sum() > 2 else 1]]
    width = sampler.sample.outcomes(size)
    codes = sampler.sample.y_true * width + sampler.sample.y_pred
    factors = stretch_of_tables(
        codes, size * width, sampler.clusters, lambda counts: from_tables(counts.reshape(-1, size, width), present)
    )
    found = {key: _union([quantile_interval(one[key], values[key]) for one in drawn]) for key in keys}
    return {key: _stretched(metric, key, values, one, factors.get(key, 1.0)) for key, one in found.items()}


def _stretched(metric: Metric, key: str, values: Mapping[str, float], interval: Interval, factor: float) -> Interval:
    """Widen an interval by a factor, within the range of the number."""
    if factor == 1:
        return interval
    (low, high), wide = metric.numbers[key].range, stretched(interval, values[key], factor)
    return wide._replace(low=float(max(low, wide.low)), high=float(min(high, wide.high)))


def _union(intervals: Sequence[Interval]) -> Interval:
    """Return the smallest interval that contains all of the intervals, with the standard error of the first.

    With three or more classes, the made-up patients alone would pull the upper end of a high score below the truth.
    """
    known = [one for one in intervals if not np.isnan(one.low)]
    return Interval(min(one.low for one in known), max(one.high for one in known), known[0].se) if known else NONE


def _of_influence(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    if metric.influence is None:
        raise ValueError(f"{metric.name} declares an interval that needs an influence function; declare 'percentile'.")
    given, clusters = metric.inputs(sampler.sample), sampler.clusters
    influence = metric.influence(**given)
    support = metric.support(**given) if metric.support else {}
    worst = metric.worst(**given) if metric.worst else {}
    found: dict[str, Interval | str] = {}
    for key in keys:
        se, method = standard_error(influence[key], clusters), metric.numbers[key].method
        rows = support.get(key, np.ones(len(clusters), dtype=bool))
        if np.isnan(se):
            continue
        if method == "average_precision":
            found[key] = average_precision_interval(values[key], influence[key], rows, clusters)
            continue
        if method == "share":
            found[key] = share_of_rows(values[key], influence[key], rows, clusters)
            continue
        interval = t_interval(values[key], se, clusters.count, SCALES[method])
        if key in worst:
            interval = _with_worst(metric.numbers[key], values[key], worst[key], interval, clusters.count)
        found[key] = _stretched(metric, key, values, interval, stretch_of_mean(influence[key], clusters))
    return found


def _of_share(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    """Compute the interval of a share of rows; a mean over three or more classes has that of its confusion table."""
    mean = metric.from_tables is not None and sampler.classes > 2
    return (_smoothed if mean else _of_influence)(metric, values, keys, sampler)


def _with_worst(number: Number, mean: float, worst: float, interval: Interval, patients: int) -> Interval:
    """Extend the pessimistic end of a mean of errors by one made-up patient with the largest possible error.

    Even if three in a hundred patients fail, a test set may contain no failure. The made-up patient moves the end with
    the mean and does not change the width. A number without a direction, such as a bias, has one at both ends.
    """
    scale, low, high = SCALES[number.method], interval.low, interval.high
    if number.higher_is_better or number.better is None:
        least = worst if number.better else -worst
        low = min(low, t_interval((patients * mean + least) / (patients + 1), interval.se, patients, scale).low)
    if not number.higher_is_better:
        high = max(high, t_interval((patients * mean + worst) / (patients + 1), interval.se, patients, scale).high)
    return interval._replace(low=low, high=high)


def _of_area(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    """Compute the interval of the area under a curve, or of its mean over several classes."""
    table = sampler.sample.probabilities
    if table is None or table.shape[1] != 2:
        mean = metric.per_class is not None and table is not None
        return (_class_mean if mean else _of_influence)(metric, values, keys, sampler)
    return dict.fromkeys(keys, stretched_auroc(sampler.sample.y_true == 1, table[:, 1], sampler.clusters))


def _of_precision(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    """Compute the interval of an average precision; a mean over classes has no interval."""
    table = sampler.sample.probabilities
    if table is not None and table.shape[1] != 2:
        return dict.fromkeys(keys, MEAN_PRECISION)
    return _of_influence(metric, values, keys, sampler)


def _class_mean(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    del values
    sample, clusters = sampler.sample, sampler.clusters
    if metric.shares is not None:
        if few := _few_labels(sampler):
            return dict.fromkeys(keys, few)
        shares = metric.shares(**metric.inputs(sample.take_classes(sample.present_classes(sampler.classes))))
        return {key: mean_of_shares(*shares[key], metric.numbers[key].method_detail, clusters) for key in keys}
    if metric.per_class is None:
        raise ValueError(f"{metric.name}: the interval 'class_mean' needs per_class or shares; declare 'percentile'.")
    truth, scores = metric.per_class(**metric.inputs(sample))
    return dict.fromkeys(keys, mean_auroc_interval(truth, scores, clusters))


def _few_labels(sampler: Sampler) -> str:
    """Return why the labels in a mean of shares have too few patients for an interval; empty if they have enough.

    With fewer, the mean is over whichever labels happen to occur, and its interval flatters.
    """
    truth, clusters = sampler.sample.y_true, sampler.clusters
    counts = np.stack([(clusters.sum((truth == value).astype(np.float64)) > 0).sum(axis=0) for value in (0, 1)])
    few, labels = int((counts.min(axis=0)[counts.max(axis=0) > 0] < MIN_PER_LABEL).sum()), sampler.classes
    return (
        f"no interval: {few} of {labels} labels have fewer than {MIN_PER_LABEL} patients, or fewer lack them"
        if few
        else ""
    )


def _percentile(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> Found:
    weights = patient_weights(sampler.clusters.of_row, sampler.resamples, sampler.seed)
    drawn = [metric.resamples(sampler.sample, chunk) for chunk in weights]
    found = {}
    for key in keys:
        interval = quantile_interval(np.concatenate([chunk[key] for chunk in drawn]), values[key])

        def scores(weights: np.ndarray, key: str = key) -> np.ndarray:
            return metric.resamples(sampler.sample, weights)[key]

        factor = stretch_of_weights(scores, values[key], interval.se, sampler.clusters)
        found[key] = _stretched(metric, key, values, interval, factor)
    return found


_METHODS: Mapping[str, Callable[[Metric, Mapping[str, float], Sequence[str], Sampler], Found]] = {
    "smoothed": _smoothed,
    "newcombe": _of_area,
    "average_precision": _of_precision,
    "class_mean": _class_mean,
    "percentile": _percentile,
    "share": _of_share,
    **dict.fromkeys(SCALES, _of_influence),
}
