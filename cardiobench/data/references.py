"""References of a task: label and patient of every unit in every split."""

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadData, counted, first_n
from cardiobench.core.tables import text_of
from cardiobench.data.spec import Task
from cardiobench.tasks.labels import strange_labels

COLUMNS = ("id", "patient_id", "split", "y_true")


def references_of(rows: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Return the references of a task from the rows of a dataset.

    Args:
        rows: All rows of the dataset, without the recordings.
        task: Task that determines rows, label and units.

    Returns:
        id, patient_id, split, y_true and the columns of the task's groups, one row per labelled unit. For a dense task,
        y_true is the number of labelled frames.

    Raises:
        BadData: A unit's rows disagree on its label, patient or split.
    """
    groups = [group.column for group in task.groups if group.column in rows]
    named = [task.unit_column, "patient_id", "split", task.target, *task.where, *groups]
    kept = rows[task.target].notna()
    for column, accepted in task.where.items():
        kept &= rows[column].isin(accepted)
    rows = rows.loc[kept, list(dict.fromkeys(named))]  # Computed once, because each selection of rows is a copy.
    columns = {
        "id": rows[task.unit_column].astype(str),
        "patient_id": rows["patient_id"].astype(str),
        "split": rows["split"],
        "y_true": rows[task.target],
    }
    table = pd.DataFrame(columns | {name: rows[name] for name in groups}, copy=False)
    table.index = pd.RangeIndex(len(table))
    table["y_true"] = task.rules.unit_labels(table["y_true"], table["id"])
    if not table["id"].is_unique:
        repeated = table[table["id"].duplicated(keep=False)]
        differing = [f"{unit} ({column})" for column in COLUMNS[1:] for unit in _disagreeing(repeated, column)]
        if differing:
            raise BadData(f"{task.name}: rows of the same {task.unit_column} disagree: {first_n(differing)}.")
        table = table.drop_duplicates("id", ignore_index=True)
    return check_references(table, task)


def unlabelled_units(rows: pd.DataFrame, task: Task, labelled: pd.Series) -> pd.DataFrame:
    """Return the units of a dataset without a label of a task.

    Args:
        rows: All rows of the dataset, without the recordings.
        task: Task whose labels may be absent.
        labelled: Ids of the labelled units.

    Returns:
        id, patient_id and split of all other units.
    """
    table = rows[[task.unit_column, "patient_id", "split"]].set_axis(["id", "patient_id", "split"], axis=1)
    table = table[table["id"].notna()].astype({"id": str, "patient_id": str})
    return table[~table["id"].isin(labelled)].drop_duplicates("id", ignore_index=True)


def _disagreeing(table: pd.DataFrame, column: str) -> list[str]:
    values = table.drop_duplicates(["id", column])["id"]
    return values[values.duplicated()].unique().tolist()


def check_references(table: pd.DataFrame, task: Task, source: str = "references") -> pd.DataFrame:
    """Check a table of references and return it.

    Raises:
        BadData: A column is missing, an id is repeated, or a label is unknown or not finite.
    """
    absent = [column for column in COLUMNS if column not in table.columns]
    if absent:
        raise BadData(
            f"{source} of {task.name} lack the column {', '.join(absent)}; they have {', '.join(table.columns)}. "
            "Add the column."
        )
    for column in ("id", "patient_id"):
        if (nameless := int((table[column].isna() | (table[column] == "")).sum())) > 0:
            raise BadData(
                f"{source} of {task.name}: {nameless} of {len(table)} rows have no {column}. Fill in the {column}."
            )
    if not table["id"].is_unique:
        repeated = table.loc[table["id"].duplicated(), "id"].unique()
        raise BadData(
            f"{source} of {task.name} repeat {counted(len(repeated), 'id')}: {first_n(repeated)}. Keep one row of each."
        )
    if task.classes:
        if (unknown := int(table["y_true"].isna().sum())) > 0:
            raise BadData(
                f"{source} of {task.name}: {unknown} of {len(table)} rows have no label: "
                f"{first_n(table.loc[table['y_true'].isna(), 'id'])}. Leave them out"
                f"{'; write an empty text, not a null, for a unit without any class' if task.rules.empty_label else ''}."
            )
        if strange := strange_labels(table["y_true"], task):
            raise BadData(
                f"{source} of {task.name} have unknown labels {first_n(strange)}; expected {', '.join(task.classes)}."
            )
        return table
    finite = np.isfinite(pd.to_numeric(table["y_true"], errors="coerce").to_numpy(np.float64))
    if not finite.all():
        odd = table.loc[~finite, "id"]
        raise BadData(
            f"{source} of {task.name}: {len(odd)} of {len(table)} labels are not finite numbers: {first_n(odd)}. "
            "Leave these rows out."
        )
    return table


def class_names_of(column: pd.Series, task: Task) -> pd.Series:
    """Return class names, given names or positions in the class order; other cells are unchanged.

    Cells of a multilabel task contain only names. A null differs from an empty text, because it means that the classes
    are unknown.
    """
    text = text_of(column)
    if task.rules.empty_label:
        return text.mask(column.isna(), None)
    names = {str(index): name for index, name in enumerate(task.classes)}
    names |= {f"{index}.0": name for index, name in enumerate(task.classes)}
    names |= {name: name for name in task.classes}
    return text.map(names).fillna(text)
