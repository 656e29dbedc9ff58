"""Predictions, from any source, set against the references: nothing missing, nothing extra, nothing twice."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, NotApplicable, first_n
from cardiobench.core.tables import numbers_of, read_table, text_of
from cardiobench.data.references import class_names_of
from cardiobench.data.spec import Task
from cardiobench.scoring.unit_ids import count_unlabelled, match_units, units_text
from cardiobench.tasks.answers import TableAnswers, probability_columns
from cardiobench.tasks.labels import label_values, strange_labels

ID_COLUMNS = ("FileName", "HashedFileName", "unique_id", "study_id", "patient_id", "query_key", "patient_view_id")
SUM_TOLERANCE = 1e-3


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
        """Set answers against the references of a split.

        Args:
            references: id, patient_id, split, y_true and columns of groups, all splits.
            answers: id with y_pred (class name or number) or `p_<class>` for every class, or both; with probabilities
                alone the most probable class is the answer (of two the positive one on a tie). A multilabel task needs the probabilities.
            task: the question.
            source: how messages call the answers, such as a file name.
            split: which rows are scored.
            allow_missing: score what is there; the units without an answer lower the coverage and are named.
            unlabelled: id and split of the units without a label; answers for those of the split are left out and counted.

        Raises:
            BadPredictions: ids are missing, extra or repeated, values not finite, labels unknown, or probabilities
                outside [0, 1] or, where a unit has one class, not summing to 1.
            NotApplicable: the task asks for masks or points.
        """
        if task.dense:
            raise NotApplicable(
                f"{task.name} asks for {task.kind} of frames, which no table of answers per unit can hold."
            )
        answers = answers.assign(id=answers["id"].astype(str)).reset_index(drop=True)
        wanted, place = match_units(references, answers["id"], task, source, split, allow_missing, unlabelled)
        _check_values(answers, task, source)
        frame = wanted.drop(columns="split")[place >= 0].reset_index(drop=True)
        answered = _completed(answers, task).iloc[place[place >= 0]].reset_index(drop=True)
        frame = pd.concat([frame, answered], axis=1)
        without_label = count_unlabelled(answers["id"], unlabelled, split)
        notes = _notes(wanted, place, task, split, without_label) + _disagreement(frame, task)
        missing = wanted.loc[place < 0, ["id", "patient_id", "y_true"]].reset_index(drop=True)
        return cls(task, frame, len(wanted), source, tuple(notes), missing if len(missing) else None)


def _notes(wanted: pd.DataFrame, place: np.ndarray, task: Task, split: str, without_label: int) -> list[str]:
    missing = int((place < 0).sum())
    notes = [f"{missing} of the {len(wanted)} {units_text(task, split)} have no prediction"] if missing else []
    if without_label:
        notes.append(
            f"answers for units of the {split} split that have no label of {task.name} were left out: {without_label}"
        )
    return notes


def _check_values(answers: pd.DataFrame, task: Task, source: str) -> None:
    """Refuse values that are not finite, labels that are no classes, probabilities that are none."""
    columns = probability_columns(task)
    given = [column for column in columns if column in answers]
    if given and len(given) < len(columns):
        raise BadPredictions(
            f"{source} has probabilities for {', '.join(given)} only; {task.name} has {', '.join(columns)}."
        )
    several = task.rules.answer == "labels"
    if several and not given:
        raise BadPredictions(
            f"{source} has no probabilities; {task.name} is ranked by them. Give a column for each class: {', '.join(columns)}; "
            "1 and 0 where only the labels are known, as of people."
        )
    if not given and "y_pred" not in answers:
        raise BadPredictions(f"{source} has neither y_pred nor probabilities for {task.name}.")
    if task.classes and "y_pred" in answers:
        codes, cells = pd.factorize(answers["y_pred"], use_na_sentinel=False)  # few differ, in however many rows
        strange = answers[np.array([bool(strange_labels([cell], task)) for cell in cells], dtype=bool)[codes]]
        if len(strange):
            rows = [f"{name} ({cell!r})" for name, cell in zip(strange["id"], strange["y_pred"], strict=True)]
            raise BadPredictions(
                f"{source}: {len(rows)} of {len(answers)} predictions are not classes of {task.name}: {first_n(rows)}. "
                f"Classes: {', '.join(task.classes)}."
            )
    for column in given if task.classes else ["y_pred"]:
        values = pd.to_numeric(answers[column], errors="coerce").to_numpy(np.float64)
        _require(
            np.isfinite(values),
            answers,
            source,
            f"values of {column} are not finite numbers",
            "Give a number, or leave the row out and score the others with --allow-missing (in Python allow_missing=True).",
        )
    if given:
        table = answers[given].to_numpy(np.float64)
        _require(
            ((table >= 0) & (table <= 1)).all(axis=1),
            answers,
            source,
            "rows have a probability outside [0, 1]",
            "Divide percentages by 100, and apply the model's sigmoid or softmax to logits.",
        )
        adds_up = (np.abs(table.sum(axis=1) - 1) <= SUM_TOLERANCE) | several
        _require(
            adds_up,
            answers,
            source,
            "rows have probabilities that do not sum to 1",
            f"Give the softmax over {', '.join(task.classes)}.",
        )


def _require(good: np.ndarray, answers: pd.DataFrame, source: str, complaint: str, action: str) -> None:
    if not good.all():
        count = f"{int((~good).sum())} of {len(good)}"
        raise BadPredictions(f"{source}: {count} {complaint}: {first_n(answers['id'][~good])}. {action}")


def _completed(answers: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Keep the columns y_pred and p_<class>; derive y_pred from the probabilities if it is missing."""
    columns = [column for column in probability_columns(task) if column in answers]
    if "y_pred" not in answers:
        table = answers[columns].to_numpy(np.float64)
        answers = answers.assign(y_pred=task.rules.unit_answers(table, task)["y_pred"].to_numpy())
    return answers[["y_pred", *columns]]


def _disagreement(frame: pd.DataFrame, task: Task) -> list[str]:
    """Say in how many rows y_pred is not a most probable class, as after a cut of one's own; both are used as given."""
    columns = probability_columns(task)
    if task.rules.answer == "labels" or not columns or not set(columns) <= set(frame.columns):
        return []
    table = frame[columns].to_numpy(np.float64)
    answer = label_values(frame["y_pred"], task)
    odd = int((table[np.arange(len(table)), answer] < table.max(axis=1) - 1e-9).sum())
    if not odd:
        return []
    return [f"y_pred is not the most probable class in {odd} of {len(frame)} rows; both are used as given"]


def read_predictions(source: str | Path | pd.DataFrame, task: Task) -> pd.DataFrame:
    """Read external predictions from a CSV or Parquet file or a frame, in the form that `Predictions.join` takes.

    The id stands in a column `id`, in the one the task is scored by, or in one of `ID_COLUMNS`. The answer stands in
    `y_pred`, `prediction` or `<target>_pred`; probabilities in `p_<class>` or `prob_<class>`, a class written by name
    or by its place in the class order; of a binary task one column suffices (`p_<positive>`, `prob_<target>`). A class
    without a column has probability 0 where the others sum to 1. Case does not matter in column names.

    Raises:
        BadPredictions: there is no such column, or a cell is no number or no class.
    """
    table, source = read_table(source), source_name(source)
    columns = {str(name).strip().lower(): name for name in reversed(list(table.columns))}

    def find(*names: str) -> str | None:
        return next((columns[name.lower()] for name in names if name.lower() in columns), None)

    id_column = find("id", task.unit_column, *ID_COLUMNS)
    if id_column is None:
        wanted = ", ".join(dict.fromkeys(("id", task.unit_column, *ID_COLUMNS)))
        raise BadPredictions(f"{source} has no id column; it has {_listed(table)}. Name one of: {wanted}.")
    answers = pd.DataFrame({"id": text_of(table[id_column])})
    if (nameless := int((answers["id"] == "").sum())) > 0:
        raise BadPredictions(f"{source}: {nameless} of {len(answers)} rows have no {id_column}.")

    target = task.name.partition("/")[2]
    stems = dict.fromkeys((task.target, target, target.partition("_")[0]))
    value_column = find("y_pred", "prediction", *(f"{stem}_pred" for stem in stems))
    if value_column is not None and task.classes:
        answers["y_pred"] = class_names_of(table[value_column], task)
    elif value_column is not None:
        answers["y_pred"] = numbers_of(table[value_column], answers["id"], f"{source}: {value_column}")
    for place, name in enumerate(task.classes):
        own = [f"{prefix}_{spelling}" for spelling in (name, str(place)) for prefix in ("p", "prob")]
        if task.rules.two_classes and place == 1:
            own += [f"{prefix}_{stem}" for stem in stems for prefix in ("p", "prob")]
        if (column := find(*own)) is not None:
            answers[f"p_{name}"] = numbers_of(table[column], answers["id"], f"{source}: {column}")
    answers = _fill_probabilities(answers, task)
    if len(answers.columns) == 1:
        values = ["y_pred", "prediction", *(f"{stem}_pred" for stem in stems), *probability_columns(task)]
        raise BadPredictions(
            f"{source} has no column of predictions for {task.name}; it has {_listed(table)}. "
            f"Name one of: {', '.join(values)}."
        )
    return answers


def source_name(source: str | Path | pd.DataFrame) -> str:
    """Return what messages call predictions: the name of their file."""
    return Path(source).name if isinstance(source, (str, Path)) else "predictions"


def _listed(table: pd.DataFrame) -> str:
    return ", ".join(repr(str(name)) for name in table.columns)


def _fill_probabilities(answers: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Complete the probabilities of the classes that have no column of their own."""
    columns = probability_columns(task)
    given = [column for column in columns if column in answers]
    absent = [column for column in columns if column not in answers]
    if not given or not absent or task.rules.answer == "labels":
        return answers
    total = answers[given].to_numpy(np.float64).sum(axis=1)
    if task.rules.two_classes:
        return answers.assign(**{absent[0]: 1 - total})
    if (np.abs(total - 1) <= SUM_TOLERANCE).all():
        return answers.assign(**dict.fromkeys(absent, 0.0))
    return answers
