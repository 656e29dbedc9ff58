"""What a run has to do: which tasks, which recordings of them, and what is encoded already."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import MissingData
from cardiobench.core.registry import unknown_name
from cardiobench.core.source_digest import source_digest
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.embeddings.key import embedding_key
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import Perturbation


@dataclass(frozen=True)
class DatasetPlan:
    """One dataset for one model.

    Attributes:
        source: the dataset, opened.
        tasks: asked of it.
        lines: of `source.frame` that any of the tasks needs.
        store: where the model's embeddings of it are kept.
        to_encode: the lines that the store lacks.
    """

    source: OpenDataset
    tasks: tuple[Task, ...]
    lines: np.ndarray
    store: EmbeddingStore
    to_encode: np.ndarray


def resolve_tasks(names: Sequence[str]) -> tuple[Task, ...]:
    """Tasks of these names; a dataset's name stands for all its tasks; none at all stands for every task there is."""
    tasks: dict[str, Task] = {}
    for name in names or catalog.list_datasets():
        if "/" in name:
            tasks[name] = catalog.task(name)
        elif name in catalog.list_datasets():
            tasks |= {task.name: task for task in catalog.spec(name).tasks}
        else:
            raise unknown_name("task or dataset", name, [*catalog.list_tasks(), *catalog.list_datasets()])
    return tuple(tasks.values())


def open_datasets(tasks: Sequence[Task], config: RunConfig) -> tuple[dict[str, OpenDataset], dict[str, str]]:
    """The datasets of these tasks that are here, and for the others why not.

    Raises:
        MissingData: a task that was asked for by name has no data, or there is no such data folder.
    """
    if config.data_dir and not config.data_dir.exists():
        raise MissingData(f"--data-dir {config.data_dir} does not exist. Leave it out for bundled and generated data.")
    sources, absent = {}, {}
    for name in dict.fromkeys(task.dataset for task in tasks):
        try:
            sources[name] = open_dataset(name, config.data_dir, allow_missing=config.allow_missing)
        except MissingData as error:
            if config.tasks:
                raise
            absent[name] = str(error)
    return sources, absent


def first_patients(frame: pd.DataFrame, limit: int | None) -> pd.DataFrame:
    """The lines of the first `limit` patients of each split; all lines when there is no limit."""
    if limit is None:
        return frame
    kept = [list(dict.fromkeys(part["patient_id"]))[:limit] for _, part in frame.groupby("split", sort=False)]
    return frame[frame["patient_id"].isin({patient for patients in kept for patient in patients})]


def perturbed_key(key: Mapping[str, Any], perturbation: Perturbation, seed: int) -> dict[str, Any]:
    """Return the key of the embeddings of perturbed recordings: that of the recordings as they are, and the perturbation."""
    apply = perturbation.apply
    while isinstance(apply, partial):
        apply = apply.func
    code = source_digest(Path(inspect.getfile(apply)))
    return {**key, "change": perturbation.key, "change_code": code, "seed": seed}


def plan_dataset(
    model: LoadedModel,
    source: OpenDataset,
    tasks: Sequence[Task],
    config: RunConfig,
    change: Perturbation | None = None,
) -> DatasetPlan:
    """What a model still has to encode of a dataset for these tasks; of a disturbed one, the lines that are disturbed only."""
    parts = [first_patients(source.task_rows(task), config.limit) for task in tasks]
    wanted = [(part if change is None else change.rows(part)).index for part in parts]
    lines = np.unique(np.concatenate(wanted)) if wanted else np.array([], dtype=int)
    key = embedding_key(model, source)
    if change is not None:
        key = perturbed_key(key, change, config.seed)
    store = EmbeddingStore(config.cache_dir / "embeddings", model.name, source.spec.name, key)
    part = source.frame.loc[lines]
    gaps = store.missing(part["id"], part["fingerprint"])
    return DatasetPlan(source, tuple(tasks), lines, store, lines[gaps])


DATASET_COLUMNS = ("dataset", "version", "train", "validation", "test", "state", "where")
PLAN_COLUMNS = ("task", "recordings", "cached", "to encode", "embeddings")


def dataset_rows(sources: Mapping[str, OpenDataset]) -> list[tuple[str, ...]]:
    """Return the cells of `DATASET_COLUMNS`: which datasets are here, and how complete."""
    rows = []
    for name, source in sources.items():
        counts = source.frame["split"].value_counts()
        missing = source.coverage()
        notes = [f"{missing['missing_files']} files missing"] if missing["missing_files"] else []
        notes += [f"{missing['absent_rows']} rows of the release absent"] if missing["absent_rows"] else []
        notes += ["synthetic twin"] if source.table.twin else []
        notes += [f"{len(ids)} left out: {reason}" for reason, ids in source.table.excluded.items() if ids]
        numbers = (str(int(counts.get(split, 0))) for split in ("train", "validation", "test"))
        where = "generated" if source.spec.generated else str(source.raw)
        rows.append((name, source.spec.version, *numbers, "; ".join(notes) or "complete", where))
    return rows


def model_lines(model: LoadedModel) -> list[str]:
    """Return lines that tell the model, how it was loaded, its preprocessing and its warnings."""
    preprocessing = ", ".join(f"{key}={value}" for key, value in model.preprocessing.items())
    return [
        f"\nmodel {model.name} @ {model.revision}\n  loaded by: {model.loaded_by}",
        f"  preprocessing: {preprocessing}",
        *(f"  warning: {warning}" for warning in model.warnings),
    ]


def plan_rows(plans: Sequence[DatasetPlan]) -> list[tuple[str, ...]]:
    """Return the cells of `PLAN_COLUMNS`: what is left to encode for each task."""
    return [
        (
            task.name,
            str(len(plan.source.task_rows(task))),
            str(len(plan.lines) - len(plan.to_encode)),
            str(len(plan.to_encode)),
            str(plan.store.folder),
        )
        for plan in plans
        for task in plan.tasks
    ]
