"""Sketch of an output: small enough to commit, and insensitive to the last digits of a number."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

TOLERANCE = 1e-4
"""Tolerance of a sum or scale. Instruction sets change them by about 2e-6, a factor of 1.001 instead of 1 by about 1e-3."""
SUMS = 8

Sketch = dict[str, Any]


def sketch(arrays: Iterable[Any]) -> Sketch:
    """Return the root mean square of each array, and eight sums of all values with fixed random signs.

    Each array is divided by its root mean square to give all the same weight, and each sum by the root of the number of values.

    Args:
        arrays: Numbers of any shape; NaN and infinity are replaced by 0, and counted.
    """
    values, scales, lacking = [np.empty(0)], [], 0
    for array in arrays:
        flat = np.asarray(array, dtype=np.float64).ravel()
        finite = np.isfinite(flat)
        lacking += int((~finite).sum())
        flat = np.where(finite, flat, 0.0)
        scale = float(np.sqrt(np.mean(flat**2))) if flat.size else 0.0
        values.append(flat / (scale or 1.0))
        scales.append(float(f"{scale:.6g}"))
    together = np.concatenate(values)
    signs = np.random.default_rng(together.size).integers(0, 2, size=(SUMS, together.size), dtype=np.int8)
    sums = (2 * (signs @ together) - together.sum()) / np.sqrt(together.size or 1)
    return {"size": together.size, "lacking": lacking, "scales": scales, "sums": (np.round(sums, 6) + 0.0).tolist()}


def distance(old: Sketch, new: Sketch) -> float:
    """Return the largest difference of sums or scales; infinity if the numbers of values or arrays differ."""
    if any(old[name] != new[name] for name in ("size", "lacking")) or len(old["scales"]) != len(new["scales"]):
        return np.inf
    before, now = np.array(old["scales"]), np.array(new["scales"])
    scales = np.abs(before - now) / np.maximum(np.maximum(np.abs(before), np.abs(now)), 1e-300)
    return float(max(np.abs(np.subtract(old["sums"], new["sums"])).max(), scales.max(initial=0.0)))


def numbers(record: Any) -> Iterator[float]:
    """Yield the numbers of a nested record in the order of their names; large ones as logarithms."""
    if isinstance(record, Mapping):
        for name in sorted(record):
            yield from numbers(record[name])
    elif isinstance(record, list | tuple):
        for one in record:
            yield from numbers(one)
    elif isinstance(record, int | float):
        yield float(np.arcsinh(record))
