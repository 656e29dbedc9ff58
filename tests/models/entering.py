"""Arrays that enter a network, and recordings with known content."""

import re

import cv2
import numpy as np
import torch

from cardiobench.data.media.types import Clip, Ecg


def entering(module: torch.nn.Module, encoder, recording) -> torch.Tensor:
    """Return the array that a module receives while its encoder encodes a recording."""
    inputs = []
    hook = module.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    try:
        encoder.encode(encoder.transform(recording))
    finally:
        hook.remove()
    return inputs[0]


# Leads of known frequency and amplitude.
HEIGHTS = 0.2 + 0.1 * np.arange(12)  # Amplitudes in mV.


FREQUENCIES = 3.0 + 3.0 * np.arange(12)  # Frequencies in Hz with whole cycles in ten seconds.


ABOVE = 180.0  # Frequency in Hz in every lead; it must vanish for networks with a rate below 360 Hz.


def waves(fs: float, leads=range(12), seconds: float = 10.0) -> np.ndarray:
    """Return one sine per lead at a sampling rate, shape (samples, leads), in millivolts."""
    time = np.arange(round(seconds * fs))[:, None] / fs
    leads = list(leads)
    return HEIGHTS[leads] * np.sin(2 * np.pi * FREQUENCIES[leads] * time)


def record(fs: float, above: float = ABOVE) -> Ecg:
    """Return the sines with an additional fast wave in every lead."""
    time = np.arange(round(10 * fs))[:, None] / fs
    return Ecg((waves(fs) + 0.3 * np.sin(2 * np.pi * above * time)).astype(np.float32), fs)


def entering_ecg(encoder, recording) -> np.ndarray:
    return entering(encoder.network, encoder, recording).numpy()


def golden_records(golden):
    """Return case, record and constant lead of every case in a golden file of preprocessing."""
    for case in golden.spec["cases"]:
        recipe, _, rest = case["input"].partition("; then lead ")
        shape, tag = re.search(r"make_input\(\((.*?)\), .*tag='(\w+)'\)", recipe).groups()
        signal = golden.input(tuple(map(int, shape.split(","))), "ecg", tag).T
        if rest:
            lead, _, value = rest.partition(" set to ")
            signal[:, int(lead)] = float(value)
        yield case, Ecg(signal.astype(np.float32), case["fs"])


KEY_FRAME = 7


def video(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return smooth, distinct uint8 RGB frames (T, H, W, 3), with red brighter than green and green than blue."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, 6, 8, 3)).astype(np.float32)
    frames = np.stack([cv2.resize(frame, (width, height), interpolation=cv2.INTER_LINEAR) for frame in coarse])
    return (frames * (1.0, 0.7, 0.4)).astype(np.uint8)


def seen_by(encoder, frames: np.ndarray) -> Clip:
    """Return the recording as the readers pass it to an encoder: its sampled frames, starting at a key frame."""
    indices = encoder.sampling.indices(len(frames), KEY_FRAME)
    return Clip(frames[indices], indices, len(frames))


def cropped(frame: np.ndarray, whole, size: int = 224) -> np.ndarray:
    """Return the central square of a wide frame, less one tenth on every side, with OpenCV's cubic interpolation."""
    height, width = frame.shape[:2]
    left = round((width - height) / 2)
    border = whole(0.1 * height)
    square = frame[:, left : width - left][border : height - border, border : -border or None]
    return cv2.resize(np.ascontiguousarray(square), (size, size), interpolation=cv2.INTER_CUBIC)


FROM_KEY, FROM_START = slice(KEY_FRAME, KEY_FRAME + 16), slice(0, 40, 2)
