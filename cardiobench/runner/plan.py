"""Plan a run: tasks, recordings and existing vectors."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import MissingData, first_n
from cardiobench.core.registry import look_up
from cardiobench.core.versions import component_version, is_own
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.embeddings.key import embedding_key
from cardiobench.embeddings.recognize import recognize
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import Perturbation
from cardiobench.protocols.profile import find_profile
from cardiobench.results.formatting import EARLIER
from cardiobench.runner.content_reader import ContentReader
from cardiobench.runner.context import RunContext
from cardiobench.runner.generation import current_plan
from cardiobench.runner.pretraining import UNSTATED
from cardiobench.runner.references import first_patients


class TaskPlan(Protocol):
    """Location of a cell's inputs: embeddings of recordings or tokens of labelled frames."""

    @property
    def dataset(self) -> OpenDataset:
        """Dataset of the task."""

    @property
    def store(self) -> EmbeddingStore:
        """Store of the model's embeddings or tokens."""

    def inputs(self) -> dict[str, Any]:
        """Return the keys of all stores used, for the result key."""


@dataclass(frozen=True)
class DatasetPlan:
    """Plan of one dataset for one model.

    Attributes:
        dataset: Opened dataset.
        tasks: Selected tasks of the dataset.
        indices: Row indices of `dataset.frame` needed by any task.
        store: Embedding store of the model.
        to_encode: Subset of `indices` that is missing from the store.
        moved: Ids of recordings whose files have changed, but not their content.
        replaced: Ids of recordings whose content has changed since they were encoded.
    """

    dataset: OpenDataset
    tasks: tuple[Task, ...]
    indices: np.ndarray
    store: EmbeddingStore
    to_encode: np.ndarray
    moved: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def source(self) -> OpenDataset:
        """Recordings, with the fingerprints under which they are stored."""
        return self.dataset

    @property
    def complete(self) -> bool:
        """Whether all recordings are encoded."""
        return not len(self.to_encode)

    def current(self) -> Self:
        """Return the plan without recordings that were stored since it was made."""
        frame = self.dataset.frame[["id", "fingerprint"]].iloc[self.to_encode]
        return replace(self, to_encode=self.to_encode[self.store.missing(frame["id"], frame["fingerprint"])])

    def inputs(self) -> dict[str, Any]:
        """Return the keys of the embeddings, for the result key."""
        return {"embeddings": self.store.key}


@dataclass(frozen=True)
class AbsentPlan:
    """Tasks of a dataset that is not here: the paths of their results are known, their inputs are not.

    Attributes:
        tasks: Selected tasks of the dataset.
        reason: Why the data is missing.
    """

    tasks: tuple[Task, ...]
    reason: str

    @property
    def dataset(self) -> OpenDataset:
        """Raise `MissingData`, because there is no dataset."""
        raise MissingData(self.reason)

    @property
    def store(self) -> EmbeddingStore:
        """Raise `MissingData`, because there are no embeddings."""
        raise MissingData(self.reason)

    def inputs(self) -> dict[str, Any]:
        """Raise `MissingData`, because there are no embeddings."""
        raise MissingData(self.reason)


def resolve_tasks(names: Sequence[str], profile: str = "default", *, forms: Collection[str] = ()) -> tuple[Task, ...]:
    """Resolve task names; a dataset name selects all of its tasks, an empty list selects all tasks.

    A task over several datasets selects its members, whose predictions are combined at the end.

    A profile may replace the tasks of a dataset. Explicitly named tasks are kept, with the profile's subgroups if it
    defines some.

    A dataset name also selects single-frame tasks whose form of answer is in `forms`.

    Raises:
        UnknownName: Some names are unknown; the message has all of them.
    """
    chosen = find_profile(profile)

    def find(name: str) -> Sequence[Task]:
        if "/" in name:
            task = catalog.task(name)
            return catalog.members(task) if catalog.spans_datasets(task) else (task,)
        if name in catalog.list_datasets():
            spec = catalog.spec(name)
            return [*chosen.tasks(spec), *(task for task in spec.dense_tasks if task.rules.answer in forms)]
        raise catalog.unknown("task or dataset", name, [*catalog.list_tasks(), *catalog.list_datasets()])

    found = look_up(names or catalog.list_datasets(), find)
    tasks = {task.name: task for some in found for task in some}
    return tuple(chosen.task(task) for task in tasks.values())


def open_datasets(
    tasks: Sequence[Task], config: RunConfig, *, need_media: bool = True
) -> tuple[dict[str, OpenDataset], dict[str, str]]:
    """Open the datasets of tasks.

    Args:
        tasks: Tasks of the run.
        config: Settings of the run.
        need_media: Whether recordings are needed in addition to tables.

    Returns:
        Mapping from name to dataset, and mapping from name to reason for missing datasets.

    Raises:
        MissingData: A named task has no data, or the data folder does not exist.
    """
    if config.data_dir and not config.data_dir.exists():
        raise MissingData(
            f"--data-dir {config.data_dir} does not exist. Remove the flag to use bundled and generated data."
        )
    datasets: dict[str, OpenDataset] = {}
    absent: dict[str, str] = {}
    for name in dict.fromkeys(task.dataset for task in tasks):
        try:
            dataset = open_dataset(
                name,
                config.data_dir,
                allow_missing=config.allow_missing,
                verify=config.verify,
                drop_duplicates=config.drop_duplicates,
                published=bool(config.tasks) and not config.suite,
                need_media=need_media,
            )
            dataset = dataset if need_media else dataset.without_recordings()
            datasets[name] = dataset.with_masked_overlays() if config.overlays == "mask" else dataset
        except MissingData as error:
            if config.tasks and not config.suite:
                raise
            absent[name] = str(error)
    return datasets, absent


def real_or_quick(
    datasets: Mapping[str, OpenDataset], modalities: Collection[str], config: RunConfig
) -> tuple[dict[str, OpenDataset], list[str]]:
    """Separate real and generated recordings.

    Datasets named by tasks or the suite are used. Otherwise, a run uses all local real datasets, the twins prepared in
    the working directory, and phantoms only for modalities without either.

    Args:
        datasets: Available datasets.
        modalities: Modalities of the models.
        config: Run settings.

    Returns:
        Selected datasets, and one line per modality replaced by phantoms.
    """
    if config.tasks:
        return dict(datasets), []
    chosen: dict[str, OpenDataset] = {}
    lines = []
    for modality in sorted(modalities):
        members = {name: dataset for name, dataset in datasets.items() if dataset.spec.modality == modality}
        real = {
            name: dataset for name, dataset in members.items() if not dataset.generated or _is_prepared_here(dataset)
        }
        phantoms = {name: dataset for name, dataset in members.items() if dataset.spec.generated}
        if not real:
            names = ", ".join(phantoms)
            lines.append(f"no real {modality} data here; running the quick suite ({names}) on generated data instead")
        chosen |= real or phantoms
    return chosen, lines


def _is_prepared_here(dataset: OpenDataset) -> bool:
    """Return whether a dataset was prepared in the working directory, where its Hub name is loaded from."""
    return dataset.raw == Path.cwd() / "cardiobench" / dataset.spec.name


def perturbed_key(key: Mapping[str, Any], perturbation: Perturbation, seed: int) -> dict[str, Any]:
    """Return the embedding key of perturbed recordings from that of unchanged ones and the perturbation."""
    apply = perturbation.apply
    code = {} if is_own(apply) else {"change_code": component_version(apply)}
    return {**key, "change": perturbation.key, **code, "seed": seed}


def plan_dataset(
    model: LoadedModel,
    dataset: OpenDataset,
    tasks: Sequence[Task],
    config: RunConfig,
    perturbation: Perturbation | None = None,
    generation: int = 0,
    reader: ContentReader | None = None,
) -> DatasetPlan:
    """Return the recordings that a model must encode for tasks; with a perturbation, only test rows.

    Args:
        model: Loaded model.
        dataset: Opened dataset.
        tasks: Tasks of the dataset.
        config: Settings of the run.
        perturbation: Perturbation of the recordings.
        generation: Number of earlier stores that are no longer used.
        reader: Reader of recordings whose files have changed; None reads them without a progress bar.
    """
    rows = [first_patients(dataset.task_rows(task), config.limit) for task in tasks if not task.dense]
    wanted = [(part if perturbation is None else perturbation.rows(part)).index for part in rows]
    needed = np.zeros(len(dataset.frame), dtype=bool)
    for part in wanted:
        needed[part] = True
    indices = np.flatnonzero(needed)
    key = embedding_key(model, dataset)
    if perturbation is not None:
        key = perturbed_key(key, perturbation, config.seed)
    root, spec = config.cache_dir / "embeddings", dataset.spec
    store = EmbeddingStore(
        root, model.name, spec.name, key, generation=generation, media=spec.media, pooling=model.pooling
    )
    frame = dataset.frame.filter(["id", "fingerprint", "hint"]).iloc[indices]
    reader = reader or ContentReader(reread=config.verify)
    found = recognize(
        store, frame, lambda positions: reader.read(dataset, indices[positions]), by_content=config.verify
    )
    ids = frame["id"]
    return DatasetPlan(
        dataset.with_fingerprints(indices, found.fingerprints) if found.renamed else dataset,
        tuple(tasks),
        indices,
        store,
        indices[found.missing],
        tuple(ids.iloc[found.moved]),
        tuple(ids.iloc[found.replaced]),
    )


def _plan_current(model: LoadedModel, dataset: OpenDataset, tasks: Sequence[Task], context: RunContext) -> DatasetPlan:
    reader = ContentReader.of(context)

    def plan_of(generation: int) -> DatasetPlan:
        return plan_dataset(model, dataset, tasks, context.config, generation=generation, reader=reader)

    return current_plan(model, plan_of, context)


def plan_model(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Iterable[str],
    context: RunContext,
) -> dict[str, DatasetPlan]:
    """Plan and print all datasets of the model's modality.

    Returns:
        Mapping from dataset name to plan.
    """
    for line in model_lines(model):
        context.console.print(line)
    plans: dict[str, DatasetPlan] = {}
    for name, dataset in datasets.items():
        members = [task for task in tasks if task.dataset == name]
        if dataset.spec.modality in model.modalities:
            plans[name] = _plan_current(model, dataset, members, context)
            if model.vectors:
                data, partly = plans[name].dataset, context.config.allow_missing
                needed, listed = data.frame["id"].iloc[plans[name].indices], data.table.listed["id"]
                model.vectors.check_ids(name, list(needed), list(listed), partly=partly)
        elif len(context.config.models) == 1 and context.config.tasks:
            reason = f"the model takes {' and '.join(model.modalities)}, and {name} is {dataset.spec.modality}"
            context.summary.not_applicable += [
                (model.name, task.name, protocol, reason) for task in members for protocol in protocols
            ]
    context.console.table("plan", PLAN_COLUMNS, plan_rows(list(plans.values())))
    for line in changed_lines(plans, by_content=context.config.verify):
        context.console.print(line)
    context.console.remarks(
        f"{shard} was damaged and set aside; its recordings are encoded again"
        for plan in plans.values()
        for shard in plan.store.damaged
    )
    return plans


def changed_lines(plans: Mapping[str, DatasetPlan], *, by_content: bool) -> list[str]:
    """Return lines about recordings whose files have changed since they were encoded.

    Args:
        plans: Mapping from dataset name to plan.
        by_content: Whether all recordings were compared by content, so that those with equal content are not listed.
    """
    lines = []
    for name, plan in plans.items():
        if plan.moved and not by_content:
            lines.append(f"{name}: the files of {len(plan.moved)} recordings have changed, but not their content")
        if plan.replaced:
            lines.append(
                f"! {name}: {len(plan.replaced)} recordings were replaced since they were encoded and are encoded again: "
                f"{first_n(plan.replaced)}"
            )
    return lines


DATASET_COLUMNS = ("dataset", "version", "train", "validation", "test", "state", "folder")
PLAN_COLUMNS = ("task", "recordings", "cached", "to encode", "embeddings")


def dataset_rows(datasets: Mapping[str, OpenDataset]) -> list[tuple[str, ...]]:
    """Return rows of `DATASET_COLUMNS` with local datasets and their completeness."""
    rows = []
    for name, dataset in datasets.items():
        counts = dataset.frame["split"].value_counts()
        coverage = dataset.coverage()
        notes = [f"{coverage['missing_files']} files missing"] if coverage["missing_files"] else []
        notes += [f"{coverage['absent_rows']} rows of the release absent"] if coverage["absent_rows"] else []
        notes += ["synthetic twin"] if dataset.table.twin else []
        notes += [f"{len(ids)} left out: {reason}" for reason, ids in dataset.table.excluded.items() if ids]
        numbers = (str(int(counts.get(split, 0))) for split in ("train", "validation", "test"))
        folder = "generated" if dataset.spec.generated else str(dataset.raw or "no recordings")
        rows.append((name, dataset.spec.version, *numbers, "; ".join(notes) or "complete", folder))
    return rows


def model_lines(model: LoadedModel) -> list[str]:
    """Return lines about a model, its loader, preprocessing, warnings, and a missing statement of what it saw."""
    preprocessing = ", ".join(f"{key}={value}" for key, value in model.preprocessing.items())
    unstated = not (model.card or model.seen or model.vectors)
    return [
        f"\nmodel {model.name} @ {model.revision}\n  loaded by: {model.loaded_by}",
        f"  preprocessing: {preprocessing or 'not stated'}",
        *(f"  warning: {warning}" for warning in model.warnings),
        *([f"  pretraining data: {UNSTATED}"] if unstated else []),
    ]


def _cached(number: int) -> str:
    return f"{number}, {EARLIER}" if number else "0"


def plan_rows(plans: Sequence[DatasetPlan]) -> list[tuple[str, ...]]:
    """Return rows of `PLAN_COLUMNS` with the number of recordings to encode per task."""
    return [
        (
            task.name,
            str(len(plan.dataset.task_rows(task))),
            _cached(len(plan.indices) - len(plan.to_encode)),
            str(len(plan.to_encode)),
            str(plan.store.folder),
        )
        for plan in plans
        for task in plan.tasks
    ]
