"""Check a protocol: kind, options, predictions, and independence from test labels."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import PromptGrid, Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.protocols import protocol as build
from cardiobench.protocols.analysis import AnalysisProtocol
from cardiobench.protocols.base import (
    BaseProtocol,
    HeldOut,
    PredictionProtocol,
    ProtocolOutput,
    TaskData,
)
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.frame import FrameProtocol
from cardiobench.protocols.options import validated
from cardiobench.tasks.labels import label_set, split_labels
from cardiobench.testing.require import require

TASKS = (
    Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100), prompt_grid=PromptGrid(0, 100, 1)),
    Task("toy/as", "binary", "as", ("f1_macro",), ("no_AS", "AS")),
    Task("toy/view", "multiclass", "view", ("f1_macro",), ("A2C", "A4C", "PLAX")),
    Task("toy/findings", "multilabel", "findings", ("auroc_macro",), ("AF", "LBBB", "MI")),
)
PATIENTS = {"train": 40, "validation": 12, "test": 12}
DIM, PARTS = 6, 2


class _Silent:
    """Encoder without text and heads."""

    name, revision, modalities, dim, pooling = "toy/encoder", "1", ("echo", "ecg"), DIM, "mean"
    sampling, preprocessing, warnings = None, {}, ()  # type: ignore[var-annotated]

    transform = encode = to = staticmethod(lambda value: value)


def check_protocol(protocol: str | BaseProtocol) -> None:
    """Check a protocol's kind, options and predictions on small synthetic tasks of each kind.

    Analyses, masks and landmarks are only checked in a complete run.

    Args:
        protocol: Name, or an instance with options.

    Raises:
        AssertionError: A check failed; the message states the check and both values.
    """
    made = build(protocol) if isinstance(protocol, str) else protocol
    check_options(made)
    for task in TASKS:
        if isinstance(made, PredictionProtocol):
            check_predictions(made, task_data(task))


def task_data(task: Task, seed: int = 0) -> TaskData:
    """Return two recordings for each of 64 patients, with informative embeddings."""
    rng = np.random.default_rng(seed)
    split = np.repeat(list(PATIENTS), [2 * count for count in PATIENTS.values()])
    patients = [f"p{number // 2}" for number in range(len(split))]
    kinds = len(task.classes) or 3
    code = np.repeat(np.arange(len(split) // 2) % kinds, 2)
    features = rng.normal(size=(PARTS * len(split), DIM)) + 2 * np.eye(DIM)[code].repeat(PARTS, axis=0)
    labels = list(np.asarray(task.classes)[code]) if task.classes else 40.0 + 10 * code + rng.normal(size=len(code))
    ids = [f"r{number}" for number in range(len(split))]
    rows = pd.DataFrame({"id": ids, "patient_id": patients, "study_id": patients, "split": split, task.target: labels})
    return TaskData(task, rows, Embeddings(features.astype(np.float32), PARTS * np.arange(len(ids) + 1)), "mean")


def check_options(protocol: BaseProtocol) -> None:
    """Check that the protocol has exactly one kind and can be rebuilt from its stamped options."""
    name = getattr(protocol, "name", None)
    require(isinstance(name, str) and name, f"{type(protocol).__name__} has the name {name!r}; expected a text")
    kinds = [isinstance(protocol, kind) for kind in (PredictionProtocol, AnalysisProtocol, FrameProtocol)]
    require(sum(kinds) == 1, f"{name} must be one of PredictionProtocol, AnalysisProtocol and FrameProtocol")
    options = json.loads(json.dumps(protocol.get_params()))
    again = json.loads(json.dumps(validated(type(protocol), options).get_params()))
    require(again == options, f"{name} has the options {options}, which make one with {again}")


def check_predictions(protocol: PredictionProtocol, data: TaskData, encoder: Any = None) -> tuple[str, ...]:
    """Check a prediction protocol.

    Args:
        protocol: Protocol with its options.
        data: Recordings of a task.
        encoder: Encoder; None for one without text and heads.

    Returns:
        Names of the checked variants; empty if the protocol raises `NotApplicable`.

    Raises:
        AssertionError: A check failed; the message states the check.
    """
    encoder = encoder or _Silent()
    try:
        protocol.check(data.task)
        variants = protocol.variants(data.task)
        outputs = {variant: _predict(protocol, data, encoder, variant) for variant in variants}
    except NotApplicable:
        return ()
    except Exception as error:
        raise AssertionError(
            f"{protocol.name} stops at a {data.task.kind} task ({type(error).__name__}: {error}). Where it has no answer for "
            "such tasks, let `check(task)` raise NotApplicable."
        ) from error
    require(len(set(variants)) == len(variants), f"{protocol.name}: variants {variants}; expected each once")
    hidden = with_other_test_rows(data)
    for variant, (output, chosen) in outputs.items():
        where = f"{protocol.name}{'.' * bool(variant)}{variant} on a {data.task.kind} task"
        _check_output(output, chosen, where, protocol.out_of_fold)
        if not protocol.out_of_fold:
            again, _ = _predict(protocol, hidden, encoder, variant)
            _check_learned_nothing(output, again, data, where)
    return variants


def _check_learned_nothing(output: ProtocolOutput, again: ProtocolOutput, data: TaskData, where: str) -> None:
    """Check that `with_other_test_rows` changes neither the learned state nor predictions of unchanged recordings."""
    kept = np.isin(output.indices, np.setdiff1d(data.indices("test"), _replaced(data)))

    def learned(one: ProtocolOutput) -> dict[str, list[Any]]:
        def answers(held: HeldOut | None) -> list[Any]:
            return [] if held is None else [held.indices, held.values, *held.refits]

        return {
            "predictions": [one.values[kept]],
            "choices (details)": [json.dumps(dict(one.details), sort_keys=True)],
            "predictions of refits": [values[kept] for values in one.refits],
            "predictions of refits for the interval": [values[kept] for values in one.interval_refits],
            "draws of refits": list(one.drawn),
            "predictions of single trainings": [values[kept] for values in one.repeats],
            "predictions of validation recordings": answers(one.validation),
            "predictions of inner folds": answers(one.inner),
            "cut": [*([] if one.cut is None else [one.cut]), *one.refit_cuts],
        }

    after = learned(again)
    for what, before in learned(output).items():
        same = len(before) == len(after[what]) and all(map(np.array_equal, before, after[what]))
        require(
            same,
            f"{where}: other labels of the test recordings, and other embeddings of half of them, give other {what}: "
            "it learns from them, or draws unseeded",
        )


def _predict(
    protocol: PredictionProtocol, data: TaskData, encoder: Any, variant: str
) -> tuple[ProtocolOutput, TaskData]:
    """Return the output of a variant and its selected rows."""
    rows = protocol.select_rows(data.rows, data.task, variant)
    positions = data.rows.index.get_indexer(rows.index)
    parts = [data.embeddings.parts(position) for position in positions]
    vectors = Embeddings(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))
    chosen = replace(data, rows=rows.reset_index(drop=True), embeddings=vectors)
    return cut_by_validation(chosen, protocol.predict(chosen, encoder, variant)), chosen


def _check_output(output: ProtocolOutput, data: TaskData, where: str, out_of_fold: bool) -> None:
    require(
        out_of_fold or not output.out_of_fold,
        f"{where}: the output is out of fold, and the class declares out_of_fold = {out_of_fold}",
    )
    task, rows = data.task, len(output.indices)
    shape = (rows,) if task.rules.answer == "number" else (rows, len(task.classes))
    require(len(set(output.indices.tolist())) == rows, f"{where}: a recording is predicted twice")
    # Out of fold, one recording may represent its patient.
    unit = "patient_id" if out_of_fold else "id"
    numbers = np.arange(len(data.rows)) if out_of_fold else data.indices("test")
    units, expected = (set(data.rows[unit].to_numpy()[at]) for at in (output.indices, numbers))
    require(units == expected, f"{where}: predictions for {len(units)} of {len(expected)} units ({unit})")
    # Further columns of a class are probabilities of answers outside the classes.
    more = task.rules.answer == "class" and output.values.ndim == 2
    inside = output.values[:, : len(task.classes)] if more else output.values
    require(inside.shape == shape, f"{where}: predictions {output.values.shape}; expected {shape}")
    require(np.isfinite(output.values).all(), f"{where}: predictions are not finite")
    if task.rules.answer != "number":
        low, high = float(output.values.min()), float(output.values.max())
        sums = output.values.sum(axis=1) if task.rules.answer == "class" else np.ones(rows)
        require(
            low >= 0 and high <= 1 and np.allclose(sums, 1),
            f"{where}: probabilities from {low} to {high}, sums {sums.min()} to {sums.max()}",
        )
    json.dumps(output.details)


def with_other_test_rows(data: TaskData) -> TaskData:
    """Return the data with other labels of all test recordings and other embeddings of half the test patients."""
    rows, test, task = data.rows.copy(), data.indices("test"), data.task
    labels = list(rows[task.target])
    for row in test:
        labels[row] = _another(labels[row], task)
    vectors, offsets = data.embeddings.vectors.copy(), data.embeddings.offsets
    rng = np.random.default_rng(1)
    for row in _replaced(data):
        own = slice(offsets[row], offsets[row + 1])
        vectors[own] = 5 - 2 * vectors[own] + rng.normal(size=vectors[own].shape)
    return replace(data, rows=rows.assign(**{task.target: labels}), embeddings=Embeddings(vectors, offsets))


def _another(label: Any, task: Task) -> Any:
    if task.rules.answer == "number":
        return label + 30
    if task.rules.answer == "labels":
        present, unmeasured = split_labels(label)
        return label_set({*task.classes} - {*present, *unmeasured}, task.classes, unmeasured)
    return task.classes[(task.classes.index(label) + 1) % len(task.classes)]


def _replaced(data: TaskData) -> np.ndarray:
    """Return the rows whose embeddings `with_other_test_rows` replaces: those of every second test patient."""
    test = data.indices("test")
    patients = np.unique(data.patients[test])[::2]
    return test[np.isin(data.patients[test], patients)]
