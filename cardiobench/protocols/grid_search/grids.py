"""Parameter grids of the classifiers. The paper publishes none, so these small grids are ours.

Other grids are an option of a protocol, as JSON or the path of a JSON file: {"logistic": {"C": [0.1, 1.0]}, ...}.
Classifiers that are not listed keep their default grid. List values from the simplest to the most complex model,
because the first of equal scores is chosen.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError
from sklearn.model_selection import ParameterGrid

from cardiobench.core.errors import BadData
from cardiobench.core.registry import check_names
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

MAX_FEATURES = 1024  # Maximum number of features for trees and boosters (classifiers/feature_selection.py).

FIXED: dict[str, dict[str, Any]] = {
    "xgboost": {"learning_rate": 0.1, "max_bin": 64, "most_features": MAX_FEATURES},
    "tree": {"criterion": "gini", "most_features": MAX_FEATURES},
    "forest": {"criterion": "gini", "max_features": "sqrt"},
    "logistic": {"penalty": "l2", "standardised": True},
    "mlp": {"hidden": 64, "epochs": 200, "batch": 200, "patience": 10, "tolerance": 1e-4, "standardised": True},
}
"""Fixed parameters."""


def param_grid(grid: Grid) -> list[Params]:
    """Return every combination of a grid's values; the last parameter changes fastest."""
    return list(ParameterGrid(dict(grid)))


def complete_grids(given: Mapping[str, Grid]) -> dict[str, Grid]:
    """Return the default grids, updated with the given ones.

    Raises:
        UnknownName: A grid names an unknown classifier.
        BadData: A grid lacks a parameter, has an unknown one, or has no values for a parameter.
    """
    check_names("classifier", given, GRIDS)
    for name, grid in given.items():
        if set(grid) != set(GRIDS[name]):
            raise BadData(
                f"the grid of {name} needs the keys {', '.join(GRIDS[name])}, got {', '.join(grid)}. Correct the file of grids."
            )
        if not all(isinstance(values, list | tuple) and values for values in grid.values()):
            raise BadData(
                f"each key of the grid of {name} needs a list of values, got {dict(grid)}. Write single values as lists of one."
            )
    return {**GRIDS, **given}


_CompleteGrids = Annotated[Mapping[str, Grid], AfterValidator(complete_grids)]


def _read_file(given: Any) -> Any:
    """Read the grids from a JSON file; other values are returned unchanged.

    Raises:
        BadData: The file is not a JSON file of grids.
    """
    if not isinstance(given, str):
        return given
    try:
        content = Path(given).read_bytes()
        TypeAdapter(_CompleteGrids).validate_json(content)  # Without the context, since the message names the file.
    except OSError as error:
        raise BadData(f"{given} cannot be read: {error}") from None
    except ValidationError as error:
        raise BadData(f"{given} is not a JSON file of grids: {error.errors()[0]['msg']}") from None
    except BadData as error:
        raise BadData(f"{given}: {error}") from None
    return json.loads(content)


Grids = Annotated[_CompleteGrids, BeforeValidator(_read_file), InFile]
"""Classifier -> parameter -> values, or the path of a JSON file with them; classifiers that are not listed keep their
default grid."""


def grid_lines(grids: Mapping[str, Grid]) -> list[str]:
    """Return a line for each classifier with the number of combinations, the grid and the fixed parameters."""
    return [
        f"{name}: {len(param_grid(grid))} points, "
        + " x ".join(f"{key} {list(values)}" for key, values in grid.items())
        + "; "
        + ", ".join(f"{key}={value}" for key, value in FIXED[name].items())
        for name, grid in grids.items()
    ]
