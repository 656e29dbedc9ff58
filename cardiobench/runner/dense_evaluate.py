"""One dense task of one model: a read-out is fitted, the test frames are answered, masks or points are scored."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from cardiobench.core.errors import NotApplicable
from cardiobench.core.io import sha256_of_json
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.protocols.dense.data import DenseData
from cardiobench.protocols.dense.geometry import Window
from cardiobench.protocols.dense.head import cells_per_token
from cardiobench.protocols.dense.oracle import GridOracle
from cardiobench.protocols.dense.protocol import DensePrediction, FittedReadOut
from cardiobench.protocols.dense.readouts import MeanMask
from cardiobench.protocols.dense.variants import DenseVariant
from cardiobench.results.predictions_file import load_cached_score, save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cell import BaseCell, result_context
from cardiobench.runner.dense_tokens import TokenPlan
from cardiobench.runner.references import expected_units, limited_references
from cardiobench.scoring.score import score
from cardiobench.tasks.frames import DenseScorer, FrameAnswers
from cardiobench.tasks.mask_volumes import PREDICTED


@dataclass(frozen=True)
class DenseCell(BaseCell[ScoreResult]):
    """One model, dense task and read-out.

    Attributes:
        read_out: of the protocol.
        plans: name -> tokens of the model (`""`) and of the floors.
        unreadable: name -> ids of frames without tokens.
        floors: floors that were scored already, by their key; shared by all models of a run.
    """

    protocol: DensePrediction
    read_out: DenseVariant
    plans: Mapping[str, TokenPlan]
    unreadable: Mapping[str, frozenset[str]]
    floors: dict[str, DenseScorer]

    @property
    def task(self) -> Task:
        """The task that is predicted."""
        return self.tasks[0]

    @property
    def variant(self) -> str:
        """Name of the read-out."""
        return self.read_out.name

    @property
    def dataset(self) -> OpenDataset:
        """The dataset of the task."""
        return self.plans[""].frames.dataset

    @property
    def label(self) -> str:
        """The protocol with its variant."""
        return f"{self.protocol.name}.{self.variant}" if self.variant else self.protocol.name

    def inputs(self) -> Mapping[str, Any]:
        """Return dataset, tokens, variant and what could not be read."""
        return {
            "dataset": self.dataset.table.digest,
            "tokens": {name: plan.store.key for name, plan in self.plans.items()},
            "variant": self.variant,
            "unreadable": {name: sorted(ids) for name, ids in self.unreadable.items()},
        }

    def load_cached(self) -> ScoreResult | None:
        """Return the saved result if its key matches and its predictions are there, else None."""
        return load_cached_score(self.path, self.key)


def evaluate_dense(cell: DenseCell) -> tuple[ScoreResult, list[Path]]:
    """Fit, predict, score and save one cell.

    Returns:
        The result, and the files that were written.

    Raises:
        NotApplicable: there is nothing to learn from, or a transform that is no crop.
    """
    started = time.perf_counter()
    config, task, plan = cell.config, cell.task, cell.plans[""]
    data = plan.data(cell.unreadable[""])
    fitted = cell.protocol.fit(data, cell.read_out)
    scorer, ceilings, answers, geometry = answer_test(data, fitted)
    floors = {"best_uninformed": ceilings.pop("mean"), **ceilings}
    for name in cell.plans:
        if name:
            floors[name.replace("-", "_")] = floor_scorer(cell, name)
    ef = listed_fractions(cell.dataset, task)
    references = limited_references(cell.dataset, task, config.limit)
    expected = expected_units(cell.dataset, task, references, config.limit)
    answered = FrameAnswers(scorer, floors, expected, ef)
    context = result_context(cell, task, cell.dataset, cell.variant, {**fitted.details, **geometry})
    result = score(answered, references, context)
    stamp = {
        **cell.provenance(),
        "embeddings": plan.store.key,
        "seconds": round(time.perf_counter() - started, 3),
    }
    result = replace(result, stamp={**result.stamp, **stamp})
    return save_scored(result, predictions_table(scorer, answers, ef), cell.path)


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


def floor_scorer(cell: DenseCell, name: str) -> DenseScorer:
    """Return the scores of a floor's tokens under the same protocol; computed once for all models of a run."""
    plan = cell.plans[name]
    read_out = replace(cell.read_out, further="") if cell.read_out.further == "clip" else cell.read_out
    key = sha256_of_json([plan.store.key, cell.task.name, read_out.name, cell.dataset.table.digest, cell.config.limit])
    if key not in cell.floors:
        data = plan.data(cell.unreadable[name])
        fitted = cell.protocol.fit(data, read_out)
        scorer = DenseScorer(data.task, with_volumes=False)
        for label, box, window, tokens in data.with_tokens("test"):
            scorer.update(label, fitted.read_out.predict(box, window, tokens))
        cell.floors[key] = scorer
    return cell.floors[key]


def listed_fractions(dataset: OpenDataset, task: Task) -> pd.Series | None:
    """Return the ejection fraction that the release lists for each unit of a task, %; None where it lists none."""
    if "ef" not in dataset.frame or task.rules.frame_label != "mask":
        return None
    return dataset.frame.groupby(task.unit_column)["ef"].first().dropna()
