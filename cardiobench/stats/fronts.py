"""Pareto front of points with a cost and a gain."""

import numpy as np
import numpy.typing as npt


def pareto_front(costs: np.ndarray, gains: np.ndarray) -> npt.NDArray[np.bool_]:
    """Return whether each point is Pareto-optimal. The array is bool (n,).

    Args:
        costs: Cost of each point, (n,); a point with unknown cost (NaN) is not on the front.
        gains: Gain of each point, (n,), larger is better; a point with NaN is not on the front.
    """
    front = np.zeros(len(costs), dtype=np.bool_)
    known = np.flatnonzero(~np.isnan(costs) & ~np.isnan(gains))
    order = known[np.lexsort((-gains[known], costs[known]))]
    # After sorting by cost and then by gain, a point is on the front if it gains more than all points before it, or
    # equals the last point of the front.
    best = np.maximum.accumulate(np.concatenate([[-np.inf], gains[order]]))[:-1]
    front[order[gains[order] > best]] = True
    same = (np.diff(costs[order]) == 0) & (np.diff(gains[order]) == 0)
    for place in np.flatnonzero(same):
        front[order[place + 1]] = front[order[place]]
    return front
