import numpy as np
import pytest

from cardiobench.data.media.types import Clip


def clip_of(n_frames: int, height: int = 60, width: int = 80, seed: int = 0) -> Clip:
    """Return a clip of noise with rising and falling brightness."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 160, (n_frames, height, width, 3))
    beat = (40 * (1 + np.sin(np.arange(n_frames) / 3))).astype(int)[:, None, None, None]
    return Clip((noise + beat).astype(np.uint8), np.arange(n_frames), n_frames)


@pytest.fixture(scope="session")
def clips():
    """Return recordings of different length and shape, including a still image."""
    return [clip_of(16, seed=1), clip_of(5, 100, 101, seed=2), clip_of(1, 90, 60, seed=3)]
