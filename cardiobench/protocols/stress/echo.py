"""Disturbances of echo clips: the order of their frames, lost frames, gain, contrast, speckle, a narrower sector."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import ndimage

from cardiobench.data.media.types import Clip

LEVELS = np.arange(256.0)  # of grey


def shuffle(count: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """A share of the frames, drawn at random, change places with each other (all of them: arXiv:2510.00520, Table 7)."""
    moving = np.sort(rng.choice(count, round(share * count), replace=False))
    order = np.arange(count)
    order[moving] = rng.permutation(moving)
    return order


def reverse(count: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """The frames backwards."""
    return np.arange(count)[::-1]


def drop(count: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """A share of the frames is lost, and the one before stays on the screen; the first frame is never lost."""
    lost = np.zeros(count, dtype=bool)
    if count > 1:
        lost[1 + rng.choice(count - 1, min(round(share * count), count - 1), replace=False)] = True
    return np.maximum.accumulate(np.where(lost, 0, np.arange(count)))


ORDERS = {"shuffle": (shuffle, (0.5, 1.0)), "reverse": (reverse, (1.0,)), "drop": (drop, (0.5, 0.75))}
"""name -> which frames are shown, and the severities; of a clip of `count` frames, their indices in order."""


def shown(order: Callable, clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """A clip with its frames in another order."""
    return replace(clip, frames=clip.frames[order(len(clip.frames), severity, rng)])


def gain(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """Brightness times (1 + severity), cut off at white."""
    return replace(clip, frames=_grey((1 + severity) * LEVELS)[clip.frames])


def contrast(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """The range between each pixel and the clip's mean shrunk by a share; black background stays black."""
    counts = np.bincount(clip.frames.ravel(), minlength=len(LEVELS))
    counts[0] = 0
    middle = counts @ LEVELS / max(counts.sum(), 1)
    shrunk = _grey(middle + (1 - severity) * (LEVELS - middle))
    shrunk[0] = 0
    return replace(clip, frames=shrunk[clip.frames])


def speckle(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """Multiplicative noise of grains two pixels wide, new in every frame; severity is its standard deviation."""
    shape = clip.frames.shape[:3]
    grain = ndimage.gaussian_filter(rng.standard_normal(shape, dtype=np.float32), (0, 1, 1))
    grain /= max(float(grain.std()), 1e-12)
    return replace(clip, frames=_grey(clip.frames * (1 + severity * grain[..., None])))


def sector(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """A share of the sector's angle is lost on both sides; the apex is the middle of the upper border."""
    _, height, width, _ = clip.frames.shape
    rows, columns = np.mgrid[:height, :width]
    angle = np.abs(np.arctan2(columns - (width - 1) / 2, rows + 1))
    lit = clip.frames.max(axis=0).max(axis=-1) > 10
    widest = np.quantile(angle[lit], 0.99) if lit.any() else np.pi / 2
    frames = clip.frames.copy()
    frames[:, angle > (1 - severity) * widest] = 0
    return replace(clip, frames=frames)


def _grey(frames: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(frames), 0, LEVELS[-1]).astype(np.uint8)


KINDS = {
    **{name: (partial(shown, order), severities) for name, (order, severities) in ORDERS.items()},
    "gain": (gain, (0.5, 1.0)),
    "contrast": (contrast, (0.5, 0.75)),
    "speckle": (speckle, (0.2, 0.4)),
    "sector": (sector, (0.25, 0.5)),
}
"""name -> what is done to a recording, and the severities."""
