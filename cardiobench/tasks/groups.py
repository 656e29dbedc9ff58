"""Scores by sex, age and other groups, and tests whether they differ more than expected by chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cardiobench.metrics.metric import Metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.results.score_result import Breakdown, Estimate, Gap
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.stats.holm import holm
from cardiobench.stats.information import MOST_PATIENTS, PatientPermutations, p_value
from cardiobench.tasks.group_labels import group_labels, impossible_values
from cardiobench.tasks.task import Group

MIN_PER_CLASS = 5
DRAWS = 999
TENTHS = np.arange(1, 10) / 10


@dataclass(frozen=True)
class Split:
    """Rows of each scored group of a breakdown, and the reasons why other groups are not scored."""

    rows: Mapping[str, np.ndarray]
    skipped: Mapping[str, str]


def split_rows(group: Group, frame: pd.DataFrame, classes: Sequence[str] = ()) -> Split:
    """Sort the rows into groups; groups that are too small are listed, not scored.

    Args:
        group: The breakdown.
        frame: Rows with patient_id, y_true and the group's column.
        classes: Class of each row among those of the whole test set; a group needs five patients of each class.
    """
    if group.column not in frame:
        return Split({}, {group.name: f"the references have no column '{group.column}'"})
    labels = group_labels(group, frame)
    split = _split(group.name, group.column, labels, in_order(group, pd.unique(labels)), frame, classes)
    if not len(odd := impossible_values(group, frame)):
        return split
    why = split.skipped[name := f"{group.name}=unknown"]
    return replace(
        split, skipped={**split.skipped, name: f"{why}, {len(odd)} of them one of {odd.iloc[0]:g} or the like"}
    )


def intersection(first: Group, second: Group, frame: pd.DataFrame, classes: Sequence[str] = ()) -> Split:
    """Sort the rows into the groups of two breakdowns together, such as women over 80."""
    name = f"{first.name} x {second.name}"
    if first.column not in frame or second.column not in frame:
        return Split({}, {name: "the references lack one of the columns"})
    found = [(group, group_labels(group, frame)) for group in (first, second)]
    ones, twos = (in_order(group, pd.unique(of_rows)) for group, of_rows in found)
    one, two = (
        pd.Categorical(pd.Series(of_rows).map(str, na_action="ignore"), order).codes
        for (_, of_rows), order in zip(found, (ones, twos), strict=True)
    )
    names = np.array([f"{a}, {b}" for a in ones for b in twos], dtype=object)
    labels = np.full(len(frame), None)
    known = (one >= 0) & (two >= 0)
    labels[known] = names[one[known].astype(np.int64) * len(twos) + two[known]]
    return _split(name, f"{first.column} or {second.column}", labels, names.tolist(), frame, classes)


def in_order(group: Group, found: np.ndarray) -> list[str]:
    """Return the names of the found groups as the spec orders them, followed by others in alphabetical order."""
    places = {label.casefold(): place for place, label in enumerate(group.labels)}
    names = {str(label) for label in found if label is not None and not pd.isna(label)}
    return sorted(names, key=lambda name: (places.get(name.casefold(), len(places)), name))


def _split(
    name: str, column: str, labels: np.ndarray, order: Sequence[str], frame: pd.DataFrame, classes: Sequence[str]
) -> Split:
    patients = Clusters.of(frame["patient_id"].to_numpy())
    codes, names = pd.factorize(labels)
    present = {str(label): code for code, label in enumerate(names)}
    truth = pd.Categorical(frame["y_true"], list(classes)).codes if classes else None
    rows, skipped = {}, {}
    for label in [label for label in order if label in present]:
        chosen = np.flatnonzero(codes == present[label])
        count = patients.count_in(chosen)
        lacking = ""
        if truth is not None:
            of_class = {c: patients.count_in(chosen[truth[chosen] == code]) for code, c in enumerate(classes)}
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


def comparable_classes(sampler: Sampler, rows: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return which classes of a multilabel task are present in five patients of every group and absent in five.

    The array is bool (K,).

    Means over classes are compared between groups over the same classes.
    """
    chosen = np.ones(sampler.classes, dtype=bool)
    for group in rows.values():
        truth, clusters = sampler.sample.y_true[group], sampler.clusters.take(group)
        for value in (0, 1):
            chosen &= (clusters.sum((truth == value).astype(np.float64)) > 0).sum(axis=0) >= MIN_PER_CLASS
    return chosen


def breakdowns(
    metric: Metric,
    key: str,
    sampler: Sampler,
    splits: Mapping[str, Mapping[str, np.ndarray]],
    draws: int = DRAWS,
) -> dict[str, Breakdown]:
    """Score the groups of each breakdown and test whether they differ.

    Args:
        metric: The metric that ranks models.
        key: Key of the metric's number.
        sampler: All rows.
        splits: Breakdown -> group -> its rows; at least one group each.
        draws: Number of random permutations of the groups.
    """
    values = _estimates(metric, key, sampler, splits)
    # The additional patient of the smoothed bootstrap does not inform the difference of groups and would only widen its
    # interval.
    plain = values if metric.worst is None else _estimates(replace(metric, worst=None), key, sampler, splits)
    tested = [name for name, groups in values.items() if not _untested(groups)]
    gaps = dict(
        zip(
            tested,
            gap_tests(metric, key, sampler, [list(splits[name].values()) for name in tested], draws),
            strict=True,
        )
    )
    return {name: _breakdown(metric, key, groups, gaps.get(name), plain[name]) for name, groups in values.items()}


def _estimates(
    metric: Metric, key: str, sampler: Sampler, splits: Mapping[str, Mapping[str, np.ndarray]]
) -> dict[str, dict[str, Estimate]]:
    """Return the score of each group of each breakdown."""
    return {
        name: {label: estimate_metric(metric, sampler.take(chosen), [key])[key] for label, chosen in rows.items()}
        for name, rows in splits.items()
    }


def _untested(groups: Mapping[str, Estimate]) -> str:
    """Return the reason why groups cannot be compared; empty if they can."""
    if len(groups) < 2:
        return "one group with enough patients"
    undefined = any(np.isnan(value.value) for value in groups.values())
    return "the metric is undefined in a group" if undefined else ""


def _breakdown(
    metric: Metric, key: str, groups: dict[str, Estimate], gaps: dict[str, Gap] | None, plain: Mapping[str, Estimate]
) -> Breakdown:
    defined = {label: value.value for label, value in groups.items() if not np.isnan(value.value)}
    pick = min if metric.numbers[key].higher_is_better else max
    worst = pick(defined, key=lambda label: defined[label]) if defined else ""
    if gaps is None:
        return Breakdown(groups, Gap(np.nan, reason=_untested(groups)), worst)
    if len(groups) == 2:
        gaps[key] = _with_difference(gaps[key], *plain.values())
    return Breakdown(groups, gaps.pop(key), worst, gaps)


def _with_difference(gap: Gap, first: Estimate, second: Estimate) -> Gap:
    """Add the difference of two groups, the first minus the second, beyond the part explained by their mix of true values.

    Its interval combines those of both groups (Zou and Donner 2008).
    """
    difference = first.value - second.value - gap.mix
    low = difference - np.hypot(first.value - first.low, second.high - second.value)
    high = difference + np.hypot(first.high - first.value, second.value - second.low)
    return replace(gap, difference=float(difference), low=float(low), high=float(high))


def gap_tests(
    metric: Metric, key: str, sampler: Sampler, breakdowns: Sequence[Sequence[np.ndarray]], draws: int = DRAWS
) -> list[dict[str, Gap]]:
    """Compare the gap between groups with the gap of random groups of patients with the same true classes.

    Groups are permuted among the patients of one true class, or of one tenth of the true values for numbers. The gap is
    the largest minus the smallest score. p is that of the spread of scores weighted by rows; for two groups that of the
    distance of their difference from its mean over the permutations, which their mix of true values explains.

    Args:
        metric: The metric that ranks models.
        key: Key of the metric's number.
        sampler: All rows.
        breakdowns: Rows of each group, at least two groups; breakdowns with the same rows are permuted together.
        draws: Number of random permutations of the groups.

    Returns:
        For each breakdown `key`, and for two classes `fnr`, `fpr` and `calibration` (mean probability minus share), or
        for numbers `bias`.
    """
    together: dict[bytes, list[int]] = {}
    labels = []
    for number, groups in enumerate(breakdowns):
        labels.append(np.full(len(sampler.sample), -1))
        for code, chosen in enumerate(groups):
            labels[-1][chosen] = code
        together.setdefault((labels[-1] >= 0).tobytes(), []).append(number)
    gaps: dict[int, dict[str, Gap]] = {}
    for numbers in together.values():
        used = np.flatnonzero(labels[numbers[0]] >= 0)
        rows = Sampler(sampler.sample.take(used), sampler.clusters.take(used), sampler.present, seed=sampler.seed)
        tested = _gaps(metric, key, rows, [labels[number][used] for number in numbers], draws)
        gaps |= dict(zip(numbers, tested, strict=True))
    return [gaps[number] for number in range(len(breakdowns))]


def _gaps(metric: Metric, key: str, sampler: Sampler, groups: Sequence[np.ndarray], draws: int) -> list[dict[str, Gap]]:
    """Compute the gaps of several breakdowns (n,) of the same rows, with the same permutations of patients."""
    # Counted once for all breakdowns, by the combination of groups of each row.
    combinations, labels = np.unique(np.stack(groups), axis=1, return_inverse=True)
    sample, clusters, rng = sampler.sample, sampler.clusters, np.random.default_rng(sampler.seed)
    observed = tested = _scores(metric, key, sample, sampler.present, labels[None], combinations)
    if clusters.count > MOST_PATIENTS:
        kept = np.flatnonzero(np.isin(clusters.of_row, rng.permutation(clusters.count)[:MOST_PATIENTS]))
        sample, clusters, labels = sample.take(kept), clusters.take(kept), labels[kept]
        tested = _scores(metric, key, sample, sampler.present, labels[None], combinations)
    permutations = PatientPermutations(clusters, rng, _strata(sample, clusters, sampler.classes))
    sample, labels = sample.take(permutations.rows), labels[permutations.rows]
    permuted = [
        _scores(metric, key, sample, sampler.present, labels[source], combinations)
        for source in permutations.draw(draws)
    ]
    return [
        {
            name: _gap(
                values,
                tested[number][name],
                np.concatenate([chunk[number][name] for chunk in permuted], axis=1),
                np.bincount(group[labels], minlength=group.max() + 1),
            )
            for name, values in observed[number].items()
        }
        for number, group in enumerate(combinations)
    ]


def _gap(observed: np.ndarray, tested: np.ndarray, permuted: np.ndarray, sizes: np.ndarray) -> Gap:
    """Compute the gap of scores (G, 1) and those of permuted groups (G, B)."""
    value = float(np.ptp(observed))
    if np.isnan(value):
        return Gap(np.nan, reason="undefined in a group")
    whole = ~np.isnan(permuted).any(axis=0)
    expected = float(np.ptp(permuted[:, whole], axis=0).mean()) if whole.any() else np.nan
    if len(sizes) > 2 or not whole.any():
        p = p_value(float(_spread(tested, sizes)[0]), _spread(permuted[:, whole], sizes))
        return Gap(value, expected, value - expected, p, p)
    differences = permuted[0, whole] - permuted[1, whole]
    mix = float(differences.mean())
    p = p_value(abs(float(tested[0, 0] - tested[1, 0]) - mix), np.abs(differences - mix))
    return Gap(value, expected, value - expected, p, p, mix=mix)


def _spread(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the spread of the groups' scores (G, B) around their mean, both weighted by rows. The shape is (B,)."""
    share = sizes[:, None] / sizes.sum()
    return (share * (scores - (share * scores).sum(axis=0)) ** 2).sum(axis=0)


def _strata(sample: ScoringInput, clusters: Clusters, classes: int) -> np.ndarray:
    """Return each patient's stratum (P,): its most frequent true class, or the tenth of its mean true value.

    For a multilabel task it is the rarest class of any of its rows, so that groups keep their patients with rare
    classes.
    """
    if sample.multilabel:
        ever = clusters.sum(np.nan_to_num(sample.y_true)) > 0
        patients = np.where(ever, ever.sum(axis=0), clusters.count + 1)
        return np.where(ever.any(axis=1), patients.argmin(axis=1), ever.shape[1])
    if classes:
        return clusters.cells(sample.y_true, classes).argmax(axis=1)
    means = clusters.sum(sample.y_true) / clusters.rows
    return np.digitize(means, np.quantile(means, TENTHS))


def _scores(
    metric: Metric, key: str, sample: ScoringInput, present: np.ndarray, labels: np.ndarray, combinations: np.ndarray
) -> list[dict[str, np.ndarray]]:
    """Compute the scores of each group of several breakdowns.

    Args:
        metric: The metric that ranks models.
        key: Key of the metric's number.
        sample: N rows.
        present: Bool (K,), the classes of the whole test set.
        labels: B labellings of the rows with combinations of groups, (B, n).
        combinations: The group of each breakdown in each of U combinations, (breakdowns, U).

    Returns:
        {name: (G, B)} for each breakdown.
    """
    if sample.multilabel:
        return [{key: _resampled(metric, key, sample, group[labels], group.max() + 1)} for group in combinations]
    return (_of_classes if len(present) else _of_numbers)(metric, key, sample, present, labels, combinations)


def _sums(codes: np.ndarray, size: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Count the rows of each code 0 to `size` - 1, or sum their weights (n,), for B codings (B, n).

    Returns an array (B, size).
    """
    flat = codes + size * np.arange(len(codes))[:, None]
    given = None if weights is None else np.broadcast_to(weights, codes.shape).ravel()
    return np.bincount(flat.ravel(), given, len(codes) * size).astype(np.float64).reshape(len(codes), size)


def _by_group(sums: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum combinations (B, U, ...) that are in the same group (U,): (G, B, ...)."""
    return np.stack([sums[:, group == code].sum(axis=1) for code in range(group.max() + 1)])


def _of_classes(
    metric: Metric, key: str, sample: ScoringInput, present: np.ndarray, labels: np.ndarray, combinations: np.ndarray
) -> list[dict[str, np.ndarray]]:
    classes, count = len(present), combinations.shape[1]
    width = sample.outcomes(classes)
    cells = labels * classes * width + (sample.y_true * width + sample.y_pred)
    every = _sums(cells, count * classes * width).reshape(len(labels), count, classes, width)
    probabilities = sample.probabilities if classes == 2 else None
    excess = None if probabilities is None else _sums(labels, count, probabilities[:, 1] - sample.y_true)
    results = []
    for group in combinations:
        tables = _by_group(every, group)
        if metric.from_tables is not None:
            scores = {key: metric.from_tables(tables, present)[key]}
        else:
            scores = {key: _resampled(metric, key, sample, group[labels], group.max() + 1)}
        with np.errstate(invalid="ignore", divide="ignore"):
            if classes == 2:
                # Answers outside the classes are wrong for both.
                missed = tables[..., 1, 0] + tables[..., 1, 2:].sum(axis=-1)
                scores["fnr"] = missed / tables[..., 1, :].sum(axis=-1)
                scores["fpr"] = tables[..., 0, 1:].sum(axis=-1) / tables[..., 0, :].sum(axis=-1)
            if excess is not None:
                scores["calibration"] = _by_group(excess, group) / tables.sum(axis=(-2, -1))
        results.append(scores)
    return results


def _of_numbers(
    metric: Metric, key: str, sample: ScoringInput, present: np.ndarray, labels: np.ndarray, combinations: np.ndarray
) -> list[dict[str, np.ndarray]]:
    del present
    count = combinations.shape[1]
    rows, errors = (_sums(labels, count, weights) for weights in (None, sample.y_pred - sample.y_true))
    values = metric.per_row(**metric.inputs(sample)) if metric.per_row is not None else {}
    totals = _sums(labels, count, values[key]) if key in values else None
    results = []
    for group in combinations:
        with np.errstate(invalid="ignore", divide="ignore"):
            size = _by_group(rows, group)
            if totals is None:
                scores = _resampled(metric, key, sample, group[labels], group.max() + 1)
            else:
                scores = _by_group(totals, group) / size
            results.append({key: scores, "bias": _by_group(errors, group) / size})
    return results


def _resampled(metric: Metric, key: str, sample: ScoringInput, labels: np.ndarray, groups: int) -> np.ndarray:
    weights = ((labels == code).astype(np.float64) for code in range(groups))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([metric.resamples(sample, rows)[key] for rows in weights])


def adjust_gaps(groups: Mapping[str, Breakdown]) -> dict[str, Breakdown]:
    """Correct the p-values of all breakdowns of a result for their number (Holm)."""
    tested = [name for name, entry in groups.items() if not np.isnan(entry.gap.p_value)]
    adjusted = dict(zip(tested, holm([groups[name].gap.p_value for name in tested]), strict=True))
    return {
        name: replace(entry, gap=replace(entry.gap, p_adjusted=float(adjusted[name]))) if name in adjusted else entry
        for name, entry in groups.items()
    }
