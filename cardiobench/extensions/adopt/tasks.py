"""Define the tasks of an adopted dataset from its label columns."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadConfig, BadData, first_n
from cardiobench.core.registry import check_names
from cardiobench.data.declared.dataset_file import DeclaredTask, is_name
from cardiobench.data.declared.labels import flag_cells, measured
from cardiobench.extensions.adopt.answers import Answers
from cardiobench.extensions.adopt.columns import FEW_NUMBERS, ColumnProfile, profile, quoted, sentinels, slug
from cardiobench.extensions.adopt.kinds import CLASSES, LABELS, NUMBER, TWO_CLASSES
from cardiobench.extensions.adopt.questions import Questions

KINDS = (TWO_CLASSES, CLASSES, NUMBER)
MOST_CLASSES = 100


def choose_targets(
    table: pd.DataFrame, taken: Collection[str], answers: Answers, questions: Questions
) -> dict[str, str]:
    """Map task names to label columns, asking for columns that the user did not name.

    Raises:
        BadConfig: A task name is invalid, or an answer refers to an unknown task.
    """
    targets = dict(answers.targets)
    if not targets and not answers.multilabel:
        likely = [one for name in table if name not in taken and (one := profile(table[name])).kind]
        shown = ", ".join(
            f"{quoted(one.name)} ({one.kind.replace('?', 'classes or numbers')}: {one.shown()})" for one in likely[:12]
        )
        hint = f" Likely: {shown}." if shown else ""
        answer = questions.ask(f"Which columns are labels?{hint}", "--target COLUMN [COLUMN ...]")
        targets = {slug(column): column for column in (answer or "").split()}
    for name in (*targets, *answers.multilabel):
        if not is_name(name):
            raise BadConfig(
                f"'{name:.60}' is not a valid task name: use lower case letters, digits and underscores, such as ef."
            )
    check_names(
        "column", (*targets.values(), *(one for columns in answers.multilabel.values() for one in columns)), table
    )
    known = {*targets, *answers.multilabel}
    for field in ("kinds", "positive", "units", "ranges", "per", "where", "missing", "metrics"):
        check_names("task", getattr(answers, field) if known else (), known)
    return targets


def declare(name: str, table: pd.DataFrame, column: str, answers: Answers, questions: Questions) -> DeclaredTask | None:
    """Return the task of a column, or None while a question is open.

    Raises:
        BadData: The column does not fit the requested kind.
    """
    cells = _measured(name, table[column], answers)
    found = profile(cells)
    if len(found.values) < 2:
        said = f"every one of its {found.filled} values is {found.values[0]!r:.40}" if found.values else "it is empty"
        raise BadData(f"column '{column}' has nothing to predict: {said}. Remove it from --target.")
    kind = answers.kinds.get(name) or found.kind
    if kind in ("", "?"):
        why = "ids or free text?" if not kind else f"{len(found.values)} numbers: classes or a measurement?"
        kind = (
            questions.ask(f"What is '{column}' ({found.shown()}; {why})?", f"--kind {name}={'|'.join(KINDS)}", KINDS)
            or ""
        )
    _check_flags(name, kind, found, answers)
    if kind == NUMBER:
        return _number(name, found, cells, answers, questions)
    return _classes(name, kind, found, answers, questions) if kind else None


def _measured(name: str, column: pd.Series, answers: Answers) -> pd.Series:
    """Return the cells of a task, "" for those that mean "not measured"; raises `BadConfig` for values that no cell has."""
    cells = column
    for value in answers.missing.get(name, ()):
        left = measured(cells, [value])
        if left.equals(cells):
            raise BadConfig(
                f"--missing {name}={','.join(answers.missing[name])}: no cell of '{column.name}' is {value!r:.40}. Leave it out."
            )
        cells = left
    return cells


def _check_flags(name: str, kind: str, found: ColumnProfile, answers: Answers) -> None:
    """Refuse flags that would have no effect on a task of this kind."""
    of_numbers = [
        flag for flag, given in (("--range", answers.ranges), ("--label-unit", answers.units)) if name in given
    ]
    if kind in (TWO_CLASSES, CLASSES) and of_numbers:
        raise BadConfig(
            f"{' and '.join(of_numbers)} of '{name}' are for numbers, and column '{found.name}' has classes: "
            f"{found.shown()}. Leave them out, or give --kind {name}={NUMBER} if it has numbers."
        )
    if name in answers.positive and kind in (CLASSES, NUMBER):
        raise BadConfig(
            f"--positive {name}={answers.positive[name]}: column '{found.name}' has {len(found.values)} different values "
            f"and not two: {found.shown()}. Correct or empty the other cells, leave them out with --missing {name}=CELL,CELL, or "
            "leave --positive out."
        )


def _about_percentages(cells: pd.Series) -> str:
    """Explain percentages above 100, which are numbers to which Excel's percent format was given; empty if there are none."""
    shares = pd.to_numeric(cells[cells.str.endswith("%")].str.removesuffix("%").str.strip(), errors="coerce")
    if not (shares > 100).any():
        return ""
    most = shares.max()
    return f" Excel's percent format shows {most / 100:g} as {most:g} %; give such cells the format of numbers."


def _number(
    name: str, found: ColumnProfile, column: pd.Series, answers: Answers, questions: Questions
) -> DeclaredTask | None:
    values = pd.to_numeric(column, errors="coerce")
    odd = column[values.isna() & (column != "")]
    with questions.gather():
        if len(odd):
            kinds = "" if name in answers.kinds else f"; or give --kind {name}={CLASSES} if they are classes"
            left_out = ",".join(cell for cell in dict.fromkeys(odd) if "," not in cell)
            flag = (
                f" or leave them out with --missing '{name}={left_out:.80}'" if left_out and len(left_out) <= 80 else ""
            )
            raise BadData(
                f"column '{found.name}' is not numeric: {len(odd)} cells such as {first_n(map(repr, odd.unique()))}. "
                f"Correct or empty them{flag}{kinds}.{_about_percentages(odd)}"
            )
    found = profile(column.mask(values.isna(), ""))
    if not found.values:
        return None
    numbers = np.array(found.values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise BadData(f"column '{found.name}' has non-finite numbers. Leave these cells empty.")
    unit = answers.units.get(name) or found.unit
    if not unit:
        unit = (
            questions.ask(f"What is the unit of '{found.name}' ({found.shown()})?", f"--label-unit {name}=UNIT") or ""
        )
    low, high = answers.ranges.get(name, (float(numbers[0]), float(numbers[-1])))
    outside = int(((numbers < low) | (numbers > high)).sum())
    if outside:
        raise BadData(
            f"column '{found.name}': {outside} different numbers are outside --range {low:g}:{high:g}: {found.shown()}. "
            f"Correct the range, or leave these cells out with --missing {name}=CELL,CELL."
        )
    return (
        DeclaredTask(kind=NUMBER, column=found.name, unit=unit, range=(low, high), **_common(name, answers))
        if unit and not len(odd)
        else None
    )


def _classes(name: str, kind: str, found: ColumnProfile, answers: Answers, questions: Questions) -> DeclaredTask | None:
    if len(found.values) > MOST_CLASSES:
        raise BadData(
            f"column '{found.name}' has {len(found.values)} different values, too many for classes. Are they ids?"
        )
    if (kind == TWO_CLASSES) != (len(found.values) == 2):
        raise BadData(
            f"column '{found.name}' has {len(found.values)} different values ({found.shown()}), so it is not {kind}. Choose another kind."
        )
    if kind == CLASSES:
        return DeclaredTask(kind=CLASSES, column=found.name, classes=found.values, **_common(name, answers))
    positive = answers.positive.get(name)
    if positive is None:
        positive = questions.ask(
            f"Which value of '{found.name}' is the positive class?",
            f"--positive {name}={'|'.join(found.values)}",
            found.values,
        )
        if positive is None:
            return None
    if positive not in found.values:
        raise BadConfig(
            f"--positive {name}={positive}: '{found.name}' has the values {' and '.join(found.values)}. Give one of them."
        )
    negative = next(value for value in found.values if value != positive)
    return DeclaredTask(kind=TWO_CLASSES, column=found.name, classes=(negative, positive), **_common(name, answers))


def declare_multilabel(
    name: str, columns: tuple[str, ...], table: pd.DataFrame, ids: pd.Series, what: str, answers: Answers
) -> DeclaredTask:
    """Return a multilabel task; an empty cell in a partly filled row counts as unmeasured.

    Raises:
        BadData: There are fewer than two distinct columns, or a cell is not 0, 1 or empty.
    """
    if name in answers.missing:
        raise BadConfig(
            f"--missing {name}: empty cells of a multilabel task are not measured. Leave it out, and empty the other cells."
        )
    if len(set(columns)) < 2 or len(set(columns)) < len(columns):
        raise BadConfig(f"--multilabel {name}={','.join(columns)}: expected two different columns or more.")
    values = np.stack([flag_cells(table[column], ids, what) for column in columns], axis=1)
    empty = np.isnan(values)
    constant = [
        one for one, column in zip(columns, values.T, strict=True) if len(np.unique(column[~np.isnan(column)])) < 2
    ]
    if constant:
        raise BadData(
            f"{len(constant)} columns of --multilabel {name} have one value or none: {first_n(constant)}. Leave them out."
        )
    unmeasured = bool((empty.any(axis=1) & ~empty.all(axis=1)).any())
    return DeclaredTask(kind=LABELS, columns=columns, unmeasured=unmeasured, **_common(name, answers))


def doubts(name: str, task: DeclaredTask, table: pd.DataFrame) -> list[str]:
    """Return one sentence for each defect of the labels of a task, given its name."""
    said = []
    for column in task.columns or (task.column,):
        if column is None:
            continue
        cells = measured(table[column], task.missing)
        said += [f"{column}: {doubt}" for doubt in profile(cells).doubts()]
        if task.rules.answer == "class":
            counts = cells[cells != ""].value_counts()
            rare = [f"{value} ({count})" for value, count in counts.items() if count < FEW_NUMBERS]
            said += [f"{column}: fewer than {FEW_NUMBERS} recordings of {first_n(rare)}"] if rare else []
        elif task.rules.answer == "number" and (odd := sentinels(cells)):
            shown = [f"{cell} ({count})" for cell, count in odd.items()]
            said.append(
                f"{column}: {first_n(shown)} may mean not measured, and count as measurements; --missing {name}={','.join(odd)} "
                f"leaves these cells out, and --range {name}=LOW:HIGH refuses them"
            )
    return said


def _common(name: str, answers: Answers) -> dict:
    metric = answers.metrics.get(name)
    return {
        "average_over": answers.per.get(name, "recording"),
        "where": dict(answers.where.get(name, {})),
        "missing": answers.missing.get(name, ()),
        **({"metrics": (metric,)} if metric else {}),
    }
