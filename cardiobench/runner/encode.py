"""Encode the recordings or frames that have no embedding yet, or assemble them from stored embeddings."""

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
from cardiobench.embeddings.elsewhere import GivenEmbeddings, store_given
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import Perturbation
from cardiobench.runner.context import RunContext
from cardiobench.runner.plan import DatasetPlan, TaskPlan
from cardiobench.runner.processes import processes_here, share

if TYPE_CHECKING:
    from cardiobench.embeddings.extract import EncodeJob, RecordingSource


@dataclass(frozen=True)
class EncodeInput:
    """Recordings or single frames of a dataset that a model encodes into one store.

    Attributes:
        model: Model that encodes them.
        source: Recordings, perturbed recordings or labelled frames.
        store: Store of their vectors.
        missing: Rows of `source.frame` that the store lacks.
        clean: Store of the unperturbed recordings where their vectors only have to be put in another order; else None.
    """

    model: LoadedModel
    source: "RecordingSource"
    store: EmbeddingStore
    missing: np.ndarray
    clean: EmbeddingStore | None = None


class FrameInput(Protocol):
    """Labelled frames that a model encodes into one store."""

    @property
    def store(self) -> EmbeddingStore:
        """The store of their vectors."""
        ...

    def encode_input(self) -> EncodeInput:
        """Return the frames that the store lacks now."""
        ...


class FrameTaskPlan(TaskPlan, Protocol):
    """Location of the labelled frames of a cell."""

    @property
    def plans(self) -> Mapping[str, FrameInput]:
        """Name -> frames that one model encodes."""
        ...

    def without(self, unreadable: Mapping[str, frozenset[str]]) -> Self:
        """Return the plan without frames that could not be encoded, given their ids by the name of the model."""
        ...


def dataset_inputs(
    model: LoadedModel,
    plans: Mapping[Perturbation, DatasetPlan] | Mapping[None, DatasetPlan],
    seed: int,
    clean: DatasetPlan | None = None,
) -> list[EncodeInput]:
    """Return the inputs a model encodes for one dataset: unchanged recordings, or perturbed ones.

    Args:
        model: Loaded model.
        plans: Perturbation -> plan under it; None for the recordings as they are.
        seed: Seed of the perturbations.
        clean: Plan of the unperturbed recordings.
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
    """Encode the vectors missing in the stores of one dataset, a stride on each process.

    A recording that is perturbed in several ways is decoded once for all of them. Where a perturbation only changes the
    order of the frames and the model encodes each frame by itself, the stored vectors are put in that order instead.

    Args:
        model: Loaded, on the device.
        plans: Perturbation -> what is needed under it; None for the recordings as they are.
        context: Run context; its summary receives the unreadable recordings.
        clean: Location of the vectors of the unperturbed recordings.

    Returns:
        Ids of the recordings that could not be encoded, the same on every process.
    """
    if isinstance(model.encoder, GivenEmbeddings):
        return _store_given(model.encoder, next(iter(plans.values())), context)
    inputs = dataset_inputs(model, plans, context.config.seed, clean)
    count = sum(perturbation is not None for perturbation in plans)
    note = f", {count} perturbations" if count else ""
    return encode_inputs(inputs, next(iter(plans.values())).dataset.spec.name, context, note)


def _store_given(encoder: GivenEmbeddings, plan: DatasetPlan, context: RunContext) -> frozenset[str]:
    """Store the embeddings from elsewhere that the store of a plan lacks; returns the ids that have none."""
    frame, table = plan.dataset.frame, encoder.table.of(plan.dataset.spec.name)
    if context.accelerator.is_main_process:
        store_given(table, frame[["id", "fingerprint"]].iloc[plan.to_encode], plan.store)
    context.accelerator.wait_for_everyone()
    needed = frame["id"].iloc[plan.indices]
    return frozenset(needed[table.places.get_indexer(needed) < 0])


def encode_inputs(inputs: Sequence[EncodeInput], dataset: str, context: RunContext, note: str = "") -> frozenset[str]:
    """Encode the vectors missing in the stores of these inputs, a stride on each process.

    Args:
        inputs: Inputs of one model on one dataset.
        dataset: Name of the dataset.
        context: Run context; its summary gets what could not be encoded.
        note: Remark for the progress bar.

    Returns:
        Ids of what could not be encoded, the same on every process.
    """
    rank, processes = context.accelerator.process_index, context.accelerator.num_processes
    if processes == 1 and not any(len(one.missing) for one in inputs):
        return frozenset()

    from cardiobench.embeddings.extract import EncodeJob

    jobs = []
    # All processes share out the main one's list: what a late one finds stored already would shift its stride.
    shared = share([one.missing for one in inputs])
    for one, missing in zip(inputs, shared, strict=True):
        indices = missing[rank::processes]
        if one.clean is not None and isinstance(one.source, PerturbedDataset):
            indices = reorder(one.source, indices, one.clean, one.store, rank)
        jobs += [EncodeJob(one.source, int(index), one.store) for index in indices]
    jobs.sort(key=lambda job: job.number)
    return encode_jobs(inputs[0].model, jobs, dataset, context, note)


def encode_jobs(
    model: LoadedModel, jobs: "Sequence[EncodeJob]", dataset: str, context: RunContext, note: str = ""
) -> frozenset[str]:
    """Encode the jobs of this process.

    Args:
        model: Loaded, on the device.
        jobs: Jobs of this process.
        dataset: Name of the dataset.
        context: Run context; its summary receives the unreadable recordings.
        note: Remark shown at the progress bar.

    Returns:
        Ids of what could not be encoded, the same on every process.

    Raises:
        BadModel: A model of the user's own does not give the same vectors twice.
    """
    from accelerate.utils import gather_object

    from cardiobench.embeddings.extract import default_workers, extract

    accelerator, config = context.accelerator, context.config
    if model.custom:
        _check_repeatable(model, jobs, context)
    with context.console.progress(f"{dataset} with {model.name}{note}", len(jobs)) as advance:
        failed = extract(
            model,
            jobs,
            device=accelerator.device,
            rank=accelerator.process_index,
            batch_size=config.batch_size,
            workers=default_workers(processes_here(accelerator)) if config.workers is None else config.workers,
            recording_timeout=config.recording_timeout,
            advance=advance,
        )
    failures = sorted({(failure.id, failure.reason) for failure in gather_object(failed)})
    context.summary.failures += [(model.name, dataset, name, reason) for name, reason in failures]
    return frozenset(name for name, _ in failures)


def _check_repeatable(model: LoadedModel, jobs: "Sequence[EncodeJob]", context: RunContext) -> None:
    """Encode the first recordings twice on the main process; all processes stop where their vectors differ."""
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
    """A dataset that keeps the recording it read last, for the next perturbation of it."""

    def __init__(self, dataset: OpenDataset):
        self.dataset = dataset
        self.last: tuple[tuple[int, FrameSampling | None], Clip | Ecg] | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """One row per recording."""
        return self.dataset.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg:
        """Return the recording of a row; not to be written to."""
        if self.last is None or self.last[0] != (number, sampling):
            self.last = (number, sampling), self.dataset.recording(number, sampling)
        return self.last[1]


@dataclass(frozen=True)
class PerturbedDataset:
    """A dataset of which every recording is perturbed before a model sees it.

    Attributes:
        dataset: The recordings as they are.
        perturbation: Applied to each.
        seed: Seed of the draws, combined with the recording's id.
        cut: Function that cuts a recording into the clips seen by the model; None without cutting.
    """

    dataset: CachedDataset
    perturbation: Perturbation
    seed: int
    cut: Callable[[Clip], list[Clip]] | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """One row per recording."""
        return self.dataset.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg | list[Clip | Ecg]:
        """Return the perturbed recording of a row; another order of frames for each of the clips that the model sees."""
        recording, generator = self.dataset.recording(number, sampling), self.generator(number)
        apply, severity = self.perturbation.apply, self.perturbation.severity
        if self.perturbation.order and self.cut and isinstance(recording, Clip):
            return [apply(clip, severity, generator) for clip in self.cut(recording)]
        return apply(recording, severity, generator)

    def generator(self, number: int) -> np.random.Generator:
        """Return the random generator of a row's perturbation."""
        name = f"{self.frame['id'].iloc[number]} {self.seed}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


def reorder(
    perturbed: PerturbedDataset, indices: np.ndarray, clean: EmbeddingStore, store: EmbeddingStore, rank: int
) -> np.ndarray:
    """Store the vectors of recordings whose frames are shown in another order, without encoding them.

    Args:
        perturbed: The dataset under a perturbation with an `order`.
        indices: Row indices in the dataset.
        clean: Store of the frames' vectors in their own order.
        store: Store of those in the new order.
        rank: Rank of this process.

    Returns:
        Those of the indices that still have to be encoded.
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
    return indices[absent]
