"""Pareto front of points with a cost and a gain."""

import numpy as np
import numpy.typing as npt


def pareto_front(costs: np.ndarray, gains: np.ndarray) -> npt.NDArray[np.bool_]:
    """Return whether each point is on the front, (n,): no other one costs at most as much and gains at least as much, and is better in one.

    Args:
        costs: Cost of each point, (n,); a point of unknown cost (NaN) is not on the front.
        gains: Larger is better, (n,); NaN likewise.
    """
    front = np.zeros(len(costs), dtype=np.bool_)
    known = np.flatnonzero(~np.isnan(costs) & ~np.isnan(gains))
    order = known[np.lexsort((-gains[known], costs[known]))]
    # By cost, and of equal cost by gain: a point is on the front if it gains more than all before it, or equals the last one there.
    best = np.maximum.accumulate(np.concatenate([[-np.inf], gains[order]]))[:-1]
    front[order[gains[order] > best]] = True
    same = (np.diff(costs[order]) == 0) & (np.diff(gains[order]) == 0)
    for place in np.flatnonzero(same):
        front[order[place + 1]] = front[order[place]]
    return front
