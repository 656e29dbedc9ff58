"""Predictions matched with references: no missing, unknown or repeated ids."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, TableWarning, first_n
from cardiobench.core.tables import check_thousands, numbers_of, read_table, text_of
from cardiobench.data.references import class_names_of
from cardiobench.data.spec import Task
from cardiobench.scoring.unit_ids import count_unlabelled, match_units, units_text
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.checks import check_finite

SCORES = ("score", "pred", "predicted", "predictions", "output", "value", "estimate", "y_score", "y_hat")
"""Names of columns that are answers elsewhere, in lower case."""
ID_COLUMNS = ("FileName", "HashedFileName", "unique_id", "study_id", "patient_id", "query_key", "patient_view_id")


class Predictions(TableAnswers):
    """Predictions of a model joined with their references."""

    @classmethod
    def join(
        cls,
        references: pd.DataFrame,
        answers: pd.DataFrame,
        task: Task,
        *,
        source: str = "predictions",
        split: str = "test",
        allow_missing: bool = False,
        unlabelled: pd.DataFrame | None = None,
    ) -> "Predictions":
        """Match answers with the references of a split.

        Args:
            references: Id, patient_id, split, y_true and columns of groups, all splits.
            answers: Table with id and y_pred (class name or number), `p_<class>` for every class, or both. An answer
                outside the classes is `Other`, with the probability `p_Other`. With probabilities alone the answer is the most probable class (of two the positive one on a tie); for a
                multilabel task (y_pred such as `MI;STTC`, empty for none) it is the classes with at least 0.5.
            task: Task to score.
            source: Name of the answers in messages, such as a file name.
            split: Split whose rows are scored.
            allow_missing: Score incomplete answers; units without an answer lower the coverage and are named.
            unlabelled: Ids and splits of the units without a label; answers for those of the split are left out and
                counted.

        Raises:
            BadPredictions: Ids are missing, unknown or repeated, values not finite, labels unknown, or probabilities
                outside [0, 1] or, with one class per unit, not summing to 1.
            NotApplicable: The task asks for masks or points.
        """
        answers, rules = answers.assign(id=answers["id"].astype(str)).reset_index(drop=True), task.rules
        rules.check_answers(answers, task, source)
        wanted, place = match_units(references, answers["id"], task, source, split, allow_missing, unlabelled)
        frame = wanted.drop(columns="split")[place >= 0].reset_index(drop=True)
        answered = rules.complete_answers(answers, task).iloc[place[place >= 0]].reset_index(drop=True)
        frame = pd.concat([frame, answered], axis=1)
        without_label = count_unlabelled(answers["id"], unlabelled, split)
        notes = _notes(wanted, place, task, split, without_label)
        missing = wanted.loc[place < 0, ["id", "patient_id", "y_true"]].reset_index(drop=True)
        return cls(task, frame, len(wanted), source, tuple(notes), missing if len(missing) else None)

    def with_doubts(self) -> "Predictions":
        """Return predictions from elsewhere, with warnings about contradictions; those of a protocol with its threshold are stamped."""
        return replace(self, warnings=(*self.warnings, *self.task.rules.doubts(self.frame, self.task)))


def _notes(wanted: pd.DataFrame, place: np.ndarray, task: Task, split: str, without_label: int) -> list[str]:
    missing = int((place < 0).sum())
    notes = [f"{missing} of the {len(wanted)} {units_text(task, split)} have no prediction"] if missing else []
    if without_label:
        notes.append(
            f"answers for units of the {split} split that have no label of {task.name} were left out: {without_label}"
        )
    return notes


def read_predictions(source: str | Path | pd.DataFrame, task: Task) -> pd.DataFrame:
    """Read external predictions from a CSV or Parquet file or a data frame, in the format of `Predictions.join`.

    The id is in a column `id`, in the task's unit column, or in one of `ID_COLUMNS`. The answer is in `y_pred`,
    `prediction` or `<target>_pred`; probabilities are in `p_<class>` or `prob_<class>`, with the name of the class or
    its position; for a binary task one column suffices (`p_<positive>`, `prob_<target>`). A class without a column has
    probability 0 if the others sum to 1. Column names are case-insensitive. A `TableWarning` names the columns of numbers
    that may hold answers and are not read.

    Raises:
        BadPredictions: There is no such column, or a cell is not a number or a class.
    """
    table, source = read_table(source, error=BadPredictions), source_name(source)
    columns = {str(name).strip().lower(): name for name in reversed(list(table.columns))}
    used: list[str] = []

    def find(*names: str) -> str | None:
        found = next((columns[name.lower()] for name in names if name.lower() in columns), None)
        used.extend([found] if found is not None else [])
        return found

    target = task.name.partition("/")[2]
    stems = dict.fromkeys((task.target, target, target.partition("_")[0]))
    value_names = ("y_pred", "prediction", *(f"{stem}_pred" for stem in stems))
    expected = (
        f"predictions of {task.name} are in one of: {', '.join((*value_names, *task.rules.answer_columns(task)[1:]))}"
    )
    id_column = find("id", task.unit_column, *ID_COLUMNS)
    if id_column is None:
        wanted = ", ".join(dict.fromkeys(("id", task.unit_column, *ID_COLUMNS)))
        raise BadPredictions(
            f"{source} has no id column; it has {_listed(table)}. Name one of: {wanted}. The {expected}."
        )
    answers = pd.DataFrame({"id": text_of(table[id_column])})
    if (nameless := int((answers["id"] == "").sum())) > 0:
        raise BadPredictions(f"{source}: {nameless} of {len(answers)} rows have no {id_column}.")

    def add(name: str, column: str) -> None:
        """Read a column of numbers; only here is its name in the file known."""
        answers[name] = numbers_of(table[column], answers["id"], f"{source}: {column}", BadPredictions)
        check_finite(answers, name, source, column)

    value_column = find(*value_names)
    if value_column is not None and task.classes:
        # The cell of a unit without any label is empty, which pandas may read as null.
        cells = table[value_column].fillna("") if task.rules.empty_label else table[value_column]
        answers["y_pred"] = class_names_of(cells, task)
    elif value_column is not None:
        check_thousands(table, [value_column], source, BadPredictions)
        add("y_pred", value_column)
    for name, accepted in _number_columns(task, stems).items():
        if name not in answers and (column := find(*accepted)) is not None:
            add(name, column)
    answers = task.rules.fill_answers(answers, task)
    if len(answers.columns) == 1:
        raise BadPredictions(
            f"{source} has no column of predictions for {task.name}; it has {_listed(table)}. The {expected}."
        )
    unread = [str(name) for name in table if name not in used and _is_like_answers(table[name], task)]
    if unread:
        said = f"{source}: column {first_n(map(repr, unread))} is not used; {expected}"
        warnings.warn(said, TableWarning, stacklevel=2)
    return answers


def _number_columns(task: Task, stems: Iterable[str]) -> dict[str, list[str]]:
    """Return a mapping from column of numbers to its accepted names in a file."""
    found = {}
    for place, name in enumerate(task.classes):
        spellings = [name, str(place), *(stems if task.rules.two_classes and place == 1 else ())]
        found[f"p_{name}"] = [f"{prefix}_{one}" for one in spellings for prefix in ("p", "prob")]
    for name in (*task.rules.answer_columns(task), *task.rules.optional_columns(task)):
        found.setdefault(name, [name, f"prob_{name.removeprefix('p_')}"])
    return found


def _is_like_answers(column: pd.Series, task: Task) -> bool:
    """Return whether a column that is not read may hold answers: by its name, or as it holds probabilities."""
    numbers = pd.to_numeric(column, errors="coerce").dropna()
    if not len(numbers) or str(column.name).strip().lower() in SCORES:
        return len(numbers) > 0
    return bool(task.classes) and bool(numbers.between(0, 1).all() and (numbers % 1 != 0).any())


def source_name(source: str | Path | pd.DataFrame) -> str:
    """Return the name of predictions for messages: that of their file."""
    return Path(source).name if isinstance(source, (str, Path)) else "predictions"


def _listed(table: pd.DataFrame) -> str:
    return ", ".join(repr(str(name)) for name in table.columns)
