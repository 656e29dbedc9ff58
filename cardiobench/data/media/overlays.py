"""Masking of text and graphics in images, such as measured values."""

from dataclasses import replace

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.types import Clip

COMPONENT = "overlays"
VERSION = 1

STATIC = 8
"""Grey levels by which static pixels of a compressed video may flicker."""


def mask_overlays(clip: Clip, name: str) -> Clip:
    """Return a clip with everything outside the ultrasound blackened.

    Pixels outside the regions declared in the file are blackened. If no region is declared, pixels that are constant
    within `STATIC` levels over the decoded frames are blackened.

    Args:
        clip: Decoded clip.
        name: Name of the recording in messages.

    Raises:
        BadMedia: No region is declared and there is a single frame, in which text cannot be told from tissue.
    """
    frames = clip.frames.copy()
    if clip.regions:
        keep = np.zeros(frames.shape[1:3], bool)
        for left, top, right, bottom in clip.regions:
            keep[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = True
    elif len(frames) > 1:
        keep = (frames.max(axis=0).astype(np.int16) - frames.min(axis=0) > STATIC).any(axis=-1)
    else:
        raise BadMedia(
            f"{name} declares no ultrasound regions, and text cannot be told from tissue in a single frame. "
            "Leave --overlays mask out, or the recording."
        )
    frames[:, ~keep] = 0
    return replace(clip, frames=frames)
