"""The encoding loop: recordings are decoded in workers, encoded in batches, stored as they come, on any number of processes."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cardiobench.data.source import Source
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.errors import BadMedia
from cardiobench.models.base import Encoder
from cardiobench.models.device import name_of

SHARD = 64  # recordings a shard: what a kill can cost


@dataclass(frozen=True)
class Failure:
    """A recording that could not be read or encoded, and why."""

    id: str
    reason: str


class _Recordings(torch.utils.data.Dataset):
    """Recordings of some lines of a source, as the encoder's parts, or the reason why there are none."""

    def __init__(self, encoder: Encoder, source: Source, numbers: Sequence[int]):
        self.encoder, self.source, self.numbers = encoder, source, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, position: int) -> tuple[int, torch.Tensor | str]:
        number = self.numbers[position]
        try:
            return number, self.encoder.transform(self.source.recording(number, self.encoder.sampling))
        except BadMedia as error:
            return number, str(error)


class PartEncoder:
    """Encodes parts in the encoder's precision, halving the batch for good when the device runs out of memory."""

    def __init__(self, encoder: Encoder, device: torch.device):
        self.encoder, self.device, self.limit = encoder, device, None
        self.bf16 = getattr(encoder, "precision", "fp32") == "bf16"

    @torch.inference_mode()
    def __call__(self, parts: torch.Tensor) -> torch.Tensor:
        """Vectors (N, dim) of parts (N, ...), on the CPU."""
        limit = self.limit or len(parts)
        try:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                vectors = [
                    self.encoder.encode(chunk.to(self.device, non_blocking=True)).float()
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


def default_workers(processes: int) -> int:
    """Decoding workers for each of `processes` processes of this machine, one core left to the encoder."""
    return max(1, min(8, (os.cpu_count() or 2) // processes - 1))


def extract(
    encoder: Encoder,
    source: Source,
    numbers: Sequence[int],
    store: EmbeddingStore,
    *,
    device: torch.device,
    rank: int = 0,
    batch_size: int = 8,
    workers: int = 1,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Failure]:
    """Encode those lines of a source and store their vectors.

    Args:
        encoder: on `device` already.
        source: the dataset.
        numbers: lines of `source.frame` that this process is to encode.
        store: where the vectors go, a shard at a time.
        device: of the encoder.
        rank: of this process, for the shards' names.
        batch_size: recordings decoded together; their parts are encoded together.
        workers: decoding processes; 0 decodes in this one.
        advance: told how many recordings are done.

    Returns:
        The recordings that failed; all others are stored.

    Raises:
        UnwritableOutput: the disk is full or read-only; what was stored stays.
    """
    encode = PartEncoder(encoder, device)
    loader = torch.utils.data.DataLoader(
        _Recordings(encoder, source, numbers),
        batch_size=batch_size,
        num_workers=min(workers, len(numbers)),
        collate_fn=list,
        pin_memory=device.type == "cuda",
    )
    failures: list[Failure] = []
    waiting: list[tuple[int, torch.Tensor]] = []

    def flush() -> None:
        if waiting:
            lines = source.frame.iloc[[number for number, _ in waiting]]
            vectors = [own.numpy() for _, own in waiting]
            store.append(list(lines["id"]), list(lines["stamp"]), vectors, rank=rank, device=name_of(device))
            waiting.clear()

    try:
        for batch in loader:
            good = [(number, parts) for number, parts in batch if isinstance(parts, torch.Tensor)]
            failures += [
                Failure(source.frame["id"].iloc[number], parts) for number, parts in batch if isinstance(parts, str)
            ]
            if good:
                # Joined on the device: from the loader's pinned memory each part travels while the next is prepared.
                vectors = encode(torch.cat([parts.to(device, non_blocking=True) for _, parts in good]))
                for (number, _), own in zip(good, vectors.split([len(parts) for _, parts in good]), strict=True):
                    if own.isfinite().all():
                        waiting.append((number, own))
                    else:
                        failures.append(
                            Failure(source.frame["id"].iloc[number], f"{encoder.name} gave a vector that is not finite")
                        )
            if len(waiting) >= SHARD:
                flush()
            advance(len(batch))
    finally:
        flush()  # an interrupted or failing run keeps what it has
    return failures
