"""Predict the labelled test frames and compute floors and ceilings."""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import numpy as np
from PIL import Image

from cardiobench.core.errors import NotApplicable
from cardiobench.extensions.dense.data import DenseData
from cardiobench.extensions.dense.geometry import Window
from cardiobench.extensions.dense.head import cells_per_token
from cardiobench.extensions.dense.oracle import GridOracle
from cardiobench.extensions.dense.readouts import FittedReadOut, MeanMask
from cardiobench.extensions.dense.tokens import FramePlan
from cardiobench.extensions.dense.variants import DenseVariant
from cardiobench.protocols.frame import FrameOutput
from cardiobench.tasks.frames import DenseScorer

Fit = Callable[[DenseData, DenseVariant], FittedReadOut]


def predict_frames(plan: FramePlan, fit: Fit, read_out: DenseVariant) -> FrameOutput:
    """Fit a read-out and predict the labelled test frames.

    Args:
        plan: Tokens of the model and of the baselines.
        fit: Function that fits a read-out with the protocol options.
        read_out: Read-out to fit.

    Raises:
        NotApplicable: No training frames are available, or the transform is not a crop.
    """
    data = plan.data()
    output = answer_test(data, fit(data, read_out))
    further = {name.replace("-", "_"): floor_scorer(plan, name, fit, read_out) for name in plan.floors}
    return replace(output, floors={**output.floors, **further})


def answer_test(data: DenseData, fitted: FittedReadOut) -> FrameOutput:
    """Predict the test frames one at a time.

    Returns:
        Protocol output with the predictions, two reference predictions (the mean training label as `best_uninformed`,
        and the best prediction that the token and cell grids can represent), and details on the visible area: mean
        fraction of a frame's pixels outside it, mean window (left, top, width and height as fractions of the
        letterboxed square), and largest deviation from the measured positions in pixels.
    """
    s, structures = cells_per_token(data.grid), len(data.task.structures)
    mean = fitted.mean if isinstance(fitted.mean, MeanMask) else None
    oracles = {"cell_grid_oracle": GridOracle(s * data.grid[0], s * data.grid[1], structures, mean)}
    if mean is not None:  # A single token per point is not informative, because a map is wider than one token.
        oracles["token_grid_oracle"] = GridOracle(*data.grid, structures, mean)
    scorer = DenseScorer(data.task)
    floors = {name: DenseScorer(data.task, with_volumes=False) for name in ("best_uninformed", *oracles)}
    unseen: list[float] = []
    windows: list[Window] = []
    answers: list[bytes | list[float]] = []
    for label, box, window, tokens in data.with_tokens("test"):
        unseen.append(window.unseen(box))
        windows.append(window)
        answer = fitted.read_out.predict(box, window, tokens)
        answers.append(answer_content(answer))
        scorer.update(label, answer)
        floors["best_uninformed"].update(label, fitted.mean.predict(box, window, tokens))
        for name, oracle in oracles.items():
            floors[name].update(label, oracle.predict(label, box, window))
    if not unseen:
        raise NotApplicable(f"{data.task.name} has no labelled test frames here")
    edges = np.mean([(one.left, one.top, one.width, one.height) for one in windows], axis=0)
    geometry = {
        "unseen_share": float(np.mean(unseen)),
        "window": edges.tolist(),
        "window_residual": max(one.residual for one in windows),
    }
    return FrameOutput(scorer, floors, answers, {**fitted.details, **geometry})


def answer_content(answer: np.ndarray) -> bytes | list[float]:
    """Return a mask, uint8 (H, W), as PNG or points, (k, 2), as a list."""
    if answer.ndim == 2 and answer.dtype == np.uint8:
        content = BytesIO()
        Image.fromarray(answer).save(content, format="PNG")
        return content.getvalue()
    return [float(value) for value in answer.ravel()]


def floor_scorer(plan: FramePlan, name: str, fit: Fit, read_out: DenseVariant) -> DenseScorer:
    """Return the scores of a baseline's tokens, computed once per run."""
    read_out = replace(read_out, further="") if read_out.further == "clip" else read_out
    tokens = plan.plans[name]
    key = ("dense floor", tokens.store.folder, tokens.frames.task.name, read_out.name)
    if key not in plan.scored:
        data = plan.data(name)
        fitted = fit(data, read_out)
        scorer = DenseScorer(tokens.frames.task, with_volumes=False)
        for label, box, window, tokens_of_frame in data.with_tokens("test"):
            scorer.update(label, fitted.read_out.predict(box, window, tokens_of_frame))
        plan.scored[key] = scorer
    return plan.scored[key]
