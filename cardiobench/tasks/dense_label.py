"""Label of a single frame: a mask or landmarks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

CAVITY, MYOCARDIUM, ATRIUM = STRUCTURES = ("cavity", "myocardium", "atrium")
POINTS = ("septum_right", "septum_left", "wall_inner", "wall_outer")
"""End points of the parasternal calipers, from the right ventricle to the pericardium."""
LENGTHS: Mapping[str, tuple[str, str]] = {
    "ivs": ("septum_right", "septum_left"),
    "lvid": ("septum_left", "wall_inner"),
    "lvpw": ("wall_inner", "wall_outer"),
}
"""Measurement -> its two end points in `POINTS`."""
UNKNOWN_FRAME = -1


@dataclass(frozen=True, eq=False)
class DenseLabel:
    """The label of one frame of a recording.

    Attributes:
        task: Name of the task.
        unit: Unit of scoring (`Task.unit_column`).
        patient: Patient id.
        split: Split of the patient.
        recording: `id` of the row that holds the frame.
        frame: Index in the decoded recording, from 0; `UNKNOWN_FRAME` if the release does not state it.
        mask: Uint8 (H, W), 0 background, then the task's structures in order; None for landmarks.
        points: Float64 (k, 2), x and y in pixels of the decoded frame, with the centre of the first pixel at 0, NaN for
            unlabelled points; None for segmentations.
        spacing: Height and width of a pixel, mm; None if the release does not state it.
        phase: "ED", "ES", or None.
        view: View of the recording, or None.
        size: Height and width of a mask that is not loaded to save memory; None otherwise.
        reason: Reason for a missing label; mask and points are then None.
    """

    task: str
    unit: str
    patient: str
    split: str
    recording: str
    frame: int
    mask: np.ndarray | None = None
    points: np.ndarray | None = None
    spacing: tuple[float, float] | None = None
    phase: str | None = None
    view: str | None = None
    size: tuple[int, int] | None = None
    reason: str = ""

    def without_mask(self) -> "DenseLabel":
        """Return the label without its mask, whose size is kept."""
        return self if self.mask is None else replace(self, mask=None, size=self.mask.shape)
