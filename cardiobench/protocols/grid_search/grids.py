"""Parameter grids of the classifiers. The paper gives none, so these are this benchmark's own, and small.

Other grids come from a JSON file, `--grids FILE`: {"logistic": {"C": [0.1, 1.0]}, ...}. A classifier that the file leaves
out keeps its own grid. Values go from the simplest model to the most complex one: of equal scores the first wins.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError
from sklearn.model_selection import ParameterGrid

from cardiobench.core.errors import BadData
from cardiobench.core.registry import unknown_name
from cardiobench.protocols.options import InFile

Params = Mapping[str, Any]
Grid = Mapping[str, Sequence[Any]]

GRIDS: dict[str, Grid] = {
    "xgboost": {"max_depth": (3, 6), "n_estimators": (100, 300)},
    "tree": {"max_depth": (2, 3, 4, 6, 8, None), "min_samples_leaf": (20, 5, 1)},
    "forest": {"max_depth": (4, 8, None), "n_estimators": (100, 300)},
    "logistic": {"C": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)},
    "mlp": {"alpha": (1.0, 1e-2, 1e-4), "learning_rate": (1e-3, 1e-2)},
}

MAX_FEATURES = 1024  # given to a tree or booster (classifiers/selection.py)

FIXED: dict[str, dict[str, Any]] = {
    "xgboost": {"learning_rate": 0.1, "max_bin": 64, "most_features": MAX_FEATURES},
    "tree": {"criterion": "gini", "most_features": MAX_FEATURES},
    "forest": {"criterion": "gini", "max_features": "sqrt"},
    "logistic": {"penalty": "l2", "standardised": True},
    "mlp": {"hidden": 64, "epochs": 200, "batch": 200, "patience": 10, "tolerance": 1e-4, "standardised": True},
}
"""Parameters that are not searched."""


def param_grid(grid: Grid) -> list[Params]:
    """Return every combination of a grid's values, the last parameter's values changing fastest."""
    return list(ParameterGrid(dict(grid)))


def complete_grids(given: Mapping[str, Grid]) -> dict[str, Grid]:
    """Return the grids with the given ones in place of this benchmark's own.

    Raises:
        UnknownName: a grid of no classifier.
        BadData: a grid lacks a parameter, has another one, or gives a parameter no values.
    """
    for name, grid in given.items():
        if name not in GRIDS:
            raise unknown_name("classifier", name, GRIDS)
        if set(grid) != set(GRIDS[name]):
            raise BadData(f"the grid of {name} needs the keys {', '.join(GRIDS[name])}, got {', '.join(grid)}.")
        if not all(isinstance(values, list | tuple) and values for values in grid.values()):
            raise BadData(f"each key of the grid of {name} needs a list of values, got {dict(grid)}.")
    return {**GRIDS, **given}


Grids = Annotated[Mapping[str, Grid], AfterValidator(complete_grids), InFile]
"""Classifier -> parameter -> values; a classifier that is left out keeps its own grid."""


def read_grids(path: Path) -> Mapping[str, Grid]:
    """Return the grids of a JSON file; `BadData` names what is wrong with it."""
    try:
        return TypeAdapter(Grids).validate_json(path.read_bytes())
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error}") from None
    except ValidationError as error:
        raise BadData(f"{path} is no JSON file of grids: {error.errors()[0]['msg']}") from None
    except BadData as error:
        raise BadData(f"{path}: {error}") from None


def grid_lines(grids: Mapping[str, Grid]) -> list[str]:
    """Return a line for each classifier: the number of combinations, its grid and what is fixed."""
    return [
        f"{name}: {len(param_grid(grid))} points, "
        + " x ".join(f"{key} {list(values)}" for key, values in grid.items())
        + "; "
        + ", ".join(f"{key}={value}" for key, value in FIXED[name].items())
        for name, grid in grids.items()
    ]
