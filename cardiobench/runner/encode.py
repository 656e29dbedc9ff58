"""Encode recordings or frames without embeddings, or assemble their vectors from stored ones."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadModel
from cardiobench.core.libraries import as_text
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media.types import Clip, Ecg, FrameSampling
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import Perturbation
from cardiobench.runner.context import RunContext
from cardiobench.runner.plan import DatasetPlan, TaskPlan
from cardiobench.runner.processes import processes_here, share

if TYPE_CHECKING:
    from cardiobench.embeddings.extract import EncodeJob, Failure, RecordingSource


@dataclass(frozen=True)
class EncodeInput:
    """Recordings or frames of a dataset to encode into one store.

    Attributes:
        model: Encoding model.
        source: Recordings, perturbed recordings or labelled frames.
        store: Store of the vectors.
        missing: Row indices of `source.frame` that are missing from the store.
        clean: Store of unperturbed recordings if vectors only need to be reordered; else None.
    """

    model: LoadedModel
    source: "RecordingSource"
    store: EmbeddingStore
    missing: np.ndarray
    clean: EmbeddingStore | None = None


class FrameInput(Protocol):
    """Labelled frames to encode into one store."""

    @property
    def store(self) -> EmbeddingStore:
        """Store of the vectors."""
        ...

    def encode_input(self) -> EncodeInput:
        """Return the frames that are missing from the store."""
        ...


class FrameTaskPlan(TaskPlan, Protocol):
    """Plan of labelled frames for a cell."""

    @property
    def fingerprints(self) -> Sequence[str]:
        """Fingerprint of the recording of each frame."""
        ...

    @property
    def plans(self) -> Mapping[str, FrameInput]:
        """Mapping from name to frames of one model."""
        ...

    def without(self, unreadable: Mapping[str, frozenset[str]]) -> Self:
        """Return the plan without frames that could not be encoded, given by model name."""
        ...


def dataset_inputs(
    model: LoadedModel,
    plans: Mapping[Perturbation, DatasetPlan] | Mapping[None, DatasetPlan],
    seed: int,
    clean: DatasetPlan | None = None,
) -> list[EncodeInput]:
    """Return the inputs of one dataset: unchanged or perturbed recordings.

    Args:
        model: Loaded model.
        plans: Mapping from perturbation (None for unchanged recordings) to plan.
        seed: Random seed of the perturbations.
        clean: Plan of unperturbed recordings.
    """
    inputs: list[EncodeInput] = []
    cached: CachedDataset | None = None
    for perturbation, plan in plans.items():
        if perturbation is None:
            inputs.append(EncodeInput(model, plan.dataset, plan.store, plan.to_encode))
            continue
        cached = cached or CachedDataset(plan.dataset)
        source = PerturbedDataset(cached, perturbation, seed, model.cut)
        reordered = clean.store if clean and perturbation.order and model.frame_wise else None
        inputs.append(EncodeInput(model, source, plan.store, plan.to_encode, reordered))
    return inputs


def encode_missing(
    model: LoadedModel,
    plans: Mapping[Perturbation, DatasetPlan] | Mapping[None, DatasetPlan],
    context: RunContext,
    clean: DatasetPlan | None = None,
) -> frozenset[str]:
    """Encode missing vectors of one dataset, distributed over the processes.

    A recording with several perturbations is decoded once. If a perturbation only reorders frames and the model encodes
    frames independently, stored vectors are reordered instead.

    Args:
        model: Model loaded on its device.
        plans: Mapping from perturbation (None for unchanged recordings) to plan.
        context: Run context, whose summary receives unreadable recordings.
        clean: Plan of unperturbed recordings.

    Returns:
        Ids of recordings that could not be encoded, equal on all processes.
    """
    if model.vectors:
        (plan,) = plans.values()
        if context.accelerator.is_main_process:
            rows = plan.dataset.frame[["id", "fingerprint"]].iloc[plan.to_encode]
            model.vectors.store(plan.dataset.spec.name, rows, plan.store)
        context.accelerator.wait_for_everyone()
        return model.vectors.lacking(plan.dataset.spec.name, list(plan.dataset.frame["id"].iloc[plan.indices]))
    inputs = dataset_inputs(model, plans, context.config.seed, clean)
    count = sum(perturbation is not None for perturbation in plans)
    note = f", {count} perturbations" if count else ""
    return encode_inputs(inputs, next(iter(plans.values())).dataset.spec.name, context, note)


def encode_inputs(inputs: Sequence[EncodeInput], dataset: str, context: RunContext, note: str = "") -> frozenset[str]:
    """Encode the missing vectors of inputs, distributed over the processes.

    Args:
        inputs: Inputs of one model on one dataset.
        dataset: Name of the dataset.
        context: Run context, whose summary receives failures.
        note: Note for the progress bar.

    Returns:
        Ids that could not be encoded, equal on all processes.
    """
    rank, processes = context.accelerator.process_index, context.accelerator.num_processes
    if processes == 1 and not any(len(one.missing) for one in inputs):
        return frozenset()

    from cardiobench.embeddings.extract import EncodeJob

    jobs = []
    # Distribute the main process's list, because a late process would see other missing vectors.
    shared = share([one.missing for one in inputs])
    for one, missing in zip(inputs, shared, strict=True):
        indices = missing[rank::processes]
        if one.clean is not None and isinstance(one.source, PerturbedDataset):
            indices = reorder(one.source, indices, one.clean, one.store, rank)
        media = one.source.spec.media if isinstance(one.source, OpenDataset) else ""
        jobs += [EncodeJob(one.source, int(index), one.store, media) for index in indices]
    jobs.sort(key=lambda job: job.number)
    return encode_jobs(inputs[0].model, jobs, dataset, context, note)


def encode_jobs(
    model: LoadedModel, jobs: "Sequence[EncodeJob]", dataset: str, context: RunContext, note: str = ""
) -> frozenset[str]:
    """Encode the jobs of this process.

    Args:
        model: Model loaded on its device.
        jobs: Jobs of this process.
        dataset: Name of the dataset.
        context: Run context, whose summary receives unreadable recordings.
        note: Note for the progress bar.

    Returns:
        Ids that could not be encoded, equal on all processes.

    Raises:
        BadModel: A user model is not deterministic.
    """
    from accelerate.utils import gather_object

    if model.custom:
        _check_repeatable(model, jobs, context)
    failed = encode_here(model, jobs, f"{dataset} with {model.name}{note}", context)
    failures = sorted({(failure.id, failure.reason) for failure in gather_object(failed)})
    context.summary.failures += [(model.name, dataset, name, reason) for name, reason in failures]
    return frozenset(name for name, _ in failures)


def encode_here(model: LoadedModel, jobs: "Sequence[EncodeJob]", title: str, context: RunContext) -> "list[Failure]":
    """Encode recordings on this process without the others, and return those that failed.

    Args:
        model: Model loaded on its device.
        jobs: Recordings to encode.
        title: Title of the progress bar.
        context: Run context.
    """
    from cardiobench.embeddings.extract import default_workers, extract

    accelerator, config = context.accelerator, context.config
    with context.console.progress(title, len(jobs)) as advance:
        return extract(
            model,
            jobs,
            device=accelerator.device,
            rank=accelerator.process_index,
            batch_size=config.batch_size,
            workers=default_workers(processes_here(accelerator)) if config.workers is None else config.workers,
            recording_timeout=config.recording_timeout,
            advance=advance,
        )


def _check_repeatable(model: LoadedModel, jobs: "Sequence[EncodeJob]", context: RunContext) -> None:
    """Encode the first recordings twice on the main process; all processes stop if the vectors differ."""
    from cardiobench.embeddings.repeat import check_repeatable

    reason = ""
    if jobs and context.accelerator.is_main_process:
        try:
            check_repeatable(model, jobs[0].source, [job.number for job in jobs], context.accelerator.device)
        except BadModel as error:
            reason = str(error)
    if context.accelerator.num_processes > 1:
        [reason] = share([reason])
    if reason:
        raise BadModel(reason)


class CachedDataset:
    """Dataset that caches the last recording for its next perturbation."""

    def __init__(self, dataset: OpenDataset):
        self.dataset = dataset
        self.last: tuple[tuple[int, FrameSampling | None], Clip | Ecg] | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Table with one row per recording."""
        return self.dataset.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg:
        """Return the recording of a row, which must not be modified."""
        if self.last is None or self.last[0] != (number, sampling):
            self.last = (number, sampling), self.dataset.recording(number, sampling)
        return self.last[1]


@dataclass(frozen=True)
class PerturbedDataset:
    """Dataset with perturbed recordings.

    Attributes:
        dataset: Unperturbed dataset.
        perturbation: Perturbation to apply.
        seed: Random seed, combined with the recording id.
        cut: Function that cuts a recording into clips for the model; None for no cutting.
    """

    dataset: CachedDataset
    perturbation: Perturbation
    seed: int
    cut: Callable[[Clip], list[Clip]] | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Table with one row per recording."""
        return self.dataset.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg | list[Clip | Ecg]:
        """Return the perturbed recording of a row; frames are reordered within each clip for the model."""
        recording, generator = self.dataset.recording(number, sampling), self.generator(number)
        apply, severity = self.perturbation.apply, self.perturbation.severity
        if self.perturbation.order and self.cut and isinstance(recording, Clip):
            return [apply(clip, severity, generator) for clip in self.cut(recording)]
        return apply(recording, severity, generator)

    def generator(self, number: int) -> np.random.Generator:
        """Return the random generator for the perturbation of a row."""
        name = f"{self.frame['id'].iloc[number]} {self.seed}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


def reorder(
    perturbed: PerturbedDataset, indices: np.ndarray, clean: EmbeddingStore, store: EmbeddingStore, rank: int
) -> np.ndarray:
    """Store reordered frame vectors without encoding.

    Args:
        perturbed: Dataset with a perturbation that has an `order`.
        indices: Row indices in the dataset.
        clean: Store of frame vectors in their original order.
        store: Store of reordered vectors.
        rank: Rank of the process.

    Returns:
        Indices that still need encoding.
    """
    order, severity = perturbed.perturbation.order, perturbed.perturbation.severity
    rows = perturbed.frame.iloc[indices]
    absent = clean.missing(rows["id"], rows["fingerprint"])
    known = np.delete(indices, absent)
    if order is None or not len(known):
        return indices
    rows = perturbed.frame.iloc[known]
    embeddings = clean.load(rows["id"], rows["fingerprint"])
    vectors = [embeddings.parts(position) for position in range(len(rows))]
    store.append(
        list(rows["id"]),
        list(rows["fingerprint"]),
        [
            parts[order(len(parts), severity, perturbed.generator(index))]
            for parts, index in zip(vectors, known, strict=True)
        ],
        rank=rank,
        device=", ".join(embeddings.devices),
        libraries=as_text(embeddings.libraries),
    )
    left: np.ndarray = indices[absent]
    return left
