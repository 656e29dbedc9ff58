"""Plot the worst, median and best frames with true and predicted outlines or points."""

from base64 import b64encode
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pandas as pd
from markupsafe import Markup
from PIL import Image

from cardiobench.core.errors import BadMedia
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.metrics.load import load_metric
from cardiobench.report.page.examples import Example
from cardiobench.report.plots.style import figure_style, subplots
from cardiobench.tasks.dense_label import DenseLabel

SHOWN = 4  # Number of frames per group.
TRUE, PREDICTED = "#ffd23f", "#3fd0ff"
DESCRIPTION = "true in yellow, predicted in blue"


def frame_examples(dataset: OpenDataset, task: Task, frame: pd.DataFrame) -> Iterator[Example]:
    """Yield the worst, median and best frames.

    Args:
        dataset: Dataset with recordings and labels.
        task: Segmentation or landmark task.
        frame: Predictions, one row per frame, with id, recording, frame, answer and the scores of each structure.

    Yields:
        Examples: Frames with score and rank in place of label and prediction.
    """
    number = load_metric(task.metrics[0]).primary
    score = frame[[f"{number.key}_{name}" for name in task.structures]].mean(axis=1)
    order = frame.assign(score=score).dropna(subset=["score"]).sort_values("score", ascending=number.higher_is_better)
    chosen = pick(len(order))
    rows = dataset.task_rows(task)
    wanted = {(row.recording, row.frame) for row in order.iloc[list(chosen)].itertuples()}
    labels = {
        (label.recording, label.frame): label
        for label in dataset.dense_labels(task, rows[rows["id"].isin({name for name, _ in wanted})])
    }
    for position, place in chosen.items():
        row = order.iloc[position]
        label = labels.get((row["recording"], row["frame"]))
        described = f"{row['recording']}, frame {row['frame']}"
        value = number.with_unit(row["score"], task.unit, number.decimals(task.unit))
        picture = picture_of(dataset, label, row["answer"]) if label else "its label is not here"
        yield Example(str(row["id"]), described, f"{number.key} {value}", place, picture, DESCRIPTION)


def pick(count: int) -> dict[int, str]:
    """Return the ranks of the frames to show, from worst to best."""
    middle = max(0, count // 2 - SHOWN // 2)
    starts = {"worst": 0, "middle": middle, "best": max(0, count - SHOWN)}
    places: dict[int, str] = {}
    for name, start in starts.items():
        for position in range(start, min(start + SHOWN, count)):
            places.setdefault(position, name)
    return places


def mask_of(answer: bytes | np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a predicted mask from its PNG.

    The shape is (H, W); None if it is not a picture of this size, which is not decoded then.
    """
    try:
        with Image.open(BytesIO(bytes(answer)), formats=("PNG",)) as picture:
            return np.asarray(picture) if picture.size[::-1] == shape else None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # Of the file; Pillow raises all of them.
        return None


def picture_of(dataset: OpenDataset, label: DenseLabel, answer: bytes | np.ndarray) -> Markup | str:
    """Draw a frame with its true and predicted outlines or points, or the reason why it cannot be read."""
    try:
        grey = dataset.labelled_frame(label).frames[0]
    except BadMedia as error:
        return f"cannot be read: {error}"
    height, width = grey.shape[:2]
    predicted = mask_of(answer, label.mask.shape) if label.mask is not None else None
    ends = np.asarray([] if isinstance(answer, bytes) else answer, dtype=np.float64).reshape(-1, 2)
    if (label.mask is not None and predicted is None) or (
        label.points is not None and ends.shape != label.points.shape
    ):
        return "the saved answer does not belong to this frame"
    with figure_style():
        figure, axes = subplots(width=3.0, height=3.0 * height / width)
        axes.imshow(grey)
        axes.set_axis_off()
        if predicted is not None and label.mask is not None:
            for mask, colour, line in ((label.mask, TRUE, "-"), (predicted, PREDICTED, "--")):
                for value in np.unique(mask[mask > 0]):
                    axes.contour(
                        (mask == value).astype(float), levels=[0.5], colors=colour, linewidths=1.0, linestyles=line
                    )
        elif label.points is not None:
            labelled = np.isfinite(label.points).all(axis=1)
            (x, y), (dx, dy) = label.points[labelled].T, (ends - label.points)[labelled].T
            axes.plot(x, y, "+", color=TRUE, markersize=7)
            axes.quiver(x, y, dx, dy, angles="xy", scale_units="xy", scale=1, color=PREDICTED, width=0.008)
            # Mark the prediction with a dot, because a cross would hide a short arrow.
            axes.plot(x + dx, y + dy, "o", color=PREDICTED, markersize=2.5)
        content = BytesIO()
        figure.savefig(content, format="jpeg", bbox_inches="tight", pad_inches=0)
    code = b64encode(content.getvalue()).decode("ascii")
    return Markup('<img alt="" src="data:image/jpeg;base64,{}">').format(code)
