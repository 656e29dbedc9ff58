"""Select images by the model's own view predictions, as in use without view labels."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.data.spec import Task
from cardiobench.protocols.base import ProtocolOutput, TaskData

if TYPE_CHECKING:
    from cardiobench.runner.cells.recordings import Cell

COMPONENT = "own views"
VERSION = 1


def check(config: RunConfig, value: str) -> None:
    """Refuse a value.

    Raises:
        BadConfig: A value was given.
    """
    if value:
        raise BadConfig(f"--condition own_views takes no value. Leave out '{value}'.")


def applies(task: Task, value: str) -> bool:
    """Return whether only some views show the label of the task."""
    return bool(task.relevant_rows) and not value


def apply(cell: "Cell", data: TaskData, output: ProtocolOutput, value: str) -> ProtocolOutput:
    """Keep predictions for images whose predicted view shows the label; keep all images of a study without any.

    The same protocol and training patients predict the views.

    Args:
        cell: Cell of the task.
        data: Task data.
        output: Predictions of the task.
        value: Unused; the condition has no value.

    Raises:
        NotApplicable: The protocol cannot predict views.
    """
    ((target, preferred),) = cell.task.relevant_rows.items()
    views = _view_task(cell, target)
    cell.protocol.check(views)
    variants = cell.protocol.variants(views)
    variant = cell.variant if cell.variant in variants else variants[0]
    answers = cell.protocol.without_refits().predict(replace(data, task=views, work=None), cell.model.encoder, variant)
    called = pd.Series(views.rules.unit_answers(answers.values, views)["y_pred"].to_numpy(), index=answers.indices)
    wanted = called.reindex(output.indices).isin(preferred).to_numpy()
    units = pd.Series(data.rows[cell.task.unit_column].to_numpy()[output.indices])
    kept = wanted | ~pd.Series(wanted).groupby(units).transform("any").to_numpy()
    facts = {
        "views": f"own answers: {', '.join(preferred)}",
        "images": len(kept),
        "images_of_these_views": int(wanted.sum()),
    }
    return replace(
        output,
        indices=output.indices[kept],
        values=output.values[kept],
        refits=tuple(values[kept] for values in output.refits),
        refit_cuts=(),
        interval_refits=tuple(values[kept] for values in output.interval_refits),
        repeats=tuple(values[kept] for values in output.repeats),
        validation=None,  # Views of validation recordings are not predicted.
        inner=None,
        details={**output.details, **facts},
    )


def _view_task(cell: "Cell", target: str) -> Task:
    for task in cell.dataset.spec.tasks:
        if task.target == target:
            return task
    raise NotApplicable(f"{cell.task.dataset} has no task with target {target}")
