"""The encoding loop: recordings are decoded in workers, encoded in batches, stored as they come, on any number of processes."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cardiobench.core.errors import BadMedia
from cardiobench.data.dataset import OpenDataset
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import Encoder
from cardiobench.models.device import name_of

SHARD = 64  # recordings a shard: what a kill can cost


@dataclass(frozen=True)
class Failure:
    """A recording that could not be read or encoded, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class EncodeJob:
    """One recording to encode.

    Attributes:
        source: it is read from.
        number: its line of `source.frame`.
        store: its vectors go to.
    """

    source: OpenDataset
    number: int
    store: EmbeddingStore

    @property
    def id(self) -> str:
        """Of the recording."""
        return self.source.frame["id"].iloc[self.number]

    @property
    def fingerprint(self) -> str:
        """Of the recording's file."""
        return self.source.frame["fingerprint"].iloc[self.number]


class _Recordings(torch.utils.data.Dataset):
    """Recordings as the encoder's parts, or the reason why there are none."""

    def __init__(self, encoder: Encoder, pieces: Sequence[EncodeJob]):
        self.encoder, self.pieces = encoder, pieces

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, position: int) -> tuple[int, torch.Tensor | str]:
        piece = self.pieces[position]
        try:
            return position, self.encoder.transform(piece.source.recording(piece.number, self.encoder.sampling))
        except BadMedia as error:
            return position, str(error)


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
    """Decoding workers for each of `processes` processes of this machine; of more than two cores, one is left to the encoder."""
    cores = (os.cpu_count() or 2) // processes
    return max(1, min(8, cores - 1 if cores > 2 else cores))


def extract(
    encoder: Encoder,
    pieces: Sequence[EncodeJob],
    *,
    device: torch.device,
    rank: int = 0,
    batch_size: int = 8,
    workers: int = 1,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Failure]:
    """Encode recordings and store their vectors.

    Args:
        encoder: on `device` already.
        pieces: that this process is to encode; each store gets its vectors a shard at a time.
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
        _Recordings(encoder, pieces),
        batch_size=batch_size,
        num_workers=min(workers, len(pieces)),
        collate_fn=list,
        pin_memory=device.type == "cuda",
    )
    failures: list[Failure] = []
    waiting: dict[EmbeddingStore, list[tuple[EncodeJob, torch.Tensor]]] = {}

    def flush(store: EmbeddingStore) -> None:
        shard = waiting.pop(store)
        ids, fingerprints = [piece.id for piece, _ in shard], [piece.fingerprint for piece, _ in shard]
        store.append(ids, fingerprints, [own.numpy() for _, own in shard], rank=rank, device=name_of(device))

    try:
        for batch in loader:
            good = [(pieces[place], parts) for place, parts in batch if isinstance(parts, torch.Tensor)]
            failures += [Failure(pieces[place].id, why) for place, why in batch if isinstance(why, str)]
            if good:
                # Joined on the device: from the loader's pinned memory each part travels while the next is prepared.
                vectors = encode(torch.cat([parts.to(device, non_blocking=True) for _, parts in good]))
                for (piece, _), own in zip(good, vectors.split([len(parts) for _, parts in good]), strict=True):
                    if not own.isfinite().all():
                        failures.append(Failure(piece.id, f"{encoder.name} gave a vector that is not finite"))
                        continue
                    shard = waiting.setdefault(piece.store, [])
                    shard.append((piece, own))
                    if len(shard) >= SHARD:
                        flush(piece.store)
            advance(len(batch))
    finally:
        for store in list(waiting):  # an interrupted or failing run keeps what it has
            flush(store)
    return failures
