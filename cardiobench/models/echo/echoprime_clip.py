"""EchoPrime's input: every second of the first 32 frames, cropped; missing frames are zero after normalisation."""

import numpy as np
import torch

from cardiobench.models.echo.crop import crop_and_scale
from cardiobench.models.nets.echoprime import FRAMES, SIZE

STRIDE = 2
# Of the grey levels 0 to 255, for red, green and blue.
MEAN = (29.110628, 28.076836, 29.096405)
STD = (47.989223, 46.456997, 47.20083)


def prepared(frames: np.ndarray) -> torch.Tensor:
    """Crop and resize frames into a block of fixed size that also holds their number.

    Args:
        frames: Uint8 RGB, (T, H, W, 3), 1 <= T <= 16, already every second one.

    Returns:
        uint8, (17, 224, 224, 3): a head whose first number is T, then the frames, then zeros. Zeros are also what a
        black frame looks like before it is normalised, hence the number.
    """
    block = np.zeros((1 + FRAMES, SIZE, SIZE, 3), dtype=np.uint8)
    block[0, 0, 0, 0] = len(frames)
    for number, frame in enumerate(frames, start=1):
        block[number] = crop_and_scale(frame, (SIZE, SIZE), zoom=0.1, border="truncate")
    return torch.from_numpy(block)


def normalised(blocks: torch.Tensor) -> torch.Tensor:
    """Normalise prepared clips uint8 (N, 17, 224, 224, 3) to float (N, 3, 16, 224, 224); absent frames are zero."""
    mean, std = (torch.tensor(values, device=blocks.device) for values in (MEAN, STD))
    counts = blocks[:, 0, 0, 0, 0].long()
    present = torch.arange(FRAMES, device=blocks.device) < counts[:, None]
    levels = (blocks[:, 1:].float() - mean) / std
    return (levels * present[:, :, None, None, None]).movedim(-1, 1)
