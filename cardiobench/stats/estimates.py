"""Scores with their intervals: every metric of a result from the same predictions, and the same draws where it draws."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import BadConfig
from cardiobench.metrics.load import load_formula
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import ClassScore, Estimate
from cardiobench.stats.bootstrap import FEW, MIN_PATIENTS, NO_WIDTH, patient_weights
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.intervals import (
    NONE,
    Interval,
    Scale,
    auroc_interval,
    made_up_answers,
    mean_interval,
    quantile_interval,
    smoothed_cells,
    standard_error,
    t_interval,
    wilson_interval,
)

SCALES: Mapping[str, Scale] = {
    "t": "identity",
    "log_t": "log",
    "log_t_complement": "log_complement",
    "fisher_z": "fisher_z",
}
METHODS: Mapping[str, str] = {
    "smoothed": "smoothed patient bootstrap: every class also counts one made-up patient, right in half of the answers",
    "newcombe": "Newcombe's method 5 with class sizes divided by the patients' design effect",
    "wilson": "Wilson's interval with the number of patients that the standard error stands for",
    "t": "Student's t over patients",
    "log_t": "Student's t over patients on the log scale",
    "log_t_complement": "Student's t over patients on the log scale of 1 minus the score",
    "fisher_z": "Student's t over patients on Fisher's z",
    "class_mean": "the intervals of the classes, Newcombe's and Wilson's, with their correlations over patients (Zou and Donner)",
    "percentile": "percentiles of a bootstrap over patients",
    "none": "no interval",
}
ONE_CLASS = "one class in the test set: see the share answered right"


class Sampler:
    """Rows of one test set (or of one group of it) with what all metrics share: patients, classes, draws.

    Attributes:
        sample: the rows.
        clusters: their patients.
        classes: K of the task; 0 for numbers.
        present: bool (K,), the classes that the whole test set has.
    """

    def __init__(
        self,
        sample: ScoringInput,
        clusters: Clusters,
        present: np.ndarray,
        resamples: int = RESAMPLES,
        seed: int = 0,
    ):
        """Keep the rows; nothing is drawn before a metric asks for it."""
        self.sample, self.clusters, self.present = sample, clusters, present
        self.resamples, self.seed = resamples, seed
        self._tables: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def classes(self) -> int:
        """K of the task; 0 for numbers."""
        return len(self.present)

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Confusion tables with the made-up patients and without them, (B, K, K) each, the same for every metric."""
        if self._tables is None:
            truth, made_up = self.sample.y_true, made_up_answers(self.sample.y_true, self.classes)
            self._tables = smoothed_cells(truth, self.sample.y_pred, self.clusters, made_up, self.resamples, self.seed)
        return self._tables

    @property
    def one_class(self) -> bool:
        """Return whether the whole test set has one class, so that there is nothing to tell apart."""
        return self.classes > 0 and int(self.present.sum()) < 2

    def take(self, rows: np.ndarray) -> "Sampler":
        """Take some of the rows; the classes stay those of the whole test set."""
        return Sampler(self.sample.take(rows), self.clusters.take(rows), self.present, self.resamples, self.seed)

    def take_classes(self, chosen: np.ndarray) -> "Sampler":
        """Take some of the classes of a multilabel task, bool (K,)."""
        sample = self.sample.take_classes(chosen)
        return Sampler(sample, self.clusters, self.present[chosen], self.resamples, self.seed)


def estimate_metrics(metrics: Sequence[Metric], sampler: Sampler) -> dict[str, Estimate]:
    """Compute every number of the metrics, each with the interval that its formula names.

    Returns:
        {key: estimate}; what is undefined is NaN and says why.
    """
    return {key: estimate for metric in metrics for key, estimate in estimate_metric(metric, sampler).items()}


def estimate_metric(metric: Metric, sampler: Sampler, keys: Sequence[str] = ()) -> dict[str, Estimate]:
    """Compute the numbers of one metric (or some of its keys) with their intervals.

    Raises:
        BadConfig: A number is not what its formula declares: it is missing, outside its range, or names an unknown interval.
    """
    values = dict(metric.value(sampler.sample))
    wanted = [key for key in metric.numbers if not keys or key in keys]
    _check_declared(metric, values, wanted)
    intervals = _intervals(metric, values, wanted, sampler) if sampler.clusters.count >= MIN_PATIENTS else {}
    found = {}
    for key in wanted:
        number = metric.numbers[key]
        interval = intervals.get(key, NONE)
        reason = ""
        if sampler.one_class and number.method == "smoothed" and not number.one_class:
            values[key], interval, reason = np.nan, NONE, ONE_CLASS
        elif np.isnan(values[key]):
            interval, reason = NONE, "undefined for these rows"
        elif sampler.clusters.count < MIN_PATIENTS:
            reason = FEW
        elif number.method == "none":
            reason = f"no interval: {number.method_detail}"
        elif np.isnan(interval.low):
            reason = "no interval: the score does not vary with the patients"
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
                f"{where} is declared, and compute gives {', '.join(values)}. Name the same numbers in both."
            )
        if not metric.numbers[key].possible(values[key]):
            raise BadConfig(
                f"{where} is {values[key]:g}, outside its declared range {low:g} to {high:g}. Correct NUMBERS."
            )
        if method not in METHODS:
            raise BadConfig(f"{where} names the interval '{method}'. Intervals: {', '.join(METHODS)}.")


def score_classes(sampler: Sampler, classes: Sequence[str]) -> dict[str, ClassScore]:
    """Score each class of a multilabel task against its absence, over the rows in which it was measured."""
    areas = load_formula("auroc_macro").compute(sampler.sample.y_true, sampler.sample.y_pred, average=None)
    return {
        name: _class_score(sampler, code, areas["auroc"][code], areas["auprc"][code])
        for code, name in enumerate(classes)
    }


def _class_score(sampler: Sampler, code: int, auroc: float, auprc: float) -> ClassScore:
    truth, scores = sampler.sample.y_true[:, code], sampler.sample.y_pred[:, code]
    known = np.flatnonzero(~np.isnan(truth))
    clusters, positive = sampler.clusters.take(known), truth[known] == 1
    interval, reason = NONE, "" if clusters.count >= MIN_PATIENTS else FEW
    if np.isnan(auroc):
        reason = "no row has it" if not positive.any() else "all rows have it"
    elif not reason:
        interval = auroc_interval(positive, scores[known], clusters)
    method = "" if reason else "newcombe"
    estimate = Estimate(
        auroc, interval.low, interval.high, len(known), clusters.count, reason, se=interval.se, method=method
    )
    return ClassScore(len(known), int(positive.sum()), clusters.count_in(positive), estimate, auprc)


def _intervals(
    metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler
) -> dict[str, Interval]:
    """Compute the intervals of a metric's values, by the method that each names."""
    by_method: dict[str, list[str]] = {}
    for key in keys:
        if not np.isnan(values[key]):
            by_method.setdefault(metric.numbers[key].method, []).append(key)
    found: dict[str, Interval] = {}
    for method, names in by_method.items():
        if method != "none":
            found |= _METHODS[method](metric, values, names, sampler)
    return found


def _smoothed(
    metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler
) -> dict[str, Interval]:
    if metric.from_tables is None:
        raise ValueError(f"{metric.name} names the interval 'smoothed' and has no from_tables; name 'percentile'.")
    several = sampler.present.sum() > 2
    drawn = [metric.from_tables(tables, sampler.present) for tables in sampler.tables[: 2 if several else 1]]
    return {key: _union([quantile_interval(one[key], values[key]) for one in drawn]) for key in keys}


def _union(intervals: Sequence[Interval]) -> Interval:
    """Return the interval that holds all of them, with the standard error of the first.

    Of three classes or more the made-up patients alone would pull the upper end of a high score below the truth.
    """
    known = [one for one in intervals if not np.isnan(one.low)]
    return Interval(min(one.low for one in known), max(one.high for one in known), known[0].se) if known else NONE


def _of_influence(
    metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler
) -> dict[str, Interval]:
    if metric.influence is None:
        raise ValueError(f"{metric.name} names an interval that needs an influence function; name 'percentile'.")
    given, patients = metric.inputs(sampler.sample), sampler.clusters.count
    influence = metric.influence(**given)
    support = metric.support(**given) if metric.support else {}
    found = {}
    for key in keys:
        se = standard_error(influence[key], sampler.clusters)
        if np.isnan(se):
            continue
        method = metric.numbers[key].method
        if method in SCALES:
            found[key] = t_interval(values[key], se, patients, SCALES[method])
        else:
            found[key] = wilson_interval(values[key], se, sampler.clusters.count_in(support[key]))
    return found


def _newcombe(
    metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler
) -> dict[str, Interval]:
    table = sampler.sample.probabilities
    if table is None or table.shape[1] != 2:
        return _wilson(metric, values, keys, sampler)
    found = auroc_interval(sampler.sample.y_true == 1, table[:, 1], sampler.clusters)
    return dict.fromkeys(keys, found)


def _wilson(metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler) -> dict[str, Interval]:
    table = sampler.sample.probabilities
    if table is None or table.shape[1] == 2 or metric.per_class is None:
        return _of_influence(metric, values, keys, sampler)
    each = _areas_of_classes(*metric.per_class(**metric.inputs(sampler.sample)), sampler.clusters)
    return {key: each[metric.numbers[key].method] for key in keys}


def _class_mean(
    metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler
) -> dict[str, Interval]:
    del values
    if metric.per_class is None:
        raise ValueError(f"{metric.name} names the interval 'class_mean' and has no per_class; name 'percentile'.")
    each = _areas_of_classes(*metric.per_class(**metric.inputs(sampler.sample)), sampler.clusters)
    return {key: each[metric.numbers[key].method_detail] for key in keys}


def _areas_of_classes(truth: np.ndarray, scores: np.ndarray, clusters: Clusters) -> dict[str, Interval]:
    """Compute the intervals of mean AUROC and mean average precision from those of the classes.

    Args:
        truth: 1, 0 or NaN for unmeasured, (n, K).
        scores: (n, K).
        clusters: patients of the rows.

    Returns:
        The interval of mean AUROC by Newcombe's method ("newcombe"), of mean average precision by Wilson's ("wilson").
    """
    values = load_formula("auroc_macro").compute(truth, scores, average=None)
    ranked = np.flatnonzero(~np.isnan(values["auroc"]))
    influence = {key: np.zeros((clusters.count, len(ranked))) for key in values}
    ends: dict[str, list[Interval]] = {key: [] for key in values}
    for column, code in enumerate(ranked):
        known = np.flatnonzero(~np.isnan(truth[:, code]))
        own, positive = clusters.take(known), truth[known, code] == 1
        of_rows = load_formula("classification_report").area_influence(scores[known, code], positive)
        for key, rows in zip(values, of_rows, strict=True):
            influence[key][:, column] = np.bincount(clusters.of_row[known], rows, clusters.count)
        ends["auroc"].append(auroc_interval(positive, scores[known, code], own))
        se = standard_error(of_rows[1], own)
        ends["auprc"].append(wilson_interval(values["auprc"][code], se, own.count_in(positive)))
    return {
        method: mean_interval(
            np.array(values[key])[ranked],
            np.array([one.low for one in ends[key]]),
            np.array([one.high for one in ends[key]]),
            influence[key],
            clusters.count,
        )
        for method, key in (("newcombe", "auroc"), ("wilson", "auprc"))
    }


def _percentile(
    metric: Metric, values: Mapping[str, float], keys: Sequence[str], sampler: Sampler
) -> dict[str, Interval]:
    weights = patient_weights(sampler.clusters.of_row, sampler.resamples, sampler.seed)
    drawn = [metric.resamples(sampler.sample, chunk) for chunk in weights]
    return {key: quantile_interval(np.concatenate([chunk[key] for chunk in drawn]), values[key]) for key in keys}


_METHODS: Mapping[str, Callable[[Metric, Mapping[str, float], Sequence[str], Sampler], dict[str, Interval]]] = {
    "smoothed": _smoothed,
    "newcombe": _newcombe,
    "class_mean": _class_mean,
    "percentile": _percentile,
    "wilson": _wilson,
    **dict.fromkeys(SCALES, _of_influence),
}
