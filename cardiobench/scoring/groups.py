"""Scores by sex, age and other groups, and whether they differ more than groups of that size do by chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData
from cardiobench.data.spec import Group
from cardiobench.results.score_result import Breakdown, Estimate, Gap
from cardiobench.scoring.bootstrap import MIN_PATIENTS
from cardiobench.scoring.clusters import Clusters
from cardiobench.scoring.estimates import Sampler, estimate_metric
from cardiobench.scoring.families import holm
from cardiobench.scoring.information import MOST_PATIENTS, donors, p_value
from cardiobench.scoring.metrics import Metric, ScoringInput

MIN_PER_CLASS = 5
DRAWS = 999
FIFTHS = (0.2, 0.4, 0.6, 0.8)
_CHUNK = 2**20  # weights held at once: 8 MB


@dataclass(frozen=True)
class Split:
    """Rows of a breakdown: which rows each scored group has, and why the other groups are not scored."""

    rows: Mapping[str, np.ndarray]
    skipped: Mapping[str, str]


def group_labels(group: Group, frame: pd.DataFrame) -> np.ndarray:
    """Label each row with its group, (n,) objects; None where the row's value is unknown."""
    column = frame[group.column]
    if not group.edges:
        return column.astype(object).where(column.notna(), None).to_numpy()
    values = pd.to_numeric(column, errors="coerce")
    odd = frame.loc[values.isna() & column.notna(), group.column]
    if len(odd):
        raise BadData(
            f"group {group.name}: {len(odd)} values of {group.column} are not numbers (first: {odd.iloc[0]!r})."
        )
    place = np.digitize(values, group.edges, right=group.right)
    return np.asarray(np.where(values.isna(), None, np.array(group.labels, dtype=object)[place]))


def split_rows(group: Group, frame: pd.DataFrame, classes: Sequence[str] = ()) -> Split:
    """Sort the rows into groups; those that are too small are named, not scored.

    Args:
        group: the breakdown.
        frame: rows with patient_id, y_true and the group's column.
        classes: those of the whole test set; a group needs five patients of each.
    """
    if group.column not in frame:
        return Split({}, {group.name: f"the references have no column '{group.column}'"})
    order = [str(label) for label in group.labels] if group.edges else None
    return _split(group.name, group.column, group_labels(group, frame), order, frame, classes)


def intersection(first: Group, second: Group, frame: pd.DataFrame, classes: Sequence[str] = ()) -> Split:
    """Sort the rows into the groups of two breakdowns together, such as women over 80."""
    name = f"{first.name} x {second.name}"
    if first.column not in frame or second.column not in frame:
        return Split({}, {name: "the references lack one of the columns"})
    pairs = zip(group_labels(first, frame), group_labels(second, frame), strict=True)
    labels = np.array([None if None in pair else f"{pair[0]}, {pair[1]}" for pair in pairs], dtype=object)
    return _split(name, f"{first.column} or {second.column}", labels, None, frame, classes)


def _split(
    name: str, column: str, labels: np.ndarray, order: list[str] | None, frame: pd.DataFrame, classes: Sequence[str]
) -> Split:
    patients = Clusters.of(frame["patient_id"].to_numpy())
    codes, names = pd.factorize(labels)
    present = {str(label): code for code, label in enumerate(names)}
    truth = frame["y_true"].to_numpy() if classes else None
    rows, skipped = {}, {}
    for label in [label for label in order if label in present] if order else sorted(present):
        chosen = np.flatnonzero(codes == present[label])
        count = patients.count_in(chosen)
        lacking = ""
        if truth is not None:
            of_class = {c: patients.count_in(chosen[truth[chosen] == c]) for c in classes}
            rarest = min(of_class, key=lambda c: of_class[c])
            if of_class[rarest] < MIN_PER_CLASS:
                lacking = f"not scored: {of_class[rarest] or 'no'} patients with {rarest}, {MIN_PER_CLASS} needed"
        if count < MIN_PATIENTS:
            skipped[f"{name}={label}"] = f"{count} patients, {MIN_PATIENTS} needed"
        elif lacking:
            skipped[f"{name}={label}"] = lacking
        else:
            rows[label] = chosen
    if len(unknown := np.flatnonzero(codes < 0)):
        skipped[f"{name}=unknown"] = f"{len(unknown)} rows of {patients.count_in(unknown)} patients have no {column}"
    return Split(rows, skipped)


def breakdown(
    metric: Metric, key: str, sampler: Sampler, rows: Mapping[str, np.ndarray], draws: int = DRAWS
) -> Breakdown:
    """Score the groups of one breakdown and test whether they differ.

    Args:
        metric: the metric that ranks models.
        key: its key.
        sampler: all rows.
        rows: group -> its rows; at least one group.
        draws: dealings of the groups to patients.
    """
    values = {label: estimate_metric(metric, sampler.take(chosen), [key])[key] for label, chosen in rows.items()}
    defined = {label: value.value for label, value in values.items() if not np.isnan(value.value)}
    pick = min if metric.direction[key] else max
    worst = pick(defined, key=lambda label: defined[label]) if defined else ""
    if len(values) < 2:
        return Breakdown(values, Gap(np.nan, reason="one group with enough patients"), worst)
    if len(defined) < len(values):
        return Breakdown(values, Gap(np.nan, reason="the metric is undefined in a group"), worst)
    gaps = gap_tests(metric, key, sampler, list(rows.values()), draws)
    if len(values) == 2:
        gaps[key] = _with_difference(gaps[key], *values.values())
    return Breakdown(values, gaps.pop(key), worst, gaps)


def _with_difference(gap: Gap, first: Estimate, second: Estimate) -> Gap:
    """Add the difference of two groups, the first minus the second, with its interval from those of both (Zou and Donner 2008)."""
    difference = first.value - second.value
    low = difference - np.hypot(first.value - first.low, second.high - second.value)
    high = difference + np.hypot(first.high - first.value, second.value - second.low)
    return replace(gap, difference=difference, low=float(low), high=float(high))


def gap_tests(
    metric: Metric, key: str, sampler: Sampler, rows: Sequence[np.ndarray], draws: int = DRAWS
) -> dict[str, Gap]:
    """Compare the gap between groups with what groups dealt to patients of the same true class would have.

    Groups are dealt anew among the patients of one true class, of numbers among those of one fifth of the true values. The
    gap is largest minus smallest score; p is that of the spread of scores weighted by the groups' rows.

    Returns:
        `key`, and for two classes `fnr`, `fpr` and `calibration` (mean probability minus share), for numbers `bias`.
    """
    group = np.full(len(sampler.sample), -1)
    for code, chosen in enumerate(rows):
        group[chosen] = code
    used = np.flatnonzero(group >= 0)
    sample, clusters, group = sampler.sample.take(used), sampler.clusters.take(used), group[used]
    rng = np.random.default_rng(sampler.seed)
    observed = _scores(metric, key, sample, sampler.present, [group == code for code in range(len(rows))])
    if clusters.count > MOST_PATIENTS:
        kept = np.flatnonzero(np.isin(clusters.of_row, rng.permutation(clusters.count)[:MOST_PATIENTS]))
        sample, clusters, group = sample.take(kept), clusters.take(kept), group[kept]
        tested = _scores(metric, key, sample, sampler.present, [group == code for code in range(len(rows))])
    else:
        tested = observed
    dealt: dict[str, list[np.ndarray]] = {}
    strata, step = _strata(sample, clusters, sampler.classes), max(1, _CHUNK // len(group))
    for first in range(0, draws, step):
        labels = group[donors(clusters, min(step, draws - first), rng, strata)]
        for name, scores in _scores(
            metric, key, sample, sampler.present, [labels == code for code in range(len(rows))]
        ).items():
            dealt.setdefault(name, []).append(scores)
    return {
        name: _gap(observed[name], tested[name], np.concatenate(parts, axis=1), np.bincount(group, minlength=len(rows)))
        for name, parts in dealt.items()
    }


def _gap(observed: np.ndarray, tested: np.ndarray, dealt: np.ndarray, sizes: np.ndarray) -> Gap:
    """Compute the gap of scores (G, 1) and those of permuted groups (G, B)."""
    value = float(np.ptp(observed))
    if np.isnan(value):
        return Gap(np.nan, reason="undefined in a group")
    whole = ~np.isnan(dealt).any(axis=0)
    expected = float(np.ptp(dealt[:, whole], axis=0).mean()) if whole.any() else np.nan
    p = p_value(float(_spread(tested, sizes)[0]), _spread(dealt[:, whole], sizes))
    return Gap(value, expected, value - expected, p, p)


def _spread(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Spread of the groups' scores (G, B) around their mean, both weighted by rows, (B,)."""
    share = sizes[:, None] / sizes.sum()
    return (share * (scores - (share * scores).sum(axis=0)) ** 2).sum(axis=0)


def _strata(sample: ScoringInput, clusters: Clusters, classes: int) -> np.ndarray:
    """Return each patient's stratum (P,): its most frequent true class, or the quintile of its mean true value."""
    if classes:
        return clusters.cells(sample.y_true, classes).argmax(axis=1)
    means = clusters.sum(sample.y_true) / clusters.rows
    return np.digitize(means, np.quantile(means, FIFTHS))


def _scores(
    metric: Metric, key: str, sample: ScoringInput, present: np.ndarray, members: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Compute the scores of each group, {key: (G, B)}, for memberships (n,) or (B, n) of each."""
    found: dict[str, list[np.ndarray]] = {}
    for member in members:
        weights = np.atleast_2d(member).astype(np.float32)
        for name, values in (_of_classes if len(present) else _of_numbers)(
            metric, key, sample, present, weights
        ).items():
            found.setdefault(name, []).append(values)
    return {name: np.stack(values) for name, values in found.items()}


def _of_classes(
    metric: Metric, key: str, sample: ScoringInput, present: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    classes = len(present)
    cells = np.zeros((len(sample), classes**2), dtype=np.float32)
    cells[np.arange(len(sample)), sample.y_true * classes + sample.y_pred] = 1
    tables = (weights @ cells).astype(np.float64).reshape(-1, classes, classes)
    if metric.from_tables is not None:
        found = {key: metric.from_tables(tables, present)[key]}
    else:
        found = {key: metric.resamples(sample, weights.astype(np.float64))[key]}
    if classes != 2:
        return found
    with np.errstate(invalid="ignore", divide="ignore"):
        found["fnr"] = tables[:, 1, 0] / tables[:, 1].sum(axis=1)
        found["fpr"] = tables[:, 0, 1] / tables[:, 0].sum(axis=1)
        if sample.probabilities is not None:
            excess = (sample.probabilities[:, 1] - sample.y_true).astype(np.float32)
            found["calibration"] = (weights @ excess).astype(np.float64) / tables.sum(axis=(1, 2))
    return found


def _of_numbers(
    metric: Metric, key: str, sample: ScoringInput, present: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    del present
    error = sample.y_pred - sample.y_true
    weights = weights.astype(np.float64)
    rows = weights.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = weights @ np.abs(error) / rows if key == "mae" else metric.resamples(sample, weights)[key]
        return {key: values, "bias": weights @ error / rows}


def adjust_gaps(groups: Mapping[str, Breakdown]) -> dict[str, Breakdown]:
    """Correct the p-values of all breakdowns of a result for their number (Holm)."""
    tested = [name for name, entry in groups.items() if not np.isnan(entry.gap.p_value)]
    adjusted = dict(zip(tested, holm([groups[name].gap.p_value for name in tested]), strict=True))
    return {
        name: replace(entry, gap=replace(entry.gap, p_adjusted=float(adjusted[name]))) if name in adjusted else entry
        for name, entry in groups.items()
    }
