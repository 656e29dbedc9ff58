"""Embeddings of recordings in memory, as protocols receive them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardiobench.results.cost import Cost, cost_of

POOLED_NUMBERS = 2**19  # Numbers pooled at once in float64: 4 MB, which fit into a processor's cache.


@dataclass(frozen=True)
class Embeddings:
    """Vectors of some recordings, in the requested order.

    Attributes:
        vectors: Float32, or float16 for tokens, (all parts of all recordings, dim).
        offsets: Boundaries, (n + 1,); the parts of recording i are `vectors[offsets[i]:offsets[i + 1]]`.
        devices: Devices that computed the vectors, if known.
        libraries: Mapping from library to versions that computed the vectors.
        costs: Cost stated by each shard; empty if it states none.
        checked: Number of recordings that were checked when they were read (`data.media.checks`).
        remarks: Mapping from the id of a remarked recording to the checks.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    devices: tuple[str, ...] = ()
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    costs: tuple[Mapping[str, Any], ...] = ()
    checked: int = 0
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def cost(self) -> Cost:
        """Cost of encoding these recordings, according to their shards."""
        count = max(len(self.offsets) - 1, 1)
        return cost_of(self.costs, self.vectors.shape[1], self.vectors.nbytes / count)

    def parts(self, number: int) -> np.ndarray:
        """Return the vectors (P, dim) of one recording."""
        return self.vectors[self.offsets[number] : self.offsets[number + 1]]

    def pooled(self, pooling: str) -> np.ndarray:
        """Return one read-only float32 vector per recording. The shape is (n, dim).

        Args:
            pooling: `mean` of the parts, or `mean_l2`: parts scaled to unit length, averaged, and scaled to unit
                length. With one part per recording, the mean is the array of stored vectors without a copy.
        """
        count = len(self.offsets) - 1
        if pooling == "mean" and len(self.vectors) == count:
            pooled = self.vectors.view()
        else:
            dim, lengths = self.vectors.shape[1], np.diff(self.offsets)
            pooled = np.empty((count, dim), dtype=np.float32)
            # All recordings of equal length form one block, which makes the sums fast.
            for length in np.unique(lengths):
                chosen = np.flatnonzero(lengths == length)
                for own in np.split(chosen, range(0, len(chosen), max(1, POOLED_NUMBERS // (length * dim)))[1:]):
                    parts = self.vectors[self.offsets[own, None] + np.arange(length)].astype(np.float64)
                    parts = l2_normalize(parts) if pooling == "mean_l2" else parts
                    means = parts.sum(axis=1) / length
                    pooled[own] = l2_normalize(means) if pooling == "mean_l2" else means
        pooled.flags.writeable = False
        return pooled


def l2_normalize(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (..., dim) scaled to unit length, in float64; zero vectors stay zero."""
    vectors = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)
