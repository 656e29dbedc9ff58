"""Hand-crafted features of an echo clip without learning: darkness, motion and timing of the chambers."""

from typing import Any

import numpy as np
import torch
from scipy import ndimage

from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.cards import ModelCard

COMPONENT = "adapter pixel-motion"
VERSION = 1

SIZE = 64  # Frames are resized to SIZE x SIZE before measuring.
GRID = 8  # Measurements are averaged over GRID x GRID blocks of equal size.
SMOOTH = 1.0  # Standard deviation of the speckle filter, in pixels.

# Regions of the frame as slices of rows and columns of blocks.
REGIONS = {
    "all": (slice(0, 8), slice(0, 8)),
    "centre": (slice(2, 6), slice(2, 6)),
    "top": (slice(0, 4), slice(2, 6)),
    "bottom": (slice(4, 8), slice(2, 6)),
    "left": (slice(2, 6), slice(0, 4)),
    "right": (slice(2, 6), slice(4, 8)),
}
THRESHOLDS = {"low": 0.6, "otsu": 1.0}  # Pixels below this fraction of Otsu's threshold are dark.
RHYTHM = 8  # Number of Fourier coefficients of a curve over time.

Features = dict[str, Any]  # A number or an array of fixed shape, by name.


def clip_features(frames: np.ndarray) -> Features:
    """Measure a clip; returns name -> number or array of fixed shape.

    Args:
        frames: Uint8 RGB, (T, H, W, 3), T >= 1. Motion features of a still are zero.
    """
    colour = small(frames)
    grey = (colour[:, 0] + colour[:, 1] + colour[:, 2]) / 3
    mean, spread = grey.mean(axis=0), grey.std(axis=0)
    sector = grey.max(axis=0) > 0.04
    smooth = ndimage.gaussian_filter1d(ndimage.gaussian_filter1d(grey, SMOOTH, axis=1), SMOOTH, axis=2)
    inside = grey[:, sector]
    otsu = otsu_threshold(smooth[:, sector] if sector.any() else smooth)

    features: Features = {
        "aspect": frames.shape[2] / frames.shape[1],
        "frames": np.log(len(frames)) / 4,
        "otsu": otsu,
        "colour": 10 * np.abs(colour - grey[:, None]).mean(),
        "sector": sector.mean(),
        "sector_rows": blocks(sector).mean(axis=1),
        "sector_columns": blocks(sector).mean(axis=0),
        "histogram": counts(inside, 16) / max(inside.size, 1),
        "mean_image": blocks(mean),
        "motion_image": 5 * blocks(spread),
    }
    features |= brightness(grey, spread)
    area = blocks(sector)
    for level, share in THRESHOLDS.items():
        dark = (smooth < share * otsu) & sector
        dark_blocks = blocks(dark)
        for region, (rows, columns) in REGIONS.items():
            size = max(area[rows, columns].sum(), 1 / SIZE**2)
            features |= _named(f"{region}_{level}", curve(dark_blocks[:, rows, columns].sum(axis=(1, 2)) / size))
        features |= _named(f"cavity_{level}", curve(cavity_area(dark, sector, smooth.mean(axis=0))))
    return features


def small(frames: np.ndarray) -> np.ndarray:
    """Resize frames to float32 (T, 3, SIZE, SIZE) in [0, 1], bilinear with antialias, without keeping the aspect ratio."""
    planes = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2)
    resized = torch.nn.functional.interpolate(planes, (SIZE, SIZE), mode="bilinear", antialias=True)
    return resized.contiguous().numpy().astype(np.float32) / 255


def blocks(images: np.ndarray) -> np.ndarray:
    """Average images over GRID x GRID equal blocks: (..., SIZE, SIZE) to (..., GRID, GRID)."""
    side = SIZE // GRID
    return images.reshape(*images.shape[:-2], GRID, side, GRID, side).mean(axis=(-3, -1), dtype=np.float32)


def brightness(grey: np.ndarray, spread: np.ndarray) -> Features:
    """Measure brightness, texture and their change over time in each block of the frame.

    Args:
        grey: Grey levels, (T, SIZE, SIZE).
        spread: Standard deviation over time, (SIZE, SIZE).
    """
    level, square, change = blocks(grey), blocks(grey**2), blocks(spread)
    step = blocks(np.abs(np.diff(grey, axis=0))) if len(grey) > 1 else np.zeros((1, GRID, GRID))
    features: Features = {}
    for region, (rows, columns) in REGIONS.items():
        level_over_time = level[:, rows, columns].mean(axis=(1, 2))
        variance = square[:, rows, columns].mean(axis=(1, 2)) - level_over_time**2
        steps = step[:, rows, columns].mean(axis=(1, 2))
        features |= _named(
            region,
            {
                "brightness": level_over_time.mean(),
                "brightness_spread": 10 * level_over_time.std(),
                "texture": np.sqrt(np.maximum(variance, 0)).mean(),
                "pixel_spread": 5 * change[rows, columns].mean(),
                "step": 10 * steps.mean(),
                "step_spread": 10 * steps.std(),
                "rhythm": rhythm(level_over_time),
            },
        )
    return features


def otsu_threshold(values: np.ndarray) -> float:
    """Compute Otsu's threshold of values in [0, 1] (64 bins).

    Source: N. Otsu, IEEE Trans. Syst. Man Cybern. 9 (1979) 62-66.
    """
    bins = 64
    histogram = counts(values, bins)
    below, total = np.cumsum(histogram)[:-1], histogram.sum()
    first_moment = np.cumsum(histogram * (np.arange(bins) + 0.5) / bins)
    above = total - below
    apart = first_moment[-1] * below - first_moment[:-1] * total
    between = np.divide(apart**2, below * above, out=np.zeros(len(below)), where=(below > 0) & (above > 0))
    # Empty bins between the classes have equal values; the threshold is their middle.
    best = np.flatnonzero(between >= between.max() * (1 - 1e-9))
    return float((best + 1).mean() / bins)


def counts(values: np.ndarray, bins: int) -> np.ndarray:
    """Count values in [0, 1], of any shape, in bins of equal width. Returns (bins,); 1 belongs to the last bin."""
    return np.bincount(np.minimum((values * bins).astype(np.intp), bins - 1).ravel(), minlength=bins)


def cavity_area(dark: np.ndarray, sector: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Measure the area of the dark chamber near the image centre in every frame as a share of the sector.

    Returns an array (T,).

    The chamber is the connected dark region that contains the seed, the darkest pixel of the mean image near the centre
    of the sector. The area is 0 in frames in which the seed is not dark.

    Args:
        dark: Dark pixels, bool (T, SIZE, SIZE).
        sector: Pixels of the sector, bool (SIZE, SIZE).
        mean: Mean image, (SIZE, SIZE).
    """
    rows, columns = np.mgrid[:SIZE, :SIZE]
    near = (np.hypot(rows - SIZE / 2, columns - SIZE / 2) < 0.22 * SIZE) & sector
    if not near.any():
        return np.zeros(len(dark))
    seed = np.unravel_index(np.argmin(np.where(near, mean, np.inf)), mean.shape)
    within_frames = np.zeros((3, 3, 3), dtype=bool)
    within_frames[1] = ndimage.generate_binary_structure(2, 1)
    labels, _ = ndimage.label(dark, within_frames)
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return sizes[labels[:, seed[0], seed[1]]] / sector.sum()


def curve(area: np.ndarray) -> Features:
    """Describe the contraction of a chamber from its area over time (T,): extremes, fractional change, volume change, rhythm.

    The change of volume assumes volume ~ area^1.5. Extremes are the 5th and 95th percentiles, which are robust to
    single bad frames.
    """
    low, middle, high = np.percentile(area, (5, 50, 95))
    change = 1 - low / high if high > 0 else 0.0
    return {
        "mean": area.mean(),
        "low": low,
        "middle": middle,
        "high": high,
        "first": area[0],
        "change": change,
        "volume_change": 1 - (1 - change) ** 1.5,
        "extreme_change": 1 - area.min() / area.max() if area.max() > 0 else 0.0,
        "spread": area.std() / area.mean() if area.mean() > 0 else 0.0,
        "rhythm": rhythm(area),
    }


def rhythm(values: np.ndarray) -> np.ndarray:
    """Compute the shares of a curve's variance (frames,) at 1, 2, ... cycles per clip, and a tenth of the dominant number.

    Returns an array (RHYTHM + 1,); zeros for a constant curve.
    """
    power = np.abs(np.fft.rfft(values - values.mean())[1:]) ** 2
    total = power.sum()
    if total < 1e-18:
        return np.zeros(RHYTHM + 1)
    shares = np.zeros(RHYTHM)
    shares[: len(power)] = power[:RHYTHM] / total
    return np.append(shares, (1 + np.argmax(power)) / 10)


def _named(prefix: str, features: Features) -> Features:
    return {f"{prefix}_{name}": value for name, value in features.items()}


def feature_vector(frames: np.ndarray) -> np.ndarray:
    """Concatenate all measurements of a clip into one float32 vector, in a fixed order."""
    return np.concatenate([np.ravel(value) for value in clip_features(frames).values()]).astype(np.float32)


class PixelMotion:
    """Training-free features of an echo clip, a baseline for models of motion and shape."""

    revision = str(VERSION)
    modalities = ("echo",)
    pooling = "mean"
    sampling = FrameSampling(count=64, start="uniform")
    warnings = ()

    def __init__(self, card: ModelCard):
        self.name = card.id
        self.dim = len(feature_vector(np.zeros((2, SIZE, SIZE, 3), dtype=np.uint8)))
        self.preprocessing = card.preprocessing

    def transform(self, recording: Clip) -> torch.Tensor:
        """Measure a clip. Returns an array (1, dim)."""
        return torch.from_numpy(feature_vector(recording.frames))[None]

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the measurements (N, dim) unchanged."""
        return parts

    def to(self, device: torch.device) -> "PixelMotion":
        """Return the encoder; there is nothing to move."""
        return self
