"""Compare the Pareto front with its definition."""

import math

import numpy as np
import pytest

from cardiobench.stats.fronts import pareto_front


@pytest.mark.parametrize(
    ("costs", "gains", "front"),
    [
        ([1, 2, 3], [1, 2, 3], [1, 1, 1]),
        ([1, 2, 3], [3, 2, 1], [1, 0, 0]),
        ([1, 1, 2], [2, 2, 2], [1, 1, 0]),
        ([1, 1], [2, 3], [0, 1]),
        ([math.nan, 2], [9, 1], [0, 1]),
        ([1, 2], [math.nan, 1], [0, 1]),
    ],
)
def test_front_contains_only_undominated_points(costs, gains, front):
    assert pareto_front(np.array(costs, float), np.array(gains, float)).tolist() == [bool(one) for one in front]


def test_points_of_few_values_against_all_pairs():
    """Points with few distinct values have many ties and duplicates."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        costs, gains = rng.integers(0, 5, (2, 12)).astype(float)
        costs[rng.random(12) < 0.2] = np.nan
        beaten = [
            any(a <= x and b >= y and (a < x or b > y) for a, b in zip(costs, gains, strict=True))
            for x, y in zip(costs, gains, strict=True)
        ]
        assert pareto_front(costs, gains).tolist() == (~np.isnan(costs) & ~np.array(beaten)).tolist()
