"""Check a metric: declared numbers, rejection of invalid rows, and weights equivalent to repeated rows."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.stats.estimates import METHODS, SCALES
from cardiobench.testing.require import require

ROWS = ("references", "predictions", "importances")
"""Names of per-row arguments, whose cells must all be valid."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "smoothed": ("from_tables",),
    "newcombe": ("influence", "support"),
    "share": ("influence",),
    "average_precision": ("influence", "support"),
    **dict.fromkeys(SCALES, ("influence",)),
}
"""Mapping from interval method to the functions that it requires."""
WRONG: dict[str, Any] = {"NaN": np.nan, "None": None, "inf": np.inf, "text": "n/a"}


def check_metric(name: str, inputs: Mapping[str, Any]) -> None:
    """Check a metric.

    Args:
        name: Name of a registered metric.
        inputs: Arguments of a typical call, such as `{"references": array (n,), "predictions": array (n,)}`, with one
            entry per row.

    Raises:
        AssertionError: A check failed; the message states the check and both values.
    """
    metric = load_metric(name)
    inputs = {key: np.asarray(value) if key in ROWS else value for key, value in inputs.items()}
    check_formula(metric, inputs)
    check_numbers(metric, inputs)
    for change, changed in bad_inputs(inputs).items():
        check_refused(metric, change, {**inputs, **changed})
    if metric.compute_resamples is not None:
        check_weights(metric, inputs)


def check_formula(metric: Metric, inputs: Mapping[str, Any]) -> None:
    """Check that the metric returns a reproducible float for each declared key."""
    result, again = metric.compute(**inputs), metric.compute(**inputs)
    for key in metric.numbers:
        require(type(result.get(key)) is float, f"{metric.name}: {key} is {result.get(key)!r}; expected a float")
        same = result[key] == again[key] or np.isnan(result[key])
        require(same, f"{metric.name}: {key} is {result[key]}, then {again[key]}, of the same rows")


def check_numbers(metric: Metric, inputs: Mapping[str, Any]) -> None:
    """Check the declared facts of a metric's numbers: range and interval method.

    Values from 0 to 1 without a declared range give a warning, because they may be fractions to be shown in percent.
    """
    result = metric.compute(**inputs)
    for key, number in metric.numbers.items():
        where, value = f"{metric.name}: {key}", result[key]
        low, high = number.range
        require(number.possible(value), f"{where} is {value:g}, outside its range {low:g} to {high:g}")
        require(
            number.method in METHODS, f"{where} names the interval '{number.method}'; expected {', '.join(METHODS)}"
        )
        if number.method == "class_mean":
            has = metric.per_class is not None or metric.shares is not None
            require(has, f"{where} names the interval 'class_mean', which needs a function per_class or shares")
        for function in NEEDS.get(number.method, ()):
            has = getattr(metric, function) is not None
            require(has, f"{where} names the interval '{number.method}', which needs a function {function}")
        if number.better is not None and number.range == Number.range and 0 <= value <= 1:
            warnings.warn(
                f"{where} is {value:g} and has no range. If it is a share, declare NUMBERS = {{'{key}': "
                f"{{'better': '{number.better}', 'range': (0, 1), 'unit': 'fraction'}}}}.",
                stacklevel=3,
            )
    references = np.asarray(inputs.get("references"))
    classes = int(references.max()) + 1 if np.issubdtype(references.dtype, np.integer) else 0
    floors = metric.floor(references, classes) if metric.floor is not None else {}
    for key, (value, by) in floors.items():
        known = key in metric.numbers and metric.numbers[key].possible(value) and isinstance(by, str)
        require(
            known, f"{metric.name}: the floor of {key} is {value!r}, {by!r}; expected (possible value, what reaches it)"
        )
    if metric.from_tables is not None and classes:
        table, present = np.eye(classes) + 1, np.ones(classes, dtype=bool)
        square = metric.from_tables(table, present)
        wider = metric.from_tables(np.pad(table, ((0, 0), (0, 1))), present)
        for key, of_square in square.items():
            same = np.isclose(of_square, wider[key], rtol=1e-9, equal_nan=True)
            where = f"{metric.name}: {key} of a table without answers outside the classes"
            require(same, f"{where} is {of_square}, and {wider[key]} with an empty last column for them")
    if metric.per_row is not None:
        for key, rows in metric.per_row(**inputs).items():
            same = np.isclose(np.mean(rows), result[key], rtol=1e-9, equal_nan=True)
            require(same, f"{metric.name}: {key} is {result[key]}, the mean of its per_row {np.mean(rows)}")


def spoiled(values: Any, value: Any) -> list[Any]:
    """Return the same (nested) list with its first entry replaced."""
    rows = np.asarray(values).tolist()
    if isinstance(rows[0], list):
        return [[value, *rows[0][1:]], *rows[1:]]
    return [value, *rows[1:]]


def bad_inputs(inputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return invalid variants of the arguments, by description: invalid cells, no rows, other shapes and other rows."""
    changes: dict[str, dict[str, Any]] = {}
    for key in (key for key in ROWS if key in inputs):
        rows = np.asarray(inputs[key])
        changes |= {f"{name} in {key}": {key: spoiled(rows, value)} for name, value in WRONG.items()}
        changes[f"deeper {key}"] = {key: rows.reshape(*rows.shape, 1, 1)}
        changes[f"one number as {key}"] = {key: 3}
        changes[f"no {key}"] = {key: []}
        if len(inputs) > 1:
            changes[f"shorter {key}"] = {key: rows[1:]}
        if rows.ndim == 2:
            changes[f"ragged {key}"] = {key: [rows[0, 1:].tolist(), *rows[1:].tolist()]}
    references = np.asarray(inputs.get("references", 0.5))
    if np.issubdtype(references.dtype, np.integer):  # Class names are valid labels, but must not be mixed with numbers.
        changes["fraction"] = {"references": spoiled(references, 0.7)}
        del changes["text in references"]
        changes["mixed names"] = {"references": ["a", *references.tolist()[1:]]}
    return changes


def check_refused(metric: Metric, change: str, inputs: Mapping[str, Any]) -> None:
    """Check that invalid rows raise a `ValueError` with a count, a shape or the cell."""
    try:
        value = metric.compute(**inputs)
    except ValueError as error:
        counted = any(sign.isdigit() for sign in str(error)) or "shape" in str(error) or WRONG["text"] in str(error)
        require(counted, f"{metric.name} refuses {change} without a count or a shape: {error}")
        return
    require(False, f"{metric.name} takes {change} and gives {value}; expected a ValueError")


def check_weights(metric: Metric, inputs: Mapping[str, Any], draws: int = 25) -> None:
    """Check that a row with weight w in `compute_resamples` counts as w rows, and that no rows give NaN."""
    if metric.compute_resamples is None:
        raise AssertionError(f"{metric.name} has no compute_resamples")
    rng = np.random.default_rng(7)
    rows = {key: value for key, value in inputs.items() if isinstance(value, np.ndarray)}
    options = {key: value for key, value in inputs.items() if key not in rows}
    count = len(next(iter(rows.values())))
    weights = rng.integers(0, 4, (draws, count)).astype(float)
    drawn = metric.compute_resamples(**rows, **options, weights=weights)
    for at, counts in enumerate(weights.astype(int)):
        once = metric.compute(**{key: np.repeat(value, counts, axis=0) for key, value in rows.items()}, **options)
        for key, value in once.items():
            same = np.isclose(drawn[key][at], value, rtol=1e-6, atol=1e-9, equal_nan=True)
            require(same, f"{metric.name}: {key} is {drawn[key][at]} by weights and {value} of repeated rows")
    empty = metric.compute_resamples(**rows, **options, weights=np.zeros((1, count)))
    require(all(np.isnan(values).all() for values in empty.values()), f"{metric.name}: no rows give {empty}, not NaN")
