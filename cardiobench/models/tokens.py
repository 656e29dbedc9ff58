"""Spatial tokens: output of a network's last block at each position of its input."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from cardiobench.core.errors import NotApplicable

NO_TOKENS = "it has no tokens with a position in the frame"


@runtime_checkable
class SpatialNetwork(Protocol):
    """A network that also returns the tokens of its last block."""

    def tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as tokens (N, times, rows, columns, width) after the final norm, without special tokens."""
        ...


def spatial_tokens(network: torch.nn.Module, parts: torch.Tensor) -> torch.Tensor:
    """Return the tokens (N, times, rows, columns, width), float32, of a network.

    Raises:
        NotApplicable: The tokens have no position in the frame.
    """
    if not isinstance(network, SpatialNetwork):
        raise NotApplicable(NO_TOKENS)
    return network.tokens(parts).float()


def last_map(network: Any, frames: torch.Tensor, **options: Any) -> torch.Tensor:
    """Return the last feature map of a network of timm or open_clip as tokens (N, 1, rows, columns, width).

    Args:
        network: Network with the `forward_intermediates` that both libraries share.
        frames: Frames, shape (N, 3, H, W).
        options: Options of this method, whose names differ between the libraries.

    Raises:
        NotApplicable: The network does not have that method.
    """
    if not hasattr(network, "forward_intermediates"):
        raise NotApplicable(NO_TOKENS)
    maps = network.forward_intermediates(frames, indices=1, intermediates_only=True, output_fmt="NCHW", **options)
    maps = maps["image_intermediates"] if isinstance(maps, dict) else maps
    return maps[-1].movedim(1, -1)[:, None]


def on_grid(tokens: torch.Tensor, grid: Sequence[int]) -> torch.Tensor:
    """Arrange tokens (N, L, width) in a grid (times, rows, columns), without the special tokens in front.

    Raises:
        NotApplicable: There are fewer tokens than positions.
    """
    count = torch.Size(grid).numel()
    if not 0 < count <= tokens.shape[1]:
        raise NotApplicable(
            f"its {tokens.shape[1]} tokens do not fill a grid of {' x '.join(map(str, grid))} positions"
        )
    return tokens[:, tokens.shape[1] - count :].unflatten(1, tuple(grid))
