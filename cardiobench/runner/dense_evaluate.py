"""Answers to the labelled frames of one task by one model: a read-out is fitted, and the test frames are answered."""

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from cardiobench.core.errors import NotApplicable
from cardiobench.core.io import sha256_of_json
from cardiobench.core.libraries import as_text, library_warnings, merged
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.protocols.dense.data import DenseData
from cardiobench.protocols.dense.geometry import Window
from cardiobench.protocols.dense.head import cells_per_token
from cardiobench.protocols.dense.oracle import GridOracle
from cardiobench.protocols.dense.protocol import DensePrediction, FittedReadOut
from cardiobench.protocols.dense.readouts import MeanMask
from cardiobench.protocols.dense.variants import DenseVariant
from cardiobench.runner.answered import Answered
from cardiobench.runner.cell import TaskCell
from cardiobench.runner.dense_tokens import FramePlan
from cardiobench.runner.references import expected_units, limited_references
from cardiobench.tasks.frames import DenseScorer, FrameAnswers
from cardiobench.tasks.mask_volumes import PREDICTED


def answer_frames(cell: TaskCell, plan: FramePlan, protocol: DensePrediction) -> Answered:
    """Fit the read-out of a cell and answer the labelled test frames.

    Args:
        cell: Cell of the result.
        plan: Tokens that the cell reads.
        protocol: Protocol of the cell.

    Raises:
        NotApplicable: There is nothing to learn from, or a transform that is no crop.
    """
    task, limit = cell.task, cell.config.limit
    read_out = protocol.read_out(task, cell.variant)
    data = plan.data()
    fitted = protocol.fit(data, read_out)
    scorer, ceilings, answers, geometry = answer_test(data, fitted)
    floors = {"best_uninformed": ceilings.pop("mean"), **ceilings}
    for name in plan.floors:
        floors[name.replace("-", "_")] = floor_scorer(plan, name, protocol, read_out, limit)
    ef = listed_fractions(cell.dataset, task)
    references = limited_references(cell.dataset, task, limit)
    expected = expected_units(cell.dataset, task, references, limit)
    context = cell.context({**fitted.details, **geometry})
    libraries = merged(plan.store.library_sets)
    context = replace(context, warnings=(*context.warnings, *library_warnings(libraries)))
    table, stamp = predictions_table(scorer, answers, ef), {"libraries": as_text(libraries)}
    return Answered(FrameAnswers(scorer, floors, expected, ef), references, context, table, stamp)


def predictions_table(
    scorer: DenseScorer, answers: Sequence[bytes | list[float]], ef: pd.Series | None
) -> pd.DataFrame:
    """Return what is saved beside a result: one row per frame with its numbers and its answer.

    Args:
        scorer: of the answers.
        answers: a mask as PNG, or x and y of each point in turn.
        ef: listed ejection fraction of each unit, %.

    Returns:
        The scorer's columns, `answer`, and of the unit the listed ejection fraction (`y_true`) and that of the predicted
        masks (`y_pred`), %; NaN where there is none.
    """
    frame = scorer.frame.assign(answer=answers)
    listed = pd.Series(dtype=np.float64) if ef is None else ef
    measured = scorer.volumes.fractions(PREDICTED) if ef is not None else listed
    return frame.assign(y_true=frame["id"].map(listed), y_pred=frame["id"].map(measured))


def answer_content(answer: np.ndarray) -> bytes | list[float]:
    """Return a mask uint8 (H, W) as PNG, points (k, 2) as a list of their coordinates."""
    if answer.ndim == 2 and answer.dtype == np.uint8:
        content = BytesIO()
        Image.fromarray(answer).save(content, format="PNG")
        return content.getvalue()
    return [float(value) for value in answer.ravel()]


def answer_test(
    data: DenseData, fitted: FittedReadOut
) -> tuple[DenseScorer, dict[str, DenseScorer], list[bytes | list[float]], dict[str, Any]]:
    """Answer the test frames, one at a time.

    Returns:
        The scores of the read-out; those of the mean of the training labels (`mean`) and of the best that the grids of
        tokens and of cells can express; the answers; and what the model sees: the mean share of a frame's pixels that it
        does not, the mean window (left, top, width and height in shares of the letterboxed square), and the largest distance
        of that map from the measured places, pixels.
    """
    s, structures = cells_per_token(data.grid), len(data.task.structures)
    mean = fitted.mean if isinstance(fitted.mean, MeanMask) else None
    oracles = {"cell_grid_oracle": GridOracle(s * data.grid[0], s * data.grid[1], structures, mean)}
    if mean is not None:  # one point per token would say nothing: a map is wider than that
        oracles["token_grid_oracle"] = GridOracle(*data.grid, structures, mean)
    names = ("", "mean", *oracles)
    scorers = {name: DenseScorer(data.task, with_volumes=not name) for name in names}
    unseen: list[float] = []
    windows: list[Window] = []
    answers: list[bytes | list[float]] = []
    for label, box, window, tokens in data.with_tokens("test"):
        unseen.append(window.unseen(box))
        windows.append(window)
        answer = fitted.read_out.predict(box, window, tokens)
        answers.append(answer_content(answer))
        scorers[""].update(label, answer)
        scorers["mean"].update(label, fitted.mean.predict(box, window, tokens))
        for name, oracle in oracles.items():
            scorers[name].update(label, oracle.predict(label, box, window))
    if not unseen:
        raise NotApplicable(f"{data.task.name} has no labelled test frames here")
    edges = np.mean([(one.left, one.top, one.width, one.height) for one in windows], axis=0)
    geometry = {
        "unseen_share": float(np.mean(unseen)),
        "window": edges.tolist(),
        "window_residual": max(one.residual for one in windows),
    }
    return scorers.pop(""), scorers, answers, geometry


def floor_scorer(
    plan: FramePlan, name: str, protocol: DensePrediction, read_out: DenseVariant, limit: int | None
) -> DenseScorer:
    """Return the scores of a floor's tokens under the same protocol; computed once for all models of a run."""
    read_out = replace(read_out, further="") if read_out.further == "clip" else read_out
    dataset, task = plan.dataset, plan.plans[name].frames.task
    key = sha256_of_json([plan.plans[name].store.key, task.name, read_out.name, dataset.table.digest, limit])
    if key not in plan.scored:
        data = plan.data(name)
        fitted = protocol.fit(data, read_out)
        scorer = DenseScorer(task, with_volumes=False)
        for label, box, window, tokens in data.with_tokens("test"):
            scorer.update(label, fitted.read_out.predict(box, window, tokens))
        plan.scored[key] = scorer
    return plan.scored[key]


def listed_fractions(dataset: OpenDataset, task: Task) -> pd.Series | None:
    """Return the ejection fraction that the release lists for each unit of a task, %; None where it lists none."""
    if "ef" not in dataset.frame or task.rules.frame_label != "mask":
        return None
    return dataset.frame.groupby(task.unit_column)["ef"].first().dropna()
