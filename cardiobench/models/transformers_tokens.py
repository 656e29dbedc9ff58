"""Spatial tokens of networks of transformers."""

from typing import Any

import torch

from cardiobench.models.tokens import on_grid

Network = Any  # A transformers model, whose attributes depend on its family.


def last_hidden_state(model: Network, parts: torch.Tensor) -> torch.Tensor:
    """Return all tokens (N, L, width) of an image or video network, special tokens first."""
    if hasattr(model, "get_vision_features"):  # For V-JEPA 2, use the encoder without its predictor.
        return model.get_vision_features(parts)
    return model(pixel_values=parts).last_hidden_state


def grid_tokens(model: Network, parts: torch.Tensor) -> torch.Tensor:
    """Return the tokens of the last block after the final norm. The shape is (N, times, rows, columns, width).

    Args:
        model: An image, video or two-tower network.
        parts: Frames (N, 3, H, W), clips (N, F, 3, H, W), or the patches of a NaFlex processor, all of one shape.

    Raises:
        NotApplicable: The tokens do not fill the grid of the patches.
    """
    config = model.config
    if config.model_type == "siglip2":
        return _patches(model, parts)
    if config.model_type in ("clip", "siglip"):
        tokens = model.vision_model(pixel_values=parts).last_hidden_state
        # Only the tower of SigLIP ends with its norm; in CLIP, it is applied to the pooled class token.
        tokens = model.vision_model.post_layernorm(tokens) if config.model_type == "clip" else tokens
        config = config.vision_config
    else:
        tokens = last_hidden_state(model, parts)
    if tokens.ndim == 4:  # A convolutional network has shape (N, width, rows, columns).
        return tokens.movedim(1, -1)[:, None]
    patch = getattr(config, "patch_size", 0) or parts.shape[-1]
    times = parts.shape[1] // getattr(config, "tubelet_size", 1) if parts.ndim == 5 else 1
    return on_grid(tokens, (times, parts.shape[-2] // patch, parts.shape[-1] // patch))


def _patches(model: Network, parts: torch.Tensor) -> torch.Tensor:
    """Return SigLIP 2's tokens (N, 1, rows, columns, width); `parts` start with the number of rows and columns."""
    shapes, patches = parts[:, 0, :2].long(), parts[:, 1:]
    rows, columns = shapes[0].tolist()
    mask = (torch.arange(patches.shape[1], device=parts.device) < rows * columns).int().expand(len(parts), -1)
    output = model.vision_model(patches, attention_mask=mask, spatial_shapes=shapes)
    return on_grid(output.last_hidden_state[:, : rows * columns], (1, rows, columns))
