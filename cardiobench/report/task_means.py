"""Tabulate means over the tasks of a suite with floors and published means."""

import math
from collections.abc import Sequence

from cardiobench.core.config import RESAMPLES
from cardiobench.core.errors import CardioBenchError
from cardiobench.report.contests import predictions_of
from cardiobench.results import formatting as tables
from cardiobench.results.collect import ResultEntry
from cardiobench.scoring.means import TaskMean, mean_over_tasks, task_means

COLUMNS = ("mean", "model", "value, %", "95 % CI", "floor, %", "tasks", "patients", "published, %", "note")


def mean_rows(entries: Sequence[ResultEntry], *, resamples: int = RESAMPLES, seed: int = 0) -> list[tuple[str, ...]]:
    """Return rows with every mean of every model that has a result for at least one of its tasks."""
    rows = []
    for mean in task_means():
        by_model: dict[tuple[str, str, bool], dict[str, ResultEntry]] = {}
        for entry in entries:
            result = entry.result
            if result.task in mean.tasks and (result.protocol, result.variant) == (mean.protocol, mean.variant):
                key = (result.model["name"], str(result.model.get("preprocessing")), result.generated)
                by_model.setdefault(key, {})[result.task] = entry
        rows += [_row(mean, model, generated, of_task, resamples, seed) for (model, _, generated), of_task in sorted(by_model.items(), key=lambda item: item[0])]  # fmt: skip
    return rows


def _row(
    mean: TaskMean, model: str, generated: bool, of_task: dict[str, ResultEntry], resamples: int, seed: int
) -> tuple[str, ...]:
    known, notes = [], ["generated recordings"] if generated else []
    for task, entry in sorted(of_task.items()):
        try:
            known.append(predictions_of(entry))
        except CardioBenchError as error:
            notes.append(f"without {task}: {error}")
    score, defined = mean_over_tasks(known, mean.metric, resamples, seed)
    interval = "none" if math.isnan(score.low) else f"{_percent(score.low)} – {_percent(score.high)}"
    published = "–" if mean.published is None else f"{100 * mean.published:.1f} ({mean.published_by}; {mean.note})"
    return (
        mean.name,
        model,
        _percent(score.value),
        interval,
        _percent(mean.floor),
        f"{defined} of {len(mean.tasks)}",
        str(score.n_patients),
        published,
        "; ".join(notes) or "–",
    )


def _percent(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{100 * value:.2f}"


def markdown(entries: Sequence[ResultEntry]) -> str:
    """Return the table with a heading; empty if no model has a result for a task of any mean."""
    rows = mean_rows(entries)
    if not rows:
        return ""
    head = "## Means over tasks\n\nMeans include tasks with both classes in the test set. Bootstrap resamples of patients are shared by all tasks.\n\n"
    return head + tables.markdown_table(COLUMNS, rows)
