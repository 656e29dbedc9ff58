"""Labels as table cells and as arrays: numbers, class codes, or the classes of a recording."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from cardiobench.tasks.task import LABEL_SEPARATOR, UNMEASURED, Task


def label_set(present: Collection[str], classes: Sequence[str], unmeasured: Collection[str] = ()) -> str:
    """Return the cell of a recording with several labels, such as `MI;?LMI;STTC`.

    Args:
        present: Classes that the recording has.
        classes: Classes of the task; the cell keeps their order.
        unmeasured: Classes that were not measured, marked by "?"; all other classes are absent.

    Raises:
        ValueError: A name is not a class, or is both present and unmeasured.
    """
    present, unmeasured = set(present), set(unmeasured)
    if odd := ((present | unmeasured) - set(classes)) | (present & unmeasured):
        raise ValueError(
            f"{sorted(odd)} are not classes, or are both present and unmeasured; classes: {', '.join(classes)}"
        )
    names = (UNMEASURED + name if name in unmeasured else name for name in classes if name in present | unmeasured)
    return LABEL_SEPARATOR.join(names)


def split_labels(cell: str) -> tuple[list[str], list[str]]:
    """Return the present and the unmeasured classes of a cell that `label_set` wrote."""
    names = [name for name in cell.split(LABEL_SEPARATOR) if name]
    present = [name for name in names if not name.startswith(UNMEASURED)]
    return present, [name.removeprefix(UNMEASURED) for name in names if name.startswith(UNMEASURED)]


def unmeasured_column(task: Task) -> str:
    """Return the column of a built dataset that holds the unmeasured classes of a partially labelled task."""
    return f"{task.target}_unmeasured"


def label_names(cells: Iterable[str]) -> set[str]:
    """Return all names that some cells hold, "?" included."""
    return {name for cell in set(cells) for name in cell.split(LABEL_SEPARATOR) if name}


def allowed_names(task: Task) -> set[str]:
    """Return the names that the cells of a task with classes may hold."""
    unmeasured = {UNMEASURED + name for name in task.classes} if task.partially_labelled else set()
    return {*task.classes, *unmeasured}


def strange_labels(cells: Iterable[object], task: Task) -> list[str]:
    """Return the names in some cells that are not classes of a task, sorted."""
    return task.rules.strange_labels(cells, task)


def label_values(cells: pd.Series, task: Task) -> npt.NDArray:
    """Return labels as an array.

    Args:
        cells: Validated labels of a table.
        task: Task of the labels.

    Returns:
        Numbers of a regression, or scores of a dense task's units, (n,) float64; class codes in the task's class order
        (n,) int64; for a multilabel task (n, K) float64 with 1 for present, 0 for absent, and NaN for unmeasured classes.
    """
    return task.rules.label_values(cells, task)


def label_cells(probabilities: np.ndarray, classes: Sequence[str]) -> npt.NDArray[np.object_]:
    """Return the cells of predicted probabilities (n, K): the classes of at least 0.5."""
    return np.array(
        [LABEL_SEPARATOR.join(name for name, p in zip(classes, row, strict=True) if p >= 0.5) for row in probabilities],
        dtype=object,
    )


def multi_hot(cells: pd.Series, classes: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the classes of cells that `label_set` wrote, (n, K): 1 where present, 0 where absent, NaN where unmeasured."""
    codes, texts = pd.factorize(cells)  # There are few distinct combinations, however many rows there are.
    table = np.zeros((len(texts), len(classes)))
    place = {name: number for number, name in enumerate(classes)}
    for row, text in zip(table, texts, strict=True):
        present, unmeasured = split_labels(text)
        row[[place[name] for name in present]] = 1
        row[[place[name] for name in unmeasured]] = np.nan
    return table[codes]
