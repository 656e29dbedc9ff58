"""HuBERT-ECG (Coppola et al., medRxiv 2024.11.14.24317328) on the HuBERT of transformers, without the model's own code."""

from collections.abc import Mapping
from typing import Any

import torch

from cardiobench.models.nets.wav2vec2_cmsc import current_weight_norm

# What all sizes share.
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
# Heads of pretraining and of fine-tuning: they do not touch the hidden states.
HEADS = ("final_proj.", "label_embedding.", "classifier.")


def build(config: Mapping[str, Any]) -> torch.nn.Module:
    """Build a transformers HubertModel without weights.

    Args:
        config: The settings named in `COMMON` and `SIZES`; others are left out, as they say nothing about inference.
    """
    from transformers import HubertConfig, HubertModel

    wanted = {key: config[key] for key in (*COMMON, *SIZES["small"]) if key in config}
    return HubertModel(HubertConfig(**{**COMMON, **wanted}))


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename a checkpoint's weights to the names of HubertModel.

    Left out are the heads (`HEADS`). Checkpoints of an older PyTorch name the weight norm `weight_g` and `weight_v`;
    fine-tuned ones have `hubert_ecg.` in front of the encoder's names.
    """
    encoder = {key.removeprefix("hubert_ecg."): tensor for key, tensor in state.items() if not key.startswith(HEADS)}
    return current_weight_norm(encoder)


def tokens(network: torch.nn.Module, signal: torch.Tensor) -> torch.Tensor:
    """Encode flattened signals (B, 6000) as hidden states (B, 93, hidden_size) of a network from `build`."""
    return network(signal).last_hidden_state
