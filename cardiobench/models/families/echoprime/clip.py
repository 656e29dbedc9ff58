"""Input of EchoPrime: every second of the first 32 frames, cropped; missing frames are zero after normalisation."""

import numpy as np
import torch

from cardiobench.models.blocks.channels import on_device
from cardiobench.models.blocks.crop import crop_and_scale
from cardiobench.models.families.echoprime.network import FRAMES, SIZE

STRIDE = 2
# Mean and standard deviation of grey levels 0 to 255 for red, green and blue.
MEAN = (29.110628, 28.076836, 29.096405)
STD = (47.989223, 46.456997, 47.20083)


def prepared(frames: np.ndarray) -> torch.Tensor:
    """Crop and resize frames into a block of fixed size that also stores their number.

    Args:
        frames: Uint8 RGB, (T, H, W, 3), 1 <= T <= 16, already sampled.

    Returns:
        Block, uint8 (17, 224, 224, 3): a header with T as its first number, the frames, and zeros. The number is needed
            because black frames are also zero before normalisation.
    """
    block = np.zeros((1 + FRAMES, SIZE, SIZE, 3), dtype=np.uint8)
    block[0, 0, 0, 0] = len(frames)
    for number, frame in enumerate(frames, start=1):
        block[number] = crop_and_scale(frame, (SIZE, SIZE), zoom=0.1, border="truncate")
    return torch.from_numpy(block)


def normalised(blocks: torch.Tensor) -> torch.Tensor:
    """Normalise prepared clips uint8 (N, 17, 224, 224, 3) to float (N, 3, 16, 224, 224); absent frames are zero."""
    mean, std = (on_device(values, blocks.device) for values in (MEAN, STD))
    counts = blocks[:, 0, 0, 0, 0].long()
    present = torch.arange(FRAMES, device=blocks.device) < counts[:, None]
    levels = (blocks[:, 1:].float() - mean) / std
    return (levels * present[:, :, None, None, None]).movedim(-1, 1)
