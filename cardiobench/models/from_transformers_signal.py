"""Encoders for ECG models on the Hub with their own code."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from cardiobench.core.errors import BadModel
from cardiobench.models.blocks.signal_encoder import SignalEncoder, TokenExtractor
from cardiobench.models.blocks.signal_settings import POOLINGS, SignalSettings
from cardiobench.models.files import ModelFiles


def signal_encoder(
    model: torch.nn.Module, source: ModelFiles, weights: Sequence[Path], signal: SignalSettings, pooling: str
) -> SignalEncoder:
    """Return the encoder of a loaded network with its own code."""
    return SignalEncoder(
        name=source.name,
        revision=source.revision(weights),
        network=TokenExtractor(model, read_tokens),
        prepare=signal,
        leads=signal.leads,
        token_pooling=pooling or POOLINGS[0],
        preprocessing={"library": "transformers", "class": type(model).__name__, **asdict(signal), "pooling": pooling},
    )


def read_tokens(model: Any, parts: torch.Tensor) -> torch.Tensor:
    """Map parts to tokens (N, T, dim): the model's pooled output as one token, else its tokens.

    Raises:
        BadModel: The output is neither.
    """
    output = model(parts)
    for name in ("pooler_output", "last_hidden_state"):
        output = value if (value := getattr(output, name, None)) is not None else output
        if isinstance(output, torch.Tensor):
            break
    if not isinstance(output, torch.Tensor) or output.ndim not in (2, 3):
        raise BadModel(
            f"{type(model).__name__} returns {type(output).__name__}; expected vectors (N, dim), tokens (N, T, dim), or an "
            "output with pooler_output or last_hidden_state."
        )
    return output[:, None] if output.ndim == 2 else output
