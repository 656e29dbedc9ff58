"""Scores by sex, age and other groups: n, patients and interval each, and the gap between best and worst."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData
from cardiobench.data.spec import Group
from cardiobench.results.score_result import Breakdown, Gap
from cardiobench.scoring.bootstrap import estimate, percentile_interval
from cardiobench.scoring.metrics import Metric, ScoringInput

MIN_PATIENTS = 10


@dataclass(frozen=True)
class Split:
    """Rows of a breakdown: which rows each scored group has, and why the other groups are not scored."""

    rows: Mapping[str, np.ndarray]
    skipped: Mapping[str, str]


def group_labels(group: Group, frame: pd.DataFrame) -> np.ndarray:
    """The group of each row, (n,) objects; None where the row's value is unknown."""
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
    return np.where(values.isna(), None, np.array(group.labels, dtype=object)[place])


def split_rows(group: Group, frame: pd.DataFrame) -> Split:
    """Sort the rows into groups; those with fewer than 10 patients are named, not scored."""
    if group.column not in frame:
        return Split({}, {group.name: f"the references have no column '{group.column}'"})
    labels, patients = group_labels(group, frame), frame["patient_id"].to_numpy()
    unknown = np.array([label is None for label in labels], dtype=bool)
    present = set(labels[~unknown])
    ordered = [label for label in group.labels if label in present] if group.edges else sorted(present, key=str)
    rows, skipped = {}, {}
    for label in ordered:
        chosen = np.flatnonzero(labels == label)
        count = len(set(patients[chosen]))
        if count < MIN_PATIENTS:
            skipped[f"{group.name}={label}"] = f"{count} patients, {MIN_PATIENTS} needed"
        else:
            rows[str(label)] = chosen
    if unknown.any():
        who = len(set(patients[unknown]))
        skipped[f"{group.name}=unknown"] = f"{int(unknown.sum())} rows of {who} patients have no {group.column}"
    return Split(rows, skipped)


def resamples_by_group(
    metric: Metric, key: str, sample: ScoringInput, rows: Mapping[str, np.ndarray], weights: np.ndarray
):
    """The metric of each group in each resample of all patients: {group: (b,)}."""
    return {
        label: metric.resamples(sample.take(chosen), weights.take(chosen, axis=1))[key]
        for label, chosen in rows.items()
    }


def breakdown(
    metric: Metric,
    key: str,
    sample: ScoringInput,
    patients: np.ndarray,
    rows: Mapping[str, np.ndarray],
    drawn: Mapping[str, np.ndarray],
) -> Breakdown:
    """Scores of the groups, their gap, and the worst of them.

    Args:
        metric: the metric that ranks models.
        key: its key.
        sample: all rows.
        patients: patient of each row, (n,).
        rows: group -> its rows; at least one group.
        drawn: group -> metric in each resample, (B,).
    """
    values = {
        label: estimate(metric.value(sample.take(chosen))[key], drawn[label], patients[chosen])
        for label, chosen in rows.items()
    }
    defined = {label: value.value for label, value in values.items() if not np.isnan(value.value)}
    worst = (min if metric.direction[key] else max)(defined, key=defined.get, default="")
    if len(values) < 2:
        return Breakdown(values, Gap(np.nan, np.nan, np.nan, "one group with enough patients"), worst)
    table = np.stack([drawn[label] for label in values])
    low, high = percentile_interval(table.max(axis=0) - table.min(axis=0))
    if len(defined) < len(values):
        return Breakdown(values, Gap(np.nan, np.nan, np.nan, "the metric is undefined in a group"), worst)
    return Breakdown(values, Gap(max(defined.values()) - min(defined.values()), low, high), worst)
