"""Blacken text and graphics in the picture, such as measured values, so that only ultrasound remains."""

from dataclasses import replace

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.types import Clip

COMPONENT = "overlays"
VERSION = 1

STATIC = 8
"""Levels by which a compressed picture flickers where nothing moves."""


def mask_overlays(clip: Clip, name: str) -> Clip:
    """Return a clip of which everything is black that does not belong to the ultrasound.

    That is what lies outside the regions that the file declares; of a file without any, every pixel that stays the same,
    within `STATIC` levels, over the frames that are read.

    Args:
        clip: Decoded clip.
        name: Name of the recording in messages.

    Raises:
        BadMedia: No region is declared, and one frame alone does not tell text from tissue.
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
