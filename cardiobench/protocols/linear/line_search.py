"""Search the lengths to go along the directions of many smooth convex losses at once."""

from typing import Protocol

import numpy as np

CLOSE = 0.1  # Fraction of the first slope that is accurate enough, since conjugate directions forgive the rest.
TRIALS = 20  # Maximum number of step lengths.


class Lines(Protocol):
    """Losses along one direction each, as functions of the lengths gone, (k,)."""

    def slopes(self, lengths: np.ndarray) -> np.ndarray:
        """Return the first derivatives, (k,)."""

    def curvatures(self) -> np.ndarray:
        """Return the second derivatives at the lengths whose slopes were asked for last, positive, (k,)."""


def line_search(lines: Lines, count: int) -> np.ndarray:
    """Return the lengths at which the slopes of `count` lines that fall at 0 are next to none, by Newton's method kept between bounds.

    The slopes that were asked for last are those of the lengths that are returned, unless no length was close enough.
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
