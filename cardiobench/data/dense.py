"""Dense labels: masks and landmarks of single frames, read one at a time."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import numpy as np

from cardiobench.core.errors import BadData, BadMedia
from cardiobench.data.spec import Task
from cardiobench.tasks.dense_label import (
    ATRIUM,
    CAVITY,
    LENGTHS,
    MYOCARDIUM,
    POINTS,
    STRUCTURES,
    UNKNOWN_FRAME,
    DenseLabel,
)

__all__ = [
    "ATRIUM",
    "CAVITY",
    "LENGTHS",
    "MYOCARDIUM",
    "PIXEL",
    "POINTS",
    "STRUCTURES",
    "UNKNOWN_FRAME",
    "DenseLabel",
    "Reading",
    "check_inside",
    "check_mask",
    "check_spacing",
    "read_label",
]

PIXEL = (0.001, 100.0)
"""Plausible side lengths of a pixel in mm; values outside indicate another unit or damage."""


class Reading(TypedDict, total=False):
    """Content of a label as read from the release."""

    mask: np.ndarray
    points: np.ndarray
    spacing: tuple[float, float] | None


def read_label(
    task: Task, row: Mapping[str, Any], frame: int, read: Callable[[], Reading], *, phase: str | None = None
) -> DenseLabel:
    """Return the label of a frame, with a reason if it is damaged or contradictory.

    Args:
        task: Task that the label belongs to.
        row: Row of the recording.
        frame: Index of the frame.
        read: Function that returns the validated content; raises `BadData` or `BadMedia` with file and row.
        phase: Cardiac phase of the frame.
    """
    content: Reading = {}
    reason = ""
    try:
        content = read()
    except (BadData, BadMedia) as error:
        reason = str(error)
    return DenseLabel(
        task=task.name,
        unit=str(row[task.unit_column]),
        patient=str(row["patient_id"]),
        split=str(row["split"]),
        recording=str(row["id"]),
        frame=frame,
        phase=phase,
        view=row.get("view"),
        reason=reason,
        **content,
    )


def check_mask(mask: np.ndarray, structures: int, size: tuple[int, int], source: str) -> np.ndarray:
    """Check a mask and return it.

    Args:
        mask: Uint8 (H, W).
        structures: Highest allowed label.
        size: Height and width of the frame that it belongs to.
        source: File and row, for messages.

    Raises:
        BadData: The mask differs in size from the frame, has an unknown label, or has no structure.
    """
    if mask.shape != size:
        raise BadData(
            f"{source}: the mask has {mask.shape[0]} x {mask.shape[1]} pixels, but its frame has {size[0]} x {size[1]}. "
            "Download both again."
        )
    highest = int(mask.max(initial=0))
    if highest > structures:
        raise BadData(f"{source}: the mask has the label {highest}; expected 0 to {structures}. Download it again.")
    if highest == 0:
        raise BadData(f"{source}: the mask is empty. Remove the frame from the release's table, or download it again.")
    return mask


def check_spacing(spacing: tuple[float, float], source: str) -> tuple[float, float]:
    """Check the pixel size and return it; raises `BadData` if a side is outside `PIXEL`."""
    low, high = PIXEL
    if not all(low <= side <= high for side in spacing):
        raise BadData(
            f"{source}: the pixel size is {spacing[0]:g} x {spacing[1]:g} mm; expected lengths from {low:g} to {high:g} mm. "
            "Download it again."
        )
    return spacing


def check_inside(points: np.ndarray, size: tuple[int, int], source: str) -> np.ndarray:
    """Check that points (k, 2), x and y, lie in an image of `size` (height, width), and return them.

    Raises:
        BadData: A point lies more than half a pixel beyond an edge.
    """
    outside = (points < -0.5) | (points > np.array([size[1], size[0]]) - 0.5)
    if outside.any():
        x, y = points[outside.any(axis=1)][0]
        raise BadData(
            f"{source}: the point ({x:g}, {y:g}) lies outside the image of {size[1]} x {size[0]} pixels. "
            "Correct the row, or download the table again."
        )
    return points
