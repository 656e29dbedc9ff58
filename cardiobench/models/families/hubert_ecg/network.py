"""HuBERT-ECG (Coppola et al., medRxiv 2024.11.14.24317328) on the HuBERT of transformers, without the model's own code."""

from collections.abc import Mapping
from typing import Any

import torch

from cardiobench.models.blocks.weight_norm import current_weight_norm

# Settings common to all sizes.
COMMON: Mapping[str, Any] = {
    "conv_dim": (512,) * 5,
    "conv_kernel": (10, 3, 3, 2, 2),
    "conv_stride": (4, 2, 2, 2, 2),
    "conv_bias": False,
    "feat_extract_norm": "group",
    "feat_extract_activation": "gelu",
    "feat_proj_layer_norm": True,
    "do_stable_layer_norm": False,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-5,
    "num_conv_pos_embeddings": 128,
    "num_conv_pos_embedding_groups": 16,
}
SIZES: Mapping[str, Mapping[str, int]] = {
    "small": {"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "intermediate_size": 2048},
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 960, "num_hidden_layers": 16, "num_attention_heads": 12, "intermediate_size": 3840},
}
# Heads of pretraining and fine-tuning, which do not affect the hidden states.
HEADS = ("final_proj.", "label_embedding.", "classifier.")


def build(config: Mapping[str, Any]) -> torch.nn.Module:
    """Build a transformers HubertModel without weights.

    Args:
        config: Settings in `COMMON` and `SIZES`; others are ignored because they do not affect inference.
    """
    from transformers import HubertConfig, HubertModel

    wanted = {key: config[key] for key in (*COMMON, *SIZES["small"]) if key in config}
    return HubertModel(HubertConfig(**{**COMMON, **wanted}))


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename a checkpoint's weights to the names of HubertModel.

    The heads (`HEADS`) are left out. Checkpoints of older PyTorch versions name the weight norm `weight_g` and
    `weight_v`; fine-tuned ones prefix the names of the encoder with `hubert_ecg.`.
    """
    encoder = {key.removeprefix("hubert_ecg."): tensor for key, tensor in state.items() if not key.startswith(HEADS)}
    return current_weight_norm(encoder)


def tokens(network: torch.nn.Module, signal: torch.Tensor) -> torch.Tensor:
    """Encode flattened signals (B, 6000) as hidden states (B, 93, hidden_size) of a network from `build`."""
    return network(signal).last_hidden_state
