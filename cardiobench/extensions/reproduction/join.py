"""Join predictions with truth, as published (inner join) or with checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, BadPredictions, counted, first_n
from cardiobench.data.spec import VIEWS
from cardiobench.extensions.reproduction.files import read_table
from cardiobench.extensions.reproduction.profiles import Profile
from cardiobench.extensions.reproduction.table_spec import PROBABILITIES, TableSpec, Truth
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.tasks.group_labels import group_labels


@dataclass(frozen=True)
class Joined:
    """Rows of one prediction file to score.

    Attributes:
        sample: True and predicted values, or codes of classes and views.
        patients: Patient of each row, (n,).
        groups: Subgroup of each row, by breakdown.
        counted: Label to count as predicted view of each row; empty for other tables.
        expected: Number of expected rows.
        notes: Remarks on the join for readers of the tables.
    """

    sample: ScoringInput
    patients: np.ndarray
    groups: dict[str, np.ndarray]
    counted: Sequence[str]
    expected: int
    notes: tuple[str, ...]


# Sample, selected rows, counted labels and notes.
_Scored = tuple[ScoringInput, np.ndarray, Sequence[str], list[str]]


def read_truth(spec: TableSpec, splits: Path, profile: Profile) -> pd.DataFrame:
    """Read key, patient, truth and subgroups in the order of the published evaluator.

    Raises:
        MissingData: A file does not exist.
        BadData: A column, test rows or valid labels are missing.
    """
    truth = spec.truth
    constant = truth.label in VIEWS
    needed = [truth.key, truth.split[0], truth.patient[0], *truth.where, *([] if constant else [truth.label])]
    frame = pd.concat([read_table(splits / file, needed) for file in truth.files], ignore_index=True)
    for grouping in spec.groups:
        first = frame.drop_duplicates(truth.key).set_index(truth.key)
        values = pd.DataFrame({grouping.group.column: grouping.value(first)})
        frame[f"group {grouping.group.name}"] = frame[truth.key].map(
            pd.Series(group_labels(grouping.group, values), index=first.index)
        )
    for column, value in truth.having.items():
        frame = frame[frame[truth.key].isin(frame.loc[frame[column] == value, truth.key])]
    chosen = np.ones(len(frame), dtype=bool)
    for column, value in truth.where.items():
        chosen &= frame[column].isin([name for name in frame[column].unique() if str(name).upper() == value]).to_numpy()
    if truth.once and len(truth.files) > 1:  # An id in two files belongs to the first file, even if its split differs.
        chosen &= ~frame[truth.key].duplicated().to_numpy()
    if not (truth.all_splits and profile.as_published):
        chosen &= _in_split(frame, truth, profile)
    if not chosen.any():
        raise BadData(
            f"{', '.join(truth.files)}: no row has {truth.split[0]} = {truth.split[1]!r} "
            f"(it has {first_n(map(repr, frame[truth.split[0]].unique()))})."
        )
    frame = frame[chosen]
    if truth.sort:
        frame = frame.sort_values(truth.key)
    if truth.once:
        frame = frame.drop_duplicates(truth.key)
    repeated = frame.loc[frame[truth.key].duplicated(), truth.key].unique()
    if len(repeated) and not (spec.repeats and profile.as_published):
        raise BadData(f"{', '.join(truth.files)} repeat {counted(len(repeated), 'id')}: {first_n(repeated)}.")
    patient = frame[truth.patient[0]].astype(str).str.extract(truth.patient[1], expand=False)
    if patient.isna().any():
        odd = frame.loc[patient.isna(), truth.patient[0]]
        raise BadData(
            f"{', '.join(truth.files)}: {len(odd)} values of {truth.patient[0]} do not name a patient: {first_n(odd)}."
        )
    groups = [f"group {grouping.group.name}" for grouping in spec.groups]
    return pd.DataFrame({"key": frame[truth.key], "patient": patient, "truth": _labels(frame, spec)}).join(
        frame[groups]
    )


def _in_split(frame: pd.DataFrame, truth: Truth, profile: Profile) -> np.ndarray:
    column, value = truth.split
    if isinstance(value, int):
        return (pd.to_numeric(frame[column], errors="coerce") == value).to_numpy()
    spelled = [name for name in frame[column].unique() if str(name).strip() == value]
    if not spelled and not profile.as_published:  # The official list of EchoNet-Dynamic writes TEST.
        spelled = [name for name in frame[column].unique() if str(name).strip().lower() == value]
    return frame[column].isin(spelled).to_numpy()


def _labels(frame: pd.DataFrame, spec: TableSpec) -> pd.Series:
    """Return values, class codes or view codes; -1 for a view outside the six classes."""
    truth = spec.truth
    if spec.kind == "view":
        text = frame[truth.label].astype(str).str.strip().str.upper() if truth.label not in VIEWS else None
        code = {view.upper(): position for position, view in enumerate(VIEWS)}
        if text is None:
            return pd.Series(code[truth.label], index=frame.index)
        return text.map(lambda label: code.get(truth.view(label).upper(), -1))
    values = pd.to_numeric(frame[truth.label], errors="coerce")
    if spec.kind == "classification" and not values.isin([0, 1]).all():
        odd = frame.loc[~values.isin([0, 1]), truth.label].unique()
        raise BadData(f"{', '.join(truth.files)}: {truth.label} must be 0 or 1, but found {first_n(map(repr, odd))}.")
    return values


def join(spec: TableSpec, truth: pd.DataFrame, path: Path, profile: Profile) -> Joined:
    """Match one prediction file with its truth.

    Rows without a counterpart are omitted and counted. The published evaluator drops them silently, and its example
    files contain some.

    Raises:
        BadPredictions: Columns are missing, ids repeat, or predictions are invalid.
    """
    columns = [spec.truth.key, spec.column, *(PROBABILITIES[:-1] if spec.kind == "view" else ())]
    predictions = _read_predictions(path, columns, spec.key_from)
    if not profile.as_published and "prob_Other" in predictions:
        columns = [*columns, "prob_Other"]
    predictions, source = predictions[columns], f"{path.parent.name}/{path.name}"
    predictions = predictions.set_axis(["key", *predictions.columns[1:]], axis=1)
    notes = []
    repeated = predictions.loc[predictions["key"].duplicated(), "key"].unique()
    if len(repeated) and not spec.repeats:
        if not profile.as_published:
            raise BadPredictions(
                f"{source} repeats {counted(len(repeated), 'id')}: {first_n(repeated)}. Give one row per id."
            )
        predictions = predictions.drop_duplicates("key")
        notes.append(f"of {counted(len(repeated), 'id')} that occur twice, the first row is used: {first_n(repeated)}")
    elif len(repeated) and not profile.as_published:
        raise BadPredictions(
            f"{source} repeats {counted(len(repeated), 'id')}: {first_n(repeated)}. Give one row per id."
        )
    if truth["key"].dtype.kind != predictions["key"].dtype.kind:
        raise BadPredictions(
            f"{source}: ids such as {predictions['key'].iloc[0]!r} differ in type from {truth['key'].iloc[0]!r} "
            f"in {', '.join(spec.truth.files)}. Write the ids as they are in the latter."
        )
    merged = truth.merge(predictions, on="key")
    notes += _coverage(truth["key"], predictions["key"], spec)
    if merged.empty:
        raise BadPredictions(
            f"{source} contains none of the {len(truth)} ids of {', '.join(spec.truth.files)} "
            f"(its first is {predictions['key'].iloc[0]!r}, theirs {truth['key'].iloc[0]!r})."
        )
    scored = (
        _views(spec, merged, source, profile)
        if spec.kind == "view"
        else _values_or_classes(spec, merged, source, profile)
    )
    sample, rows, labels, more = scored
    scored_rows = merged[rows]
    groups = {g.group.name: scored_rows[f"group {g.group.name}"].to_numpy() for g in spec.groups}
    return Joined(sample, scored_rows["patient"].to_numpy(), groups, labels, len(truth), (*notes, *more))


def _read_predictions(path: Path, columns: Sequence[str], key_from: str) -> pd.DataFrame:
    """Read a prediction file; ids may have a suffix after the key and `_`."""
    if not key_from:
        return read_table(path, columns)
    predictions = read_table(path, columns[1:])
    if columns[0] not in predictions and key_from in predictions:
        predictions[columns[0]] = predictions[key_from].astype(str).str.partition("_")[0]
    return (
        predictions if columns[0] in predictions else read_table(path, columns)
    )  # The message reports the missing key.


def _coverage(wanted: pd.Series, given: pd.Series, spec: TableSpec) -> list[str]:
    missing, extra = wanted[~wanted.isin(given)], given[~given.isin(wanted)]
    notes = []
    if len(missing):
        notes.append(f"{len(missing)} of the {len(wanted)} ids of the truth have no answer: {first_n(missing)}")
    if len(extra):
        notes.append(f"{len(extra)} answered ids are not in the truth: {first_n(extra)}")
    return notes


def _values_or_classes(spec: TableSpec, merged: pd.DataFrame, source: str, profile: Profile) -> _Scored:
    """Return sample, selected rows and notes for regression or classification."""
    predicted = pd.to_numeric(merged[spec.column], errors="coerce").replace([np.inf, -np.inf], np.nan)
    truth = merged["truth"].astype(np.float64)
    rows = _without_gaps((predicted.notna() & truth.notna()).to_numpy(), merged, spec, source, profile)
    predicted, truth = predicted[rows].to_numpy(np.float64), truth[rows].to_numpy()
    if spec.kind == "measurement":
        return ScoringInput(truth, predicted), rows, (), _dropped(rows)
    odd = ~np.isin(predicted, (0, 1))
    if odd.any():
        raise BadPredictions(
            f"{source}: {int(odd.sum())} of {len(predicted)} values of {spec.column} are neither 0 nor 1: "
            f"{first_n(merged.loc[rows, 'key'][odd])}."
        )
    return ScoringInput(truth.astype(np.int64), predicted.astype(np.int64)), rows, (), _dropped(rows)


def _without_gaps(good: np.ndarray, merged: pd.DataFrame, spec: TableSpec, source: str, profile: Profile) -> np.ndarray:
    """Return rows to score; gaps are only allowed where the published evaluator skips them."""
    if good.all():
        return good
    count = (
        f"{int((~good).sum())} of {len(good)} rows have no finite answer or no label: {first_n(merged['key'][~good])}"
    )
    if not profile.as_published:
        raise BadPredictions(f"{source}: {count}. Every row needs one.")
    if spec.keeps_gaps:
        raise BadPredictions(
            f"{source}: {count}. The published evaluator stops here with an IndexError; there is nothing to reproduce."
        )
    if not good.any():
        raise BadPredictions(f"{source}: {count}. There is nothing to score.")
    return good


def _dropped(rows: np.ndarray) -> list[str]:
    count = int((~rows).sum())
    return [f"{count} rows without a finite answer are left out"] if count else []


def _views(spec: TableSpec, merged: pd.DataFrame, source: str, profile: Profile) -> _Scored:
    """Return sample, selected rows, counted labels and notes for a view table."""
    known = merged[list(PROBABILITIES[:-1])].apply(pd.to_numeric, errors="coerce")
    other = (1 - known.sum(axis=1)).clip(0, 1)
    if not profile.as_published and "prob_Other" in merged:
        other = pd.to_numeric(merged["prob_Other"], errors="coerce")
    table = np.column_stack([known, other]).astype(np.float64)
    valid = merged["truth"].to_numpy() >= 0
    rows = _without_gaps(np.isfinite(table).all(axis=1) & valid, merged, spec, source, profile)
    table = table[rows]
    odd = ~((table >= 0) & (table <= 1)).all(axis=1) | (table.sum(axis=1) <= 0)
    if odd.any():
        raise BadPredictions(
            f"{source}: {int(odd.sum())} of {len(table)} rows have a probability outside [0, 1], or none above 0: "
            f"{first_n(merged.loc[rows, 'key'][odd])}."
        )
    answered = table.argmax(axis=1)
    labels = merged.loc[valid, spec.column] if profile.as_published else np.array(VIEWS, dtype=object)[answered]
    counted = [label if label in VIEWS else "Other" for label in labels]
    notes = _dropped(rows)
    differing = int((np.array(VIEWS, dtype=object)[answered] != merged.loc[rows, spec.column]).sum())
    if differing:
        notes.append(f"view_pred is not the most probable view in {differing} of {len(answered)} rows")
    return (
        ScoringInput(merged.loc[rows, "truth"].to_numpy(np.int64), answered, table / table.sum(axis=1, keepdims=True)),
        rows,
        counted,
        notes,
    )
