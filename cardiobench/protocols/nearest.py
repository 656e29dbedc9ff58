"""Exact nearest neighbours by cosine similarity, in blocks, so that memory does not grow with the number of vectors.

Blocks are compared in float32. Similarities are rounded to `GRID`, a few units in the last place of float32, and ties
are ordered by position, so that equal vectors tie regardless of the summation order. `SPARE` additional neighbours are
kept, and the final order is computed in float64.
"""

import sys
from collections.abc import Callable

import numpy as np

from cardiobench.protocols.features import UnitRows

QUERY_ROWS, TRAIN_ROWS = 2048, 4096
# Rows of the first block; it is small, because many candidates pass the threshold while few vectors have been seen.
FIRST_ROWS = 1024
GRID = 2.0**-20
TURN = 2**21
"""Offset from which similarities, -2**20 to 2**20 in units of GRID, are subtracted: smaller is nearer, and none is
negative."""
POSITION_BITS = 31
POSITIONS = 2**POSITION_BITS - 1
ROW_SHIFT = (
    53  # Bits of a key above the 22 of its similarity and the 31 of its position; QUERY_ROWS needs the remaining 11.
)
SPARE = 8
HELD = (
    2**23
    # Numbers of training vectors kept in float64 for the final order: 64 MB; beyond that, candidates are converted on
    # demand.
)
SETTLED = 2**20  # Numbers of candidates ordered at once: 8 MB.
DECIMALS = 12  # Tolerance of float64 similarities, because equal vectors may differ in the last digits.
GPU_WORK = 10**11  # Number of multiplications below which the transfer to a GPU takes longer than computing on the CPU.


def nearest(train: UnitRows, query: UnitRows, count: int, *, device: str = "auto") -> np.ndarray:
    """Return positions of the nearest training vectors of each query vector, nearest first; ties by position.

    Several threads do not make it faster, because blocks are small: callers limit the math libraries to one.

    Args:
        train: Unit vectors, m rows.
        query: Unit vectors, n rows.
        count: Number of neighbours, at most m.
        device: Device of searches that are worth the transfer to a GPU, as for `cardiobench.models.device.choose_device`;
            other searches run on the CPU.

    Returns:
        Positions in `train`, (n, count).
    """
    if not 1 <= count <= len(train):
        raise ValueError(f"{count} neighbours of {len(train)} training vectors")
    kept = min(count + SPARE, len(train))
    device = _device(device, len(train) * len(query) * train.features.shape[1])
    positions = np.empty((len(query), count), dtype=np.int64)
    exact = _exact(train)
    for start in range(0, len(query), QUERY_ROWS):
        rows = slice(start, min(start + QUERY_ROWS, len(query)))
        block = query.take(rows, np.float32) * np.float32(1 / GRID)
        candidates = _on_cpu(train, block, kept) if device == "cpu" else _on_gpu(train, block, kept, device)
        positions[rows] = _settled(exact, query, rows, candidates)[:, :count]
    return positions


def _device(wanted: str, work: int) -> str:
    # Models with a network have already imported torch. Importing it here only to find no GPU would take half a
    # gigabyte.
    if work < GPU_WORK or wanted == "cpu" or (wanted == "auto" and "torch" not in sys.modules):
        return "cpu"
    from cardiobench.models.device import choose_device

    return choose_device(wanted, "knn.device").type


def _on_cpu(train: UnitRows, query: np.ndarray, count: int) -> np.ndarray:
    """Return positions of the nearest `count` of each row of a block of queries, (n, count), nearest first."""
    # Each candidate is one integer, smaller is nearer: its inverted similarity in the high bits, then its position.
    best = np.full((len(query), count), (2 * TURN - 1) << POSITION_BITS, dtype=np.uint64)
    buffer = np.empty(len(query) * max(TRAIN_ROWS, FIRST_ROWS, count), dtype=np.float32)
    start = 0
    while start < len(train):
        stop = min(start + (TRAIN_ROWS if start else max(FIRST_ROWS, count)), len(train))
        block = buffer[: len(query) * (stop - start)].reshape(len(query), stop - start)
        np.matmul(query, train.take(slice(start, stop), np.float32).T, out=block)
        np.rint(block, out=block)
        # Later positions must be strictly nearer than the last kept one, so that ties are ordered by position.
        if start:
            bar = TURN - (best[:, -1] >> POSITION_BITS).astype(np.float32)
        else:
            bar = np.partition(block, stop - count, axis=1)[:, stop - count] - 1
        passed = np.flatnonzero(block > bar[:, None])
        if len(passed):
            rows, columns = np.divmod(passed, stop - start)
            turned = (TURN - block.reshape(-1)[passed]).astype(np.uint64)
            _merge(best, rows, (turned << POSITION_BITS) | (columns + start).astype(np.uint64))
        start = stop
    return (best & POSITIONS).astype(np.int64)


def _merge(best: np.ndarray, rows: np.ndarray, keys: np.ndarray) -> None:
    """Merge new candidates into the best of their rows, in place.

    Args:
        best: Keys of the best candidates of each query, nearest first, uint64 (n, count).
        rows: Query of each new candidate, (m,).
        keys: Keys of the new candidates, uint64 (m,).
    """
    changed, count = np.unique(rows), best.shape[1]
    every = np.concatenate([np.repeat(changed, count), rows]).astype(np.uint64) << ROW_SHIFT
    every |= np.concatenate([best[changed].ravel(), keys])
    every.sort()
    first = np.searchsorted(every, changed.astype(np.uint64) << ROW_SHIFT)
    best[changed] = every[first[:, None] + np.arange(count)] & ((1 << ROW_SHIFT) - 1)


def _on_gpu(train: UnitRows, query: np.ndarray, count: int, device: str) -> np.ndarray:
    """Compute the same as `_on_cpu` from the same blocks on a GPU. The shape is (n, count)."""
    import torch

    block = torch.from_numpy(query).to(device)
    best = torch.empty((len(query), 0), dtype=torch.int64, device=device)
    for start in range(0, len(train), TRAIN_ROWS):
        vectors = torch.from_numpy(train.take(slice(start, start + TRAIN_ROWS), np.float32)).to(device)
        turned = TURN - torch.round(block @ vectors.T).long()
        keys = (turned << POSITION_BITS) | torch.arange(start, start + len(vectors), device=device)
        keys = torch.cat([best, keys], dim=1)
        best = torch.topk(keys, min(count, keys.shape[1]), dim=1, largest=False, sorted=True).values
    return (best & POSITIONS).cpu().numpy()


def _exact(train: UnitRows) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that returns the vectors at some positions in float64; small sets are converted once."""
    shape = len(train), train.features.shape[1]
    if shape[0] * shape[1] > HELD:
        return train.take
    held = np.empty(shape)
    for start in range(0, len(train), TRAIN_ROWS):
        held[start : start + TRAIN_ROWS] = train.take(slice(start, start + TRAIN_ROWS))
    return held.__getitem__


def _settled(
    train: Callable[[np.ndarray], np.ndarray], query: UnitRows, rows: slice, candidates: np.ndarray
) -> np.ndarray:
    """Return the candidates (n, k) of some queries ordered by their float64 similarities; `train` returns their vectors."""
    similarity = np.empty(candidates.shape)
    step = max(1, SETTLED // (candidates.shape[1] * query.features.shape[1]))
    for start in range(0, len(candidates), step):
        part = slice(start, start + step)
        vectors = query.take(np.arange(rows.start, rows.stop)[part])
        similarity[part] = np.einsum("nd,nkd->nk", vectors, train(candidates[part]))
    order = np.lexsort((candidates, -np.round(similarity, DECIMALS)), axis=1)
    return np.take_along_axis(candidates, order, axis=1)
