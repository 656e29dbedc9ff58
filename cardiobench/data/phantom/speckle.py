"""Fully developed speckle: magnitude of a complex Gaussian field, finer along the beam than across it."""

from functools import cache

import numpy as np
from scipy.ndimage import gaussian_filter

CELL_CM = 0.09
"""Length of a cell of the field along the beam, cm."""
BEAMS = 1.4
"""Cells of the field per degree across the beam."""
FRAMES_PER_FIELD = 9.0
"""Frames after which the speckle has decorrelated completely."""

_ROWS, _COLUMNS = 1024, 512  # Powers of two, so that wrapping around is a bit mask.


@cache
def _field() -> np.ndarray:
    # A single large periodic field, from which every recording takes its own windows.
    rng = np.random.default_rng(20_231)
    parts = rng.standard_normal((2, _ROWS, _COLUMNS))
    smooth = np.stack([gaussian_filter(part, (1.1, 2.6), mode="wrap") for part in parts])
    # Two looks have a total mean power of 1.
    smooth /= np.sqrt(2 * (smooth**2).sum(0).mean())
    return (smooth[0] + 1j * smooth[1]).astype(np.complex64).ravel()


def speckle_db(radius: np.ndarray, angle: np.ndarray, frames: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the speckle of each pixel in each frame in dB, with mean power 0 dB.

    A frame interpolates between two independent fields with cosine and sine weights, so the sum is complex Gaussian and
    its magnitude Rayleigh-distributed at all times. The power of two such images is averaged, as in frequency
    compounding.

    Args:
        radius: Distance from the probe, (P,), cm.
        angle: Angle from the central beam, (P,), degrees.
        frames: Frame numbers, ascending, (T,).
        rng: Generator that chooses the windows; the same state gives the same speckle for any frames.

    Returns:
        Speckle, float32 (P, T).
    """
    row, column = np.round(radius / CELL_CM).astype(int), np.round(angle * BEAMS).astype(int)
    position = frames / FRAMES_PER_FIELD
    before = np.floor(position).astype(int)
    share = (position - before) * (np.pi / 2)
    offsets = rng.integers(0, (_ROWS, _COLUMNS, _ROWS, _COLUMNS), size=(before[-1] + 2, 4))[before[0] :]
    weights = np.zeros((len(offsets), len(frames)), np.float32)
    here = np.arange(len(frames))
    weights[before - before[0], here] = np.cos(share)
    weights[before - before[0] + 1, here] = np.sin(share)
    power = np.full((len(radius), len(frames)), 1e-4, np.float32)
    for look in (offsets[:, :2], offsets[:, 2:]):
        cells = ((row[:, None] + look[:, 0]) & (_ROWS - 1)) * _COLUMNS + (
            (column[:, None] + look[:, 1]) & (_COLUMNS - 1)
        )
        fields = _field()[cells]
        for part in (fields.real, fields.imag):
            amplitude = np.ascontiguousarray(part) @ weights
            amplitude *= amplitude
            power += amplitude
    np.log(power, out=power)
    power *= np.float32(10.0 / np.log(10.0))
    return power
