"""Perturb frame order, gain, contrast, speckle and sector width of echo clips, or drop frames."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import ndimage

from cardiobench.data.media.types import Clip

LEVELS = np.arange(256.0)  # All grey levels.


def shuffle(count: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Permute a random share, 0 to 1, of the frames (all in arXiv:2510.00520, Table 7). Returns frame indices (count,)."""
    moving = np.sort(rng.choice(count, round(share * count), replace=False))
    order = np.arange(count)
    order[moving] = rng.permutation(moving)
    return order


def reverse(count: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Reverse the frames. Returns frame indices (count,)."""
    return np.arange(count)[::-1]


def drop(count: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Replace a random share of the frames, except the first, by predecessors. Returns frame indices (count,)."""
    lost = np.zeros(count, dtype=bool)
    if count > 1:
        lost[1 + rng.choice(count - 1, min(round(share * count), count - 1), replace=False)] = True
    return np.maximum.accumulate(np.where(lost, 0, np.arange(count)))


ORDERS: dict[str, tuple[Callable[..., np.ndarray], tuple[float, ...]]] = {
    "shuffle": (shuffle, (0.5, 1.0)),
    "reverse": (reverse, (1.0,)),
    "drop": (drop, (0.5, 0.75)),
}
"""Mapping from name to function (number of frames, severity, generator) -> frame indices, and severities."""


def reorder(order: Callable, clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """Return the clip with reordered frames."""
    return replace(clip, frames=clip.frames[order(len(clip.frames), severity, rng)])


def gain(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """Multiply brightness by (1 + severity), clipped at white."""
    return replace(clip, frames=_grey((1 + severity) * LEVELS)[clip.frames])


def contrast(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """Shrink pixel deviations from the clip mean by a fraction; black background stays black."""
    counts = np.bincount(clip.frames.ravel(), minlength=len(LEVELS))
    counts[0] = 0
    middle = counts @ LEVELS / max(counts.sum(), 1)
    shrunk = _grey(middle + (1 - severity) * (LEVELS - middle))
    shrunk[0] = 0
    return replace(clip, frames=shrunk[clip.frames])


def speckle(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """Multiply by noise with grains of two pixels, new in every frame; severity is the standard deviation."""
    shape = clip.frames.shape[:3]
    grain = ndimage.gaussian_filter(rng.standard_normal(shape, dtype=np.float32), (0, 1, 1))
    grain /= max(float(grain.std()), 1e-12)
    return replace(clip, frames=_grey(clip.frames * (1 + severity * grain[..., None])))


def sector(clip: Clip, severity: float, rng: np.random.Generator) -> Clip:
    """Black out a fraction of the sector angle on both sides; the apex is at the centre of the upper edge."""
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


KINDS: dict[str, tuple[Callable[..., Clip], tuple[float, ...]]] = {
    **{name: (partial(reorder, order), severities) for name, (order, severities) in ORDERS.items()},
    "gain": (gain, (0.5, 1.0)),
    "contrast": (contrast, (0.5, 0.75)),
    "speckle": (speckle, (0.2, 0.4)),
    "sector": (sector, (0.25, 0.5)),
}
"""Mapping from name to function of a recording and severities."""
