"""What the checks of clips and images measure; `media.checks` has the table of checks with their limits."""

from functools import cached_property

import numpy as np

from cardiobench.data.media.dicom_regions import COLOUR, SPECTRAL
from cardiobench.data.media.overlays import STATIC
from cardiobench.data.media.types import CheckValue, Clip

PIXELS = 48
"""Number of rows and columns of a frame that are compared, at least."""
DARK, BRIGHT = 24, 96
"""Grey levels of a pixel that counts as dark, at most, and as bright, at least."""
CONTRAST = 64
"""Difference in grey levels between a character and its background, at least."""
ROWS = 128
"""Number of rows of a frame that are searched for text, at least."""
LIT = 0.005
"""Fraction of pixels that are not dark in a frame with an image."""
SAME = 0.05
"""Mean difference in grey levels below which two frames show the same image."""
FROZEN = 0.5
"""Mean difference in grey levels below which a whole clip shows the same image."""
FEWEST_FRAMES = 8
"""Frames needed to tell text from tissue, which moves."""


class ClipSigns:
    """Properties of a clip that several checks use, each computed once.

    Attributes:
        clip: The recording.
        some: Part of its pixels, (T, h, w, 3).
    """

    def __init__(self, clip: Clip):
        self.clip = clip
        height, width = clip.frames.shape[1:3]
        self.step = max(height // PIXELS, 1), max(width // PIXELS, 1)
        self.some = np.ascontiguousarray(clip.frames[:, :: self.step[0], :: self.step[1]])

    @cached_property
    def changes(self) -> np.ndarray:
        """Mean difference of each of T frames to the one before, in grey levels. The shape is (T - 1,)."""
        return _difference(self.some[1:], self.some[:-1]) if len(self.some) > 1 else np.zeros(0)

    @cached_property
    def frozen(self) -> float:
        """Largest mean difference of a frame to the first one, in grey levels; infinite for a single frame."""
        if len(self.some) < 2:
            return np.inf
        return float(_difference(self.some[1:], self.some[:1]).max())

    @cached_property
    def dark(self) -> np.ndarray:
        """Whether each frame is black. The shape is (T,)."""
        return (self.some > DARK).any(axis=-1).mean(axis=(1, 2)) < LIT


def _difference(frames: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the mean absolute difference of frames (T, h, w, 3) to others. The shape is (T,)."""
    changes = (np.maximum(frames, others) - np.minimum(frames, others)).reshape(len(frames), frames[0].size)
    return changes.sum(axis=1, dtype=np.uint32) / changes.shape[1]


def black(signs: ClipSigns) -> CheckValue | None:
    """Measure the fraction of black frames."""
    return CheckValue(float(signs.dark.mean()), f"{int(signs.dark.sum())} of {len(signs.dark)} frames")


def frozen(signs: ClipSigns) -> CheckValue | None:
    """Measure how much the clip changes; None if it is black."""
    return None if signs.dark.all() else CheckValue(signs.frozen, f"{len(signs.some)} frames show the same image")


def repeated(signs: ClipSigns) -> CheckValue | None:
    """Measure the fraction of frames that equal the one before; None if all do, or if the clip is black."""
    if len(signs.some) < 2 or signs.frozen < FROZEN or signs.dark.all():
        return None
    same = (signs.changes < SAME) & ~signs.dark[1:]
    return CheckValue(float(same.mean()), f"{int(same.sum())} of {len(signs.some)} frames repeat the one before")


def frame_rate(signs: ClipSigns) -> CheckValue | None:
    """Measure the frame rate; None if the file states none."""
    fps = signs.clip.fps
    return None if fps is None or signs.clip.n_frames < 2 else CheckValue(fps, f"{fps:.4g} frames per second")


def still(signs: ClipSigns) -> CheckValue | None:
    """Count the frames of the recording, decoded or not."""
    return CheckValue(signs.clip.n_frames, "a single frame")


def small_frame(signs: ClipSigns) -> CheckValue | None:
    """Measure the smaller side of the frame."""
    height, width = signs.clip.frames.shape[1:3]
    return CheckValue(min(height, width), f"{height} x {width} pixels")


def text(signs: ClipSigns) -> CheckValue | None:
    """Measure bright pixels beside much darker ones that do not move or are outside the regions of the file."""
    frames = signs.clip.frames
    places = np.unique(np.linspace(0, len(frames) - 1, FEWEST_FRAMES).round().astype(int))
    rows = max(frames.shape[1] // ROWS, 1)
    some = frames[places, ::rows]
    still = len(places) < FEWEST_FRAMES or signs.frozen < FROZEN
    fixed = np.zeros(some.shape[1:3], bool) if still else (some.max(axis=0) - some.min(axis=0) <= STATIC).all(axis=-1)
    if signs.clip.regions:
        outside = np.ones(frames.shape[1:3], bool)
        for left, top, right, bottom in signs.clip.regions:
            outside[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = False
        fixed |= outside[::rows]
    elif still:
        return None  # Text cannot be told from tissue.
    level = some[0].max(axis=-1).astype(np.int16)
    edge = (np.abs(np.diff(level, axis=1)) >= CONTRAST) & fixed[:, 1:] & fixed[:, :-1]
    bright = edge & (np.maximum(level[:, 1:], level[:, :-1]) >= BRIGHT)
    return CheckValue(100 * float(bright.mean()), "text or graphics; --overlays mask blackens them")


def doppler(signs: ClipSigns) -> CheckValue | None:
    """Return 1 for colour flow, a spectrum or M-mode; None if the file declares nothing."""
    if not signs.clip.kind:
        return None
    return CheckValue(float(signs.clip.kind in (COLOUR, SPECTRAL)), f"its header declares {signs.clip.kind} data")
