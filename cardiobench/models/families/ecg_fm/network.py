"""ECG-FM: a wav2vec 2.0 encoder on 12 leads, pretrained with CMSC and random lead masking (McKeen et al., arXiv 2408.05178).

fairseq-signals builds the network from `w2v_cmsc_rlm.yaml`; parameters have the names of its checkpoints.
"""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from cardiobench.models.blocks.weight_norm import current_weight_norm

DIM = 768
HEADS = 12
LAYERS = 12
FEED_FORWARD = 3072
CHANNELS = 256
CONVOLUTIONS = 4
POSITION_KERNEL = 128
POSITION_GROUPS = 16
CODES = (2, 320, 128)  # Groups, entries per group and length of an entry of the quantizer.


def convolutions(leads: int) -> nn.ModuleList:
    """Build four convolutions that halve the length, with GELU; the first has a norm of every channel over time.

    Identities replace the dropouts of rate 0 in fairseq-signals, which keeps the numbers in the keys.
    """
    layers = nn.ModuleList()
    for index in range(CONVOLUTIONS):
        conv = nn.Conv1d(CHANNELS if index else leads, CHANNELS, 2, 2, bias=False)
        norm = [] if index else [nn.GroupNorm(CHANNELS, CHANNELS)]
        layers.append(nn.Sequential(conv, nn.Identity(), *norm, nn.GELU()))
    return layers


class FeatureExtractor(nn.Module):
    """Convolutions from signals (B, leads, L) to (B, 256, L / 16)."""

    def __init__(self, leads: int):
        super().__init__()
        self.conv_layers = convolutions(leads)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Return the output of the last convolution."""
        for layer in self.conv_layers:
            signal = layer(signal)
        return signal


class PositionConv(nn.Module):
    """Relative positions by a wide grouped convolution with weight norm per kernel position."""

    def __init__(self):
        super().__init__()
        conv = nn.Conv1d(DIM, DIM, POSITION_KERNEL, padding=POSITION_KERNEL // 2, groups=POSITION_GROUPS)
        self.pos_conv = nn.Sequential(parametrizations.weight_norm(conv, dim=2))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Compute the positional embedding of tokens (B, T, 768); the extra sample of an even kernel is dropped."""
        out = self.pos_conv(tokens.transpose(1, 2))[..., :-1]
        return functional.gelu(out).transpose(1, 2)


class SelfAttention(nn.Module):
    """Multi-head attention with separate projections for query, key, value and output."""

    def __init__(self):
        super().__init__()
        self.k_proj = nn.Linear(DIM, DIM)
        self.v_proj = nn.Linear(DIM, DIM)
        self.q_proj = nn.Linear(DIM, DIM)
        self.out_proj = nn.Linear(DIM, DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, 768) to (B, T, 768)."""
        query, key, value = (
            projection(tokens).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = functional.scaled_dot_product_attention(query, key, value)
        return self.out_proj(out.transpose(1, 2).flatten(2))


class TransformerLayer(nn.Module):
    """A post-norm transformer layer."""

    def __init__(self):
        super().__init__()
        self.self_attn = SelfAttention()
        self.self_attn_layer_norm = nn.LayerNorm(DIM)
        self.fc1 = nn.Linear(DIM, FEED_FORWARD)
        self.fc2 = nn.Linear(FEED_FORWARD, DIM)
        self.final_layer_norm = nn.LayerNorm(DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, 768) to (B, T, 768)."""
        tokens = self.self_attn_layer_norm(tokens + self.self_attn(tokens))
        return self.final_layer_norm(tokens + self.fc2(functional.gelu(self.fc1(tokens))))


class TransformerEncoder(nn.Module):
    """A norm followed by twelve post-norm layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(TransformerLayer() for _ in range(LAYERS))
        self.layer_norm = nn.LayerNorm(DIM)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, 768) to (B, T, 768)."""
        tokens = self.layer_norm(tokens)
        for layer in self.layers:
            tokens = layer(tokens)
        return tokens


class Quantizer(nn.Module):
    """Codebook of the pretraining task, not used for embeddings."""

    def __init__(self):
        super().__init__()
        groups, entries, length = CODES
        self.vars = nn.Parameter(torch.zeros(1, groups * entries, length))
        self.weight_proj = nn.Linear(CHANNELS, groups * entries)


class Wav2Vec2Cmsc(nn.Module):
    """The encoder; its state_dict has the keys under `model` in `mimic_iv_ecg_physionet_pretrained.pt`.

    Args:
        leads: Number of leads in the signal.
        pretraining: Whether to include the parts of the pretraining task. They are in the pretrained checkpoint, not in
            the fine-tuned one, and do not affect embeddings.
    """

    def __init__(self, leads: int = 12, pretraining: bool = True):
        super().__init__()
        self.feature_extractor = FeatureExtractor(leads)
        self.layer_norm = nn.LayerNorm(CHANNELS)
        self.post_extract_proj = nn.Linear(CHANNELS, DIM)
        self.conv_pos = PositionConv()
        self.encoder = TransformerEncoder()
        if pretraining:
            self.mask_emb = nn.Parameter(torch.zeros(DIM))
            self.quantizer = Quantizer()
            self.project_q = nn.Linear(CHANNELS, CHANNELS)
            self.final_proj = nn.Linear(DIM, CHANNELS)

    def features(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, L) as normalised outputs of the convolutions, (B, L / 16, 256)."""
        return self.layer_norm(self.feature_extractor(signal).transpose(1, 2))

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, L) as the encoder's output (B, L / 16, 768); 156 tokens for 2500 samples."""
        tokens = self.post_extract_proj(self.features(signal))
        return self.encoder(tokens + self.conv_pos(tokens))

    forward = tokens


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename a checkpoint's weights to the names of `Wav2Vec2Cmsc`.

    Checkpoints of older PyTorch versions name the weight norm `weight_g` and `weight_v`. A fine-tuned checkpoint has
    the encoder under `encoder.` and a linear head `proj.`, which is left out.
    """
    if "encoder.post_extract_proj.weight" in state:
        state = {
            key.removeprefix("encoder."): tensor
            for key, tensor in state.items()
            if key not in ("proj.weight", "proj.bias")
        }
    return current_weight_norm(state)
