"""Write tiny recordings in the formats of the releases."""

from pathlib import Path

import nibabel
import numpy as np

from cardiobench.data.media.write import avi


def write_avi(path: Path, level: int = 90, frames: int = 3) -> None:
    """Write a motion-JPEG AVI of 16 x 16 pixels with frames of increasing brightness."""
    path.parent.mkdir(parents=True, exist_ok=True)
    clip = np.full((frames, 16, 16, 3), level, np.uint8) + np.arange(frames, dtype=np.uint8)[:, None, None, None]
    path.write_bytes(avi(clip, 25))


def write_nifti(path: Path, level: int = 90, frames: int = 3) -> None:
    """Write a NIfTI volume (x, y, time) of 12 x 8 pixels with a marked corner that identifies the axes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    volume = np.full((12, 8, frames), level, np.uint8)
    volume[9:, :2] = 255
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), path)
