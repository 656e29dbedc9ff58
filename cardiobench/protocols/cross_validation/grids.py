"""The grids: what each classifier may choose from. The paper gives none, so these are this benchmark's own, and small.

Another grid is a JSON file in the same form, given with `--grids FILE`: {"logistic": {"C": [0.1, 1.0]}, ...}. A classifier
that the file leaves out keeps its own grid. Values stand from the simplest model to the most complex one: of points
that score the same, the first is chosen.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadData
from cardiobench.core.registry import unknown_name

Point = Mapping[str, Any]
Grid = Mapping[str, Sequence[Any]]

GRIDS: dict[str, dict[str, tuple]] = {
    "xgboost": {"max_depth": (3, 6), "n_estimators": (100, 300)},
    "tree": {"max_depth": (2, 3, 4, 6, 8, None), "min_samples_leaf": (20, 5, 1)},
    "forest": {"max_depth": (4, 8, None), "n_estimators": (100, 300)},
    "logistic": {"C": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)},
    "mlp": {"alpha": (1.0, 1e-2, 1e-4), "learning_rate": (1e-3, 1e-2)},
}

MOST_FEATURES = 1024  # that a tree or booster is given (classifiers/screening.py)

FIXED: dict[str, dict[str, Any]] = {
    "xgboost": {"learning_rate": 0.1, "max_bin": 64, "most_features": MOST_FEATURES},
    "tree": {"criterion": "gini", "most_features": MOST_FEATURES},
    "forest": {"criterion": "gini", "max_features": "sqrt"},
    "logistic": {"penalty": "l2", "standardised": True},
    "mlp": {"hidden": 64, "epochs": 200, "batch": 200, "patience": 10, "tolerance": 1e-4, "standardised": True},
}
"""What is not searched."""


def points(grid: Grid) -> list[Point]:
    """Every combination of a grid's values, the last name's values changing fastest."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def read_grids(path: Path) -> dict[str, Grid]:
    """The grids with those of a JSON file in place of their own; `BadData` names what is wrong with it."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(f"{path} is no JSON file of grids: {error}") from None
    if not isinstance(given, dict):
        raise BadData(f"{path}: expected classifier -> grid, got a {type(given).__name__}.")
    for name, grid in given.items():
        if name not in GRIDS:
            raise unknown_name("classifier", name, GRIDS)
        if not isinstance(grid, dict) or set(grid) != set(GRIDS[name]):
            raise BadData(f"{path}: the grid of {name} needs the keys {', '.join(GRIDS[name])}, got {grid}.")
        if not all(isinstance(values, list) and values for values in grid.values()):
            raise BadData(f"{path}: each key of the grid of {name} needs a list of values, got {grid}.")
    return GRIDS | given


def described(grids: Mapping[str, Grid]) -> list[str]:
    """A line for each classifier: its points, its grid and what is fixed."""
    return [
        f"{name}: {len(points(grid))} points, "
        + " x ".join(f"{key} {list(values)}" for key, values in grid.items())
        + "; "
        + ", ".join(f"{key}={value}" for key, value in FIXED[name].items())
        for name, grid in grids.items()
    ]
