"""Line search along the directions of many smooth convex losses at once."""

from typing import Protocol

import numpy as np

CLOSE = 0.1  # Sufficient accuracy as a fraction of the initial slope; conjugate directions tolerate the rest.
TRIALS = 20  # Maximum number of step lengths.


class Lines(Protocol):
    """Losses along one direction each, as functions of the step lengths. The shape is (k,)."""

    def slopes(self, lengths: np.ndarray) -> np.ndarray:
        """Return the first derivatives. The shape is (k,)."""

    def curvatures(self) -> np.ndarray:
        """Return the second derivatives at the lengths of the last call of `slope`, positive. The shape is (k,)."""


def line_search(lines: Lines, count: int) -> np.ndarray:
    """Return the lengths at which the slopes of `count` lines that decrease at 0 are nearly zero, by Newton's method with bracketing.

    The last evaluated slopes are those of the returned lengths, unless no length was accurate enough.
    """
    lengths, first = np.zeros(count), None
    low, high = np.zeros_like(lengths), np.full_like(lengths, np.inf)
    for _ in range(TRIALS):
        slopes = lines.slopes(lengths)
        first = slopes if first is None else first
        close = (np.abs(slopes) <= CLOSE * np.abs(first)) & ((lengths > 0) | (first == 0))
        if close.all():
            break
        curvatures = np.maximum(lines.curvatures(), 1e-300)
        low, high = np.where(slopes < 0, lengths, low), np.where(slopes > 0, np.minimum(high, lengths), high)
        newton = lengths - slopes / curvatures
        middle = np.where(np.isfinite(high), (low + np.where(np.isfinite(high), high, 0)) / 2, 4 * low)
        inside = (newton > low) & (newton < high)
        lengths = np.where(close, lengths, np.where(inside, newton, middle))
    return lengths
