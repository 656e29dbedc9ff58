"""Repeated encoding, to test whether a model reproduces stored vectors and its own output."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.embeddings.extract import PartEncoder, RecordingSource, prepare, run_code_of
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel

EXACT = 1e-3
"""Tolerance between two encodings in single precision on a CPU, as a fraction of the root mean square of the vectors."""
COARSE = 3e-2
"""Tolerance with half precision, a GPU or two different devices."""
TRIES = 10  # Maximum number of recordings to try until enough can be read.


@dataclass(frozen=True)
class Drift:
    """Difference between stored vectors and those that a model gives now.

    Attributes:
        id: Recording with the largest difference.
        difference: Largest difference of a number, in root mean squares of the stored vectors.
    """

    id: str
    difference: float


def check_repeatable(model: LoadedModel, source: RecordingSource, numbers: Iterable[int], device: torch.device) -> None:
    """Encode two recordings together, then again one by one.

    Args:
        model: Loaded model, on the device.
        source: Recordings.
        numbers: Rows of `source.frame`; the first two readable ones are used.
        device: Device of the network.

    Raises:
        BadModel: The vectors differ, or a layer ran in training mode.
    """
    with run_code_of(model), _eval_mode(model.name):
        pairs = _encoded_twice(model, source, numbers, device)
    worst = max((relative_difference(first, again) for first, again in pairs), default=0.0)
    if worst > tolerance(model, [device.type]):
        raise BadModel(
            f"{model.name} gives different vectors when a recording is encoded again: they differ by {worst:.2g} of their root "
            "mean square. Call eval() on its network where it is made; give random steps of transform and encode a fixed "
            "seed; encode every part by itself, whatever else is in the batch."
        )


def _encoded_twice(
    model: LoadedModel, source: RecordingSource, numbers: Iterable[int], device: torch.device
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of vectors (P, dim) of up to two recordings, encoded together and one by one; empty if none is readable."""
    encode, readable = PartEncoder(model, device), list(_readable(model, source, numbers, 2))
    if not readable:
        return []
    together = encode(torch.cat([parts for _, parts in readable])).split([len(parts) for _, parts in readable])
    alone = [encode(parts) for _, parts in _readable(model, source, [number for number, _ in readable], 2)]
    return [(first.numpy(), again.numpy()) for first, again in zip(together, alone, strict=True)]


def drift(
    model: LoadedModel, source: RecordingSource, store: EmbeddingStore, count: int, device: torch.device
) -> Drift | None:
    """Encode some stored recordings again and compare.

    Args:
        model: Loaded model, on the device.
        source: Recordings.
        store: Store with their vectors.
        count: Recordings to encode.
        device: Device of the network.

    Returns:
        The largest difference if it exceeds the numerical tolerance; None if the model reproduces the stored vectors,
        or if no stored recording can still be read.
    """
    frame = source.frame
    stored = np.delete(np.arange(len(frame)), store.missing(frame["id"], frame["fingerprint"]))
    # First and last ones in turn, because neighbours often belong to one patient.
    order = np.stack([stored, stored[::-1]], axis=1).ravel()[: len(stored)]
    encode, found = PartEncoder(model, device), Drift("", 0.0)
    devices = {device.type}
    with run_code_of(model):
        for number, parts in _readable(model, source, order, count):
            row = frame.iloc[number]
            kept = store.load([row["id"]], [row["fingerprint"]])
            devices |= {name.partition(":")[0] for name in kept.devices}
            again = encode(parts).flatten(0, -2).numpy().astype(kept.vectors.dtype)
            difference = relative_difference(kept.vectors, again)
            if difference > max(found.difference, tolerance(model, devices)):
                found = Drift(row["id"], difference)
    return found if found.id else None


def _readable(
    model: LoadedModel, source: RecordingSource, numbers: Iterable[int], count: int
) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the parts of the first recordings that can be read."""
    for tried, number in enumerate(numbers):
        if not count or tried >= TRIES:
            return
        try:
            parts = prepare(model, source, int(number))
        except (BadMedia, MemoryError):
            continue
        count -= 1
        yield int(number), parts


def relative_difference(stored: np.ndarray, again: np.ndarray) -> float:
    """Return the largest difference relative to the root mean square of the first; infinite if the shapes differ."""
    if stored.shape != again.shape:
        return np.inf
    first, second = stored.astype(np.float64), again.astype(np.float64)
    if not np.isfinite(first).all():
        return 0.0  # Such a vector is not stored; extraction reports it.
    largest = np.abs(first - second).max(initial=0.0)
    return float(largest / np.sqrt(np.mean(first**2))) if largest else 0.0


def tolerance(model: LoadedModel, devices: Iterable[str]) -> float:
    """Return the tolerance between two encodings on some types of device, as a fraction of the root mean square."""
    exact = model.precision == "fp32" and model.dtype_name == "float32" and set(devices) <= {"cpu"}
    return EXACT if exact else COARSE


@contextmanager
def _eval_mode(name: str) -> Iterator[None]:
    """Refuse a model with layers that ran in training mode and behave differently there.

    Raises:
        BadModel: There are such layers; the message names them.
    """
    found: set[str] = set()

    def note(module: torch.nn.Module, inputs: Any) -> None:
        if module.training and _acts_in_training(module):
            found.add(type(module).__name__)

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield
    except BadModel:  # Some of these layers refuse a single recording.
        if not found:
            raise
    finally:
        handle.remove()
    if found:
        raise BadModel(
            f"{name} is in training mode: {', '.join(sorted(found))} changed its output. Call eval() on its network where "
            "it is made, such as self.network = Net().eval()."
        )


def _acts_in_training(module: torch.nn.Module) -> bool:
    name = type(module).__name__
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
        return module.track_running_stats
    shares = [getattr(module, attribute, None) for attribute in ("p", "drop_prob", "dropout")]
    recurrent = isinstance(module, torch.nn.RNNBase) and module.num_layers > 1
    random = "Drop" in name or name == "StochasticDepth" or recurrent or isinstance(module, torch.nn.MultiheadAttention)
    return random and any(isinstance(share, int | float) and share > 0 for share in shares)
