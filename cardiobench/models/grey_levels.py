"""Normalisation of frames by a table: 256 numbers a channel in place of arithmetic on every pixel, equal to the last bit."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from cardiobench.models.echo.crop import opencv
from cardiobench.models.tokens import spatial_tokens

LEVELS = 256


def torchvision_levels(mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    """Return each channel's grey levels as torchvision's `ToTensor` and `Normalize` give them, float32 (3, 256)."""
    levels = torch.arange(LEVELS, dtype=torch.float32)
    return (levels / 255 - _column(mean)) / _column(std)


def level_tables(mean: Sequence[float], std: Sequence[float]) -> Iterator[torch.Tensor]:
    """Yield the table (3, 256) of each library: of torchvision, and of transformers' torch and NumPy processors."""
    levels = torch.arange(LEVELS, dtype=torch.float32)
    yield torchvision_levels(mean, std)
    yield (levels - _column(mean) * 255) / (_column(std) * 255)
    yield (levels * (1 / 255) - _column(mean)) / _column(std)


def _column(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)[:, None]


def look_up(frames: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    """Return frames uint8 (..., 3, h, w) with every grey level replaced by its number in `levels`, float32 (3, 256)."""
    if frames.device.type != "cpu":  # A channel at a time: an index takes eight times the memory of its frame.
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
    """A network behind the normalisation of its frames, done where the network is: only a quarter of the bytes travels.

    Frames uint8 (..., 3, h, w) become the numbers of a table; anything else is taken as it comes.
    """

    def __init__(self, network: torch.nn.Module, levels: torch.Tensor):
        super().__init__()
        self.network = network
        self.levels: torch.Tensor
        self.register_buffer("levels", levels, persistent=False)

    def normalise(self, parts: torch.Tensor) -> torch.Tensor:
        """Normalise frames to float32 as the library's own transform does."""
        return look_up(parts, self.levels) if parts.dtype == torch.uint8 else parts

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, dim)."""
        return self.network(self.normalise(parts))

    def tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as tokens (N, times, rows, columns, width)."""
        return spatial_tokens(self.network, self.normalise(parts))


Prepare = Callable[[np.ndarray], torch.Tensor]


def by_table(
    network: torch.nn.Module, full: Prepare, lean: Prepare, mean: Sequence[float], std: Sequence[float]
) -> tuple[torch.nn.Module, Prepare]:
    """Replace the normalisation at the end of a preparation by a table in front of the network, where nothing changes.

    Args:
        network: Network on normalised parts.
        full: The library's own preparation.
        lean: The same without its last step, the normalisation.
        mean: Mean of that step, three numbers.
        std: Standard deviation of that step, three numbers.

    Returns:
        (network, preparation): the lean pair where made-up frames, in colour and grey, wide and tall, come out the same to the last
        bit; otherwise the pair as given, as for a processor that scales before it resizes.
    """
    colour = np.random.default_rng(0).integers(0, LEVELS, (2, 61, 83, 3), dtype=np.uint8)
    grey = np.repeat(colour[..., :1], 3, axis=3).transpose(0, 2, 1, 3)
    pairs = [(lean(frames), full(frames)) for frames in (colour, grey)]
    if any(parts.dtype != torch.uint8 or parts.shape != expected.shape for parts, expected in pairs):
        return network, full
    for levels in level_tables(mean, std):
        if all(torch.equal(look_up(parts, levels), expected.float()) for parts, expected in pairs):
            return Normalised(network, levels), lean
    return network, full
