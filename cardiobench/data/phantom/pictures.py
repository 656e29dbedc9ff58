"""Phantom clips in the shapes of the releases, and tracings of the ventricle."""

import numpy as np

from cardiobench.data.phantom.echo import EchoTruth, echo_mask


def letterbox(frames: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a clip or masks (T, H, W, ...), centred in black images of `height` x `width`."""
    tall, wide = frames.shape[1:3]
    framed = np.zeros((len(frames), height, width, *frames.shape[3:]), frames.dtype)
    top, left = (height - tall) // 2, (width - wide) // 2
    framed[:, top : top + tall, left : left + wide] = frames
    return framed


def fps_of_whole_beats(heart_rate: float, near: float) -> float:
    """Return the frame rate nearest to `near` with a whole number of frames per beat, so every beat shows ED."""
    beat = 60.0 / heart_rate
    return round(beat * near) / beat


def chords(truth: EchoTruth, frame: int, fps: float, count: int = 20) -> np.ndarray:
    """Return the tracing of the cavity in a frame: its long axis, then `count` chords across it from apex to base.

    Returns:
        X1, Y1, X2, Y2 in pixels of a 112 x 112 image, float64 (1 + count, 4).
    """
    points = np.argwhere(echo_mask(truth, frames=1, first=frame, fps=fps)[0])[:, ::-1].astype(float)
    middle = points.mean(0)
    _, _, (axis, across) = np.linalg.svd(points - middle, full_matrices=False)
    along, aside = (points - middle) @ axis, (points - middle) @ across
    lines = [np.concatenate([middle + along.min() * axis, middle + along.max() * axis])]
    for position in along.min() + (np.arange(count) + 0.5) / count * np.ptp(along):
        chord = aside[np.abs(along - position) <= 1.0]
        lines.append(np.concatenate([middle + position * axis + end * across for end in (chord.min(), chord.max())]))
    return np.stack(lines)
