"""Encoding loop: recordings are decoded by workers, encoded in batches and stored, in any number of processes."""

import ctypes
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from multiprocessing.sharedctypes import RawArray
from typing import NamedTuple, Protocol, TypeVar

import joblib
import pandas as pd
import torch

from cardiobench.core.errors import BadMedia
from cardiobench.data.hints import UNKNOWN
from cardiobench.data.media.checks import CHECKS, remarks_on
from cardiobench.data.media.content import DIGEST_BYTES
from cardiobench.data.media.types import Clip, Ecg, FrameSampling
from cardiobench.embeddings.cost import CostMeter
from cardiobench.embeddings.decode import Decoded, decode
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel, sampling_rate
from cardiobench.models.contract import encode, join_parts, transform
from cardiobench.models.device import name_of
from cardiobench.models.safe_folder import without_tokens
from cardiobench.models.signal import at_rate

Item = TypeVar("Item")

SHARD = 64  # Recordings per shard; an interruption loses at most one shard.


@dataclass(frozen=True)
class Failure:
    """A recording that could not be read or encoded, with the reason."""

    id: str
    reason: str


class RecordingSource(Protocol):
    """Interface of a dataset for encoding."""

    @property
    def frame(self) -> pd.DataFrame:
        """Table with one row per recording: id, fingerprint, hint and source."""
        ...

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg | list[Clip | Ecg]:
        """Return the recording of a row, or its clips if the encoder splits it; raises `BadMedia` with its name."""
        ...


@dataclass(frozen=True)
class EncodeJob:
    """One recording to encode.

    Attributes:
        source: Dataset of the recording.
        number: Row number in `source.frame`.
        store: Store for the vectors.
        media: Kind of recording to check for remarks (`data.media.checks`); empty for no checks, as of perturbed recordings.
    """

    source: RecordingSource
    number: int
    store: EmbeddingStore
    media: str = ""

    @property
    def id(self) -> str:
        """Return the recording's id."""
        return self.source.frame["id"].iloc[self.number]

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the recording's file."""
        return self.source.frame["fingerprint"].iloc[self.number]

    @property
    def hint(self) -> int:
        """The hint of the recording (`data.hints`)."""
        frame = self.source.frame
        return int(frame["hint"].iloc[self.number]) if "hint" in frame else UNKNOWN


class _Encoded(NamedTuple):
    """An encoded recording that is not stored yet.

    Attributes:
        job: Recording.
        vectors: Vectors of its parts.
        parts: Number of its parts.
        seconds: Seconds from the parts to the vectors.
        decoding: Seconds to read the recording and prepare its parts.
        cpu_seconds: Seconds of CPU time of both, in all threads of this process and in the worker that decoded.
        remarks: Checks with a remark on the recording; None if it was not checked.
        content: Digest of the recording.
    """

    job: EncodeJob
    vectors: torch.Tensor
    parts: int
    seconds: float
    decoding: float
    cpu_seconds: float
    remarks: tuple[str, ...] | None
    content: str


def prepare(model: LoadedModel, source: RecordingSource, number: int) -> torch.Tensor:
    """Read the recording of a row of `source.frame` and return its parts (P, ...); raises `BadMedia` with its name."""
    return to_parts(model, source.recording(number, model.encoder.sampling))


def to_parts(model: LoadedModel, recording: Clip | Ecg | list[Clip | Ecg]) -> torch.Tensor:
    """Return the parts (P, ...) of a recording, with the change of recordings that belongs to the model."""
    encoder = model.encoder
    if model.change is not None:
        change = model.change
        recording = [change(clip) for clip in recording] if isinstance(recording, list) else change(recording)
    if isinstance(recording, Ecg):
        recording = at_rate(recording, sampling_rate(encoder))
    return transform(encoder, recording)


def run_code_of(model: LoadedModel) -> AbstractContextManager[None]:
    """Return a context for running a model, which hides the user's tokens if the model has its own code."""
    return without_tokens() if model.own_code else nullcontext()


class _Recordings(Sequence[Decoded]):
    """Recordings as parts for the encoder, or the reason why they have none."""

    def __init__(self, model: LoadedModel, jobs: Sequence[EncodeJob]):
        self.model, self.jobs = model, jobs
        # Written by the process that decodes a recording.
        self.seconds, self.cpu_seconds = RawArray("d", len(jobs)), RawArray("d", len(jobs))
        self._remarks = RawArray(ctypes.c_uint64, len(jobs))  # One bit for each check.
        self._contents = RawArray("c", len(jobs) * DIGEST_BYTES)

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, position: int) -> Decoded:  # type: ignore[override]  # no slices
        job, started, worked = self.jobs[position], time.perf_counter(), time.process_time()
        try:
            recording = job.source.recording(job.number, self.model.encoder.sampling)
            self._check(position, recording)
            self._note(position, recording)
            return to_parts(self.model, recording)
        except BadMedia as error:
            return str(error)
        except MemoryError:
            return "it does not fit into this machine's memory"
        finally:
            self.seconds[position] = time.perf_counter() - started
            self.cpu_seconds[position] = time.process_time() - worked

    def _check(self, position: int, recording: Clip | Ecg | list[Clip | Ecg]) -> None:
        if (media := self.jobs[position].media) and isinstance(recording, Clip | Ecg):
            found = {remark.check for remark in remarks_on(recording, media, thorough=False)}
            self._remarks[position] = sum(1 << place for place, check in enumerate(CHECKS) if check.name in found)

    def remarks(self, position: int) -> tuple[str, ...] | None:
        """Return the checks with a remark on a decoded recording; None if it was not checked."""
        if not self.jobs[position].media:
            return None
        return tuple(check.name for place, check in enumerate(CHECKS) if self._remarks[position] >> place & 1)

    def _note(self, position: int, recording: Clip | Ecg | list[Clip | Ecg]) -> None:
        first = recording[0] if isinstance(recording, list) else recording
        if isinstance(first, Clip | Ecg) and first.content:
            self._contents[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES] = bytes.fromhex(first.content)

    def content(self, position: int) -> str:
        """Return the digest of the content of a decoded recording; empty if unknown."""
        digest = self._contents[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES]
        return digest.hex() if any(digest) else ""


def _remarked(shard: Sequence[_Encoded]) -> dict[str, tuple[str, ...]] | None:
    """Return the checks with a remark by id; None if the recordings of a shard were not checked."""
    if any(one.remarks is None for one in shard):
        return None
    return {one.job.id: one.remarks for one in shard if one.remarks}


class PartEncoder:
    """Encodes parts in the model's precision, and halves the batch permanently if the device runs out of memory."""

    def __init__(self, model: LoadedModel, device: torch.device):
        self.encoder, self.device = model.encoder, device
        self.bf16 = model.precision == "bf16"
        self.limit: int | None = None  # Parts per batch, set once the device has run out of memory.

    @torch.inference_mode()
    def __call__(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, dim), or (N, T, dim) for an encoder that keeps tokens, and return them on the CPU."""
        limit = self.limit or len(parts)
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                vectors = [
                    encode(self.encoder, chunk.to(self.device, non_blocking=True)).float()
                    for chunk in parts.split(limit)
                ]
            return torch.cat(vectors).cpu()
        except torch.OutOfMemoryError:
            if limit == 1:
                raise
            self.limit = limit // 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return self(parts)


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items; the last one may be shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


class _Batch(NamedTuple):
    """Recordings that are encoded together.

    Attributes:
        decoded: Position of each recording in the jobs, and its parts or the reason why it has none.
        on_device: Parts of the recordings that have any, on the device of the network if it has room.
    """

    decoded: list[tuple[int, Decoded]]
    on_device: list[torch.Tensor]

    @property
    def readable(self) -> list[tuple[int, torch.Tensor]]:
        """Position and parts (P, ...) of each recording that has parts."""
        return [(position, parts) for position, parts in self.decoded if isinstance(parts, torch.Tensor)]


def batches_on_device(decoded: Iterable[Decoded], size: int, device: torch.device) -> Generator[_Batch, None, None]:
    """Yield batches of recordings with their parts on the device: one copy for each recording, from pinned memory."""
    for batch in batched(enumerate(decoded), size):
        made = _Batch(batch, [])
        # Concatenated on the device, so that the copy of each part overlaps with preparing the next.
        try:
            made.on_device.extend([parts.to(device, non_blocking=True) for _, parts in made.readable])
        except torch.OutOfMemoryError:  # `PartEncoder` copies them in smaller batches.
            made.on_device.extend(parts for _, parts in made.readable)
        yield made


def one_ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield items; a thread computes the next one while the caller uses the last."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


MOST_WORKERS = 16
"""Decoding workers that a ViT-B on one GPU can use: it encodes about 500 clips a second, and a core prepares about 30."""


def default_workers(processes: int) -> int:
    """Return the number of decoding workers per process on this machine; with more than two cores, one is left to the encoder.

    Cores are those that a scheduler or container allots to the process, not those of the machine. Windows cannot fork a
    process, and on macOS a fork of a process with threads may crash: there recordings are decoded in this process, 0 workers.
    """
    if sys.platform in ("win32", "darwin"):
        return 0
    cores = joblib.cpu_count() // processes
    return max(1, min(MOST_WORKERS, cores - 1 if cores > 2 else cores))


def extract(
    model: LoadedModel,
    jobs: Sequence[EncodeJob],
    *,
    device: torch.device,
    rank: int = 0,
    batch_size: int = 8,
    workers: int = 1,
    recording_timeout: float = 120.0,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Failure]:
    """Encode recordings and store their vectors.

    Args:
        model: Model, already on `device`.
        jobs: Recordings for this process; each store gets its vectors one shard at a time.
        device: Device of the network.
        rank: Rank of this process, used in shard names.
        batch_size: Recordings decoded together; their parts are encoded together.
        workers: Decoding processes; 0 decodes in this one.
        recording_timeout: Seconds that a worker may take to decode one recording.
        advance: Function called with the number of finished recordings.

    Returns:
        The recordings that failed; all others are stored.

    Raises:
        UnwritableOutput: The disk is full or read-only; vectors stored before are kept.
    """
    encode_parts, meter = PartEncoder(model, device), CostMeter(model, device)
    recordings = _Recordings(model, jobs)
    decoded = decode(recordings, workers=workers, timeout=recording_timeout, pin=device.type == "cuda")
    failures: list[Failure] = []
    waiting: dict[EmbeddingStore, list[_Encoded]] = {}

    def flush(store: EmbeddingStore) -> None:
        shard = waiting.pop(store)
        ids, fingerprints = [one.job.id for one in shard], [one.job.fingerprint for one in shard]
        cost = meter.facts(
            seconds=sum(one.seconds for one in shard),
            decoding=sum(one.decoding for one in shard),
            cpu_seconds=sum(one.cpu_seconds for one in shard),
            recordings=len(shard),
            parts=sum(one.parts for one in shard),
        )
        vectors = [one.vectors.numpy() for one in shard]
        store.append(
            ids,
            fingerprints,
            vectors,
            remarks=_remarked(shard),
            hints=[one.job.hint for one in shard],
            contents=[one.content for one in shard],
            rank=rank,
            device=name_of(device),
            cost=cost,
        )

    def finish() -> None:
        decoded.close()
        for store in list(waiting):
            flush(store)

    with ExitStack() as stack:
        stack.enter_context(run_code_of(model))
        stack.callback(finish)  # An interrupted or failing run keeps the finished vectors.
        batches = batches_on_device(decoded, batch_size, device)
        if device.type == "cuda":  # While the GPU computes, this process would wait.
            batches = one_ahead(batches)
        for batch in stack.enter_context(closing(batches)):
            readable = batch.readable
            failures += [Failure(jobs[position].id, why) for position, why in batch.decoded if isinstance(why, str)]
            if readable:
                meter.count(batch.on_device[0].to(device))
                started, worked = time.perf_counter(), time.process_time()
                encoded = encode_parts(join_parts(batch.on_device, model.encoder))
                each, work = (
                    (now - then) / len(encoded)
                    for now, then in ((time.perf_counter(), started), (time.process_time(), worked))
                )
                per_recording = [
                    vectors.flatten(0, -2) for vectors in encoded.split([len(parts) for _, parts in readable])
                ]
                for (position, parts), vectors in zip(readable, per_recording, strict=True):
                    job = jobs[position]
                    if not vectors.isfinite().all():
                        failures.append(Failure(job.id, f"{model.name} gave a vector that is not finite"))
                        continue
                    shard = waiting.setdefault(job.store, [])
                    cpu = work * len(parts) + recordings.cpu_seconds[position]
                    own = each * len(parts), recordings.seconds[position], cpu
                    facts = recordings.remarks(position), recordings.content(position)
                    shard.append(_Encoded(job, vectors, len(parts), *own, *facts))
                    if len(shard) >= SHARD:
                        flush(job.store)
            advance(len(batch.decoded))
    return failures
