"""Normalisation of frames by a table of 256 numbers per channel, bit-identical to arithmetic on every pixel."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from cardiobench.models.blocks.crop import opencv
from cardiobench.models.tokens import spatial_tokens

LEVELS = 256


def torchvision_levels(mean: Sequence[float] | float, std: Sequence[float] | float) -> torch.Tensor:
    """Return the grey levels of each channel after torchvision's `ToTensor` and `Normalize`.

    The array is float32 (3, 256).
    """
    levels = torch.arange(LEVELS, dtype=torch.float32)
    return (levels / 255 - _column(mean)) / _column(std)


def level_tables(mean: Sequence[float] | float, std: Sequence[float] | float) -> Iterator[torch.Tensor]:
    """Yield the table (3, 256) of torchvision, and those of the torch and NumPy processors of transformers."""
    levels = torch.arange(LEVELS, dtype=torch.float32)
    yield torchvision_levels(mean, std)
    yield (levels - _column(mean) * 255) / (_column(std) * 255)
    yield (levels * (1 / 255) - _column(mean)) / _column(std)


def _column(values: Sequence[float] | float) -> torch.Tensor:
    """Return one number per channel. The array is float32 (3, 1); a single number is that of all channels."""
    return torch.tensor(values, dtype=torch.float32).reshape(-1, 1).expand(3, 1)


def look_up(frames: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    """Return frames uint8 (..., 3, h, w) with grey levels mapped by the table `levels` (3, 256) of float32."""
    if (
        frames.device.type != "cpu"
    ):  # One channel at a time, because an index needs eight times the memory of its frame.
        chosen = [levels[channel][frames[..., channel, :, :].int()] for channel in range(3)]
        return torch.stack(chosen, dim=-3)
    planes = np.ascontiguousarray(frames.numpy()).reshape(-1, 3, *frames.shape[-2:])
    table, normalised = levels.numpy(), np.empty(planes.shape, np.float32)
    replace = opencv().LUT
    for plane, target in zip(planes, normalised, strict=True):
        for channel in range(3):
            replace(plane[channel], table[channel], target[channel])
    return torch.from_numpy(normalised).reshape(frames.shape)


class Normalised(torch.nn.Module):
    """A network that normalises frames on its device, so that only a quarter of the bytes is transferred.

    Frames uint8 (..., 3, h, w) are mapped by a table; other inputs are unchanged.
    """

    def __init__(self, network: torch.nn.Module, levels: torch.Tensor):
        super().__init__()
        self.network = network
        self.levels: torch.Tensor
        self.register_buffer("levels", levels, persistent=False)

    def normalise(self, parts: torch.Tensor) -> torch.Tensor:
        """Normalise uint8 frames to float32 of the same shape, as the library's own transform does; others are unchanged."""
        return look_up(parts, self.levels) if parts.dtype == torch.uint8 else parts

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, dim)."""
        return self.network(self.normalise(parts))

    def tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as tokens (N, times, rows, columns, width)."""
        return spatial_tokens(self.network, self.normalise(parts))


Prepare = Callable[[np.ndarray], torch.Tensor]


def by_table(
    network: torch.nn.Module, full: Prepare, lean: Prepare, mean: Sequence[float] | float, std: Sequence[float] | float
) -> tuple[torch.nn.Module, Prepare]:
    """Replace the normalisation of a preparation by a table in front of the network if the result is identical.

    Args:
        network: Network for normalised parts.
        full: The library's own preparation.
        lean: Preparation without its last step, the normalisation.
        mean: Mean used by the normalisation, one per channel or one for all.
        std: Standard deviation used by the normalisation, one per channel or one for all.

    Returns:
        (network, preparation): the lean pair if it gives bit-identical results for random frames (colour and grey, wide
        and tall), otherwise the given pair, as for a processor that scales before it resizes, or for grey input.
    """
    colour = np.random.default_rng(0).integers(0, LEVELS, (2, 61, 83, 3), dtype=np.uint8)
    grey = np.repeat(colour[..., :1], 3, axis=3).transpose(0, 2, 1, 3)
    wanted = [full(frames) for frames in (colour, grey)]
    try:
        pairs = [(lean(frames), expected) for frames, expected in zip((colour, grey), wanted, strict=True)]
    except (RuntimeError, TypeError, ValueError):  # A later step of the processor needs normalised frames.
        return network, full
    if any(parts.dtype != torch.uint8 or parts.shape != expected.shape for parts, expected in pairs):
        return network, full
    if pairs[0][0].shape[-3:-2] != (3,):
        return network, full
    for levels in level_tables(mean, std):
        if all(torch.equal(look_up(parts, levels), expected.float()) for parts, expected in pairs):
            return Normalised(network, levels), lean
    return network, full
