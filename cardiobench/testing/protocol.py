"""Checks of a protocol: its kind and options, answers for the test recordings, labels of the test that it never reads."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import PromptGrid, Task
from cardiobench.embeddings.store import Embeddings
from cardiobench.protocols import protocol as build
from cardiobench.protocols.analysis import AnalysisProtocol
from cardiobench.protocols.base import BaseProtocol, PredictionProtocol, ProtocolOutput, TaskData
from cardiobench.protocols.dense.protocol import DensePrediction
from cardiobench.protocols.options import validated
from cardiobench.testing.require import require

TASKS = (
    Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100), prompt_grid=PromptGrid(0, 100, 1)),
    Task("toy/as", "binary", "as", ("f1_macro",), ("no_AS", "AS")),
    Task("toy/view", "multiclass", "view", ("f1_macro",), ("A2C", "A4C", "PLAX")),
)
PATIENTS = {"train": 24, "validation": 12, "test": 12}
DIM = 6


class _Silent:
    """An encoder without text and heads."""

    name, revision, modalities, dim, pooling = "toy/encoder", "1", ("echo", "ecg"), DIM, "mean"
    sampling, preprocessing, warnings = None, {}, ()  # type: ignore[var-annotated]

    transform = encode = to = staticmethod(lambda value: value)


def check_protocol(protocol: str | BaseProtocol) -> None:
    """Check a protocol: its kind and options, and its predictions on small tasks of each kind with known embeddings.

    What an analysis finds, and masks and landmarks, are seen in a run only.

    Args:
        protocol: name, or one with its options.

    Raises:
        AssertionError: a check fails; says which, and the two values.
    """
    made = build(protocol) if isinstance(protocol, str) else protocol
    check_options(made)
    for task in TASKS:
        if isinstance(made, PredictionProtocol):
            check_predictions(made, task_data(task))


def task_data(task: Task, seed: int = 0) -> TaskData:
    """Return two recordings of each of 48 patients, whose embeddings tell their labels."""
    rng = np.random.default_rng(seed)
    split = np.repeat(list(PATIENTS), [2 * count for count in PATIENTS.values()])
    patients = [f"p{number // 2}" for number in range(len(split))]
    kinds = len(task.classes) or 3
    code = np.repeat(np.arange(len(split) // 2) % kinds, 2)
    features = rng.normal(size=(len(split), DIM)) + 2 * np.eye(DIM)[code]
    labels = list(np.asarray(task.classes)[code]) if task.classes else 40.0 + 10 * code + rng.normal(size=len(code))
    ids = [f"r{number}" for number in range(len(split))]
    rows = pd.DataFrame({"id": ids, "patient_id": patients, "study_id": patients, "split": split, task.target: labels})
    return TaskData(task, rows, Embeddings(features.astype(np.float32), np.arange(len(ids) + 1)), "mean")


def check_options(protocol: BaseProtocol) -> None:
    """Check that it is one of the kinds, and that its options, as stamped, make it again."""
    name = getattr(protocol, "name", None)
    require(isinstance(name, str) and name, f"{type(protocol).__name__} has the name {name!r}, expected a text")
    kinds = [isinstance(protocol, kind) for kind in (PredictionProtocol, AnalysisProtocol, DensePrediction)]
    require(sum(kinds) == 1, f"{name} must be either a PredictionProtocol or an AnalysisProtocol")
    options = json.loads(json.dumps(protocol.get_params()))
    again = json.loads(json.dumps(validated(type(protocol), options).get_params()))
    require(again == options, f"{name} has the options {options}, which make one with {again}")


def check_predictions(protocol: PredictionProtocol, data: TaskData) -> None:
    """Check a prediction protocol; a task that it refuses with `NotApplicable` is passed over."""
    try:
        protocol.check(data.task)
        variants = protocol.variants(data.task)
        outputs = {variant: _predict(protocol, data, variant) for variant in variants}
    except NotApplicable:
        return
    except Exception as error:
        raise AssertionError(
            f"{protocol.name} stops at a {data.task.kind} task ({type(error).__name__}: {error}). Where it has no answer for "
            "such tasks, let `check(task)` raise NotApplicable."
        ) from error
    require(len(set(variants)) == len(variants), f"{protocol.name}: variants {variants}, expected each once")
    hidden = with_other_test_labels(data)
    for variant, (output, chosen) in outputs.items():
        where = f"{protocol.name}{'.' * bool(variant)}{variant} on a {data.task.kind} task"
        _check_output(output, chosen, where, protocol.out_of_fold)
        if not protocol.out_of_fold:
            again, _ = _predict(protocol, hidden, variant)
            require(
                np.array_equal(output.values, again.values),
                f"{where}: other labels of the test recordings give other predictions: it reads them, or draws unseeded",
            )


def _predict(protocol: PredictionProtocol, data: TaskData, variant: str) -> tuple[ProtocolOutput, TaskData]:
    """Return the output of a variant, and the rows that it chose."""
    rows = protocol.select_rows(data.rows, data.task, variant)
    positions = data.rows.index.get_indexer(rows.index)
    vectors = Embeddings(data.embeddings.vectors[positions], np.arange(len(rows) + 1))
    chosen = replace(data, rows=rows.reset_index(drop=True), embeddings=vectors)
    return protocol.predict(chosen, _encoder(), variant), chosen


def _encoder() -> Any:
    return _Silent()


def _check_output(output: ProtocolOutput, data: TaskData, where: str, out_of_fold: bool) -> None:
    require(
        out_of_fold or not output.out_of_fold,
        f"{where}: the output is out of fold, and the class declares out_of_fold = {out_of_fold}",
    )
    task, rows = data.task, len(output.indices)
    shape = (rows,) if task.rules.answer == "number" else (rows, len(task.classes))
    require(len(set(output.indices.tolist())) == rows, f"{where}: a recording is predicted twice")
    # Out of fold, one recording of a patient may stand for all of them.
    unit = "patient_id" if out_of_fold else "id"
    numbers = np.arange(len(data.rows)) if out_of_fold else data.indices("test")
    units, expected = (set(data.rows[unit].to_numpy()[at]) for at in (output.indices, numbers))
    require(units == expected, f"{where}: predictions for {len(units)} of {len(expected)} units ({unit})")
    require(output.values.shape == shape, f"{where}: predictions {output.values.shape}, expected {shape}")
    require(np.isfinite(output.values).all(), f"{where}: predictions are not finite")
    if task.rules.answer != "number":
        sums, low = output.values.sum(axis=1), float(output.values.min())
        require(
            low >= 0 and np.allclose(sums, 1), f"{where}: probabilities from {low}, sums {sums.min()} to {sums.max()}"
        )
    json.dumps(output.details)


def with_other_test_labels(data: TaskData) -> TaskData:
    """Return the same data with the labels of the test recordings in reverse order."""
    rows, test = data.rows.copy(), data.indices("test")
    rows.loc[rows.index[test], data.task.target] = rows[data.task.target].to_numpy()[test][::-1]
    return replace(data, rows=rows)
