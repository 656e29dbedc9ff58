"""MERL (Liu et al., ICML 2024, arXiv:2403.06659): two ECG encoders, and their heads to the text space."""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from cardiobench.models.blocks.vit_block import Block, translate_weight_name
from cardiobench.models.weights import below

LEADS = 12
SHARED = 256  # Width of the common space of ECGs and texts.
WIDTHS = (64, 128, 256, 512)
STEPS = 313  # Positions of the last map for 5000 samples.
POOL_HEADS = 4
VIT_WIDTH, VIT_DEPTH, VIT_HEADS = 192, 12, 3
PATCH, PATCHES = 50, 100
# Unused parts of the files: an untrained head, and projections of the uni-modal loss.
UNUSED = ("linear.", "linear1.", "linear2.")


class MerlBlock(nn.Module):
    """Residual block of two convolutions with 3 taps; the shortcut has a 1-tap convolution if the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv1d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm1d(outputs)
        self.conv2 = nn.Conv1d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm1d(outputs)
        self.shortcut = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.shortcut.extend([nn.Conv1d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm1d(outputs)])

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Map a signal (B, inputs, L) to (B, outputs, L / stride rounded up)."""
        out = functional.relu(self.bn1(self.conv1(signal)))
        return functional.relu(self.bn2(self.conv2(out)) + self.shortcut(signal))


class MerlResNet18(nn.Module):
    """The encoder `resnet18`: a ResNet-18 in one dimension without max pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(LEADS, WIDTHS[0], 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm1d(WIDTHS[0])
        before = (WIDTHS[0], *WIDTHS)
        self.layer1, self.layer2, self.layer3, self.layer4 = (
            nn.Sequential(MerlBlock(before[place], width, 2 if place else 1), MerlBlock(width, width, 1))
            for place, width in enumerate(WIDTHS)
        )

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, L) as the last map (B, 512, L / 16 rounded up)."""
        out = functional.relu(self.bn1(self.conv1(signal)))
        return self.layer4(self.layer3(self.layer2(self.layer1(out))))

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, L) as tokens (B, L / 16 rounded up, 512) in the order of time."""
        return self(signal).transpose(1, 2)


class MerlVitTiny(nn.Module):
    """The encoder `vit_tiny`: a vision transformer over patches of 0.1 s of all leads, for 5000 samples."""

    def __init__(self) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.zeros(1, PATCHES, VIT_WIDTH))
        self.to_patch_embedding = nn.Conv1d(LEADS, VIT_WIDTH, PATCH, PATCH, bias=False)
        self.blocks = nn.ModuleList(
            Block(VIT_WIDTH, VIT_HEADS, eps=1e-5, bias=True, qkv_bias=True) for _ in range(VIT_DEPTH)
        )
        self.norm = nn.LayerNorm(VIT_WIDTH, eps=1e-5)

    def tokens(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, 5000) as tokens (B, 100, 192), without the final norm."""
        tokens = self.to_patch_embedding(signal).transpose(1, 2) + self.pos_embedding
        for block in self.blocks:
            tokens = block(tokens)
        return tokens

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, 5000) as the normalised mean token, as in the authors' code.

        Returns an array (B, 192).
        """
        return self.norm(self.tokens(signal).mean(1))


class MerlPool(nn.Module):
    """Attention pooling of the steps of a map with a learned token."""

    def __init__(self) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.zeros(1, STEPS + 1, SHARED))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, SHARED))
        self.mhsa = nn.MultiheadAttention(SHARED, POOL_HEADS, batch_first=True)
        self.c_proj = nn.Linear(SHARED, SHARED)

    def forward(self, steps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Pool steps (B, 313, 256); returns the vectors (B, 256) and the attention on token and steps (B, 1, 314)."""
        # The published code adds the token's position twice.
        token = (self.cls_token + self.positional_embedding[:, :1]).expand(len(steps), -1, -1)
        tokens = torch.cat([token, steps], dim=1) + self.positional_embedding
        pooled, attention = self.mhsa(tokens[:, :1], tokens, tokens)
        return self.c_proj(pooled)[:, 0], attention


class MerlResNet18Shared(nn.Module):
    """The encoder `resnet18` with its projection to the text space."""

    def __init__(self) -> None:
        super().__init__()
        self.ecg_encoder = MerlResNet18()
        self.downconv = nn.Conv1d(WIDTHS[-1], SHARED, 1)
        self.att_pool_head = MerlPool()

    def pooled(self, signal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode a signal (B, 12, 5000); returns the vectors (B, 256) and the attention (B, 1, 314)."""
        return self.att_pool_head(self.downconv(self.ecg_encoder(signal)).transpose(1, 2))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, 5000) as vectors (B, 256), not of unit length."""
        return self.pooled(signal)[0]


class MerlVitTinyShared(nn.Module):
    """The encoder `vit_tiny` with its projection to the text space."""

    def __init__(self) -> None:
        super().__init__()
        self.ecg_encoder = MerlVitTiny()
        self.proj_e = nn.Sequential(
            nn.Linear(VIT_WIDTH, SHARED),
            nn.BatchNorm1d(SHARED),
            nn.ReLU(),
            nn.Linear(SHARED, SHARED),
            nn.BatchNorm1d(SHARED),
        )

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Encode a signal (B, 12, 5000) as vectors (B, 256), not of unit length."""
        return self.proj_e(self.ecg_encoder(signal))


def encoder_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors of the encoder from a published file: `*_encoder.pth`, or `*_ckpt.pth` of the whole model."""
    encoder = below(state, "ecg_encoder.") or dict(state)
    return {translate_weight_name(name): tensor for name, tensor in encoder.items() if not name.startswith(UNUSED)}


def shared_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors of encoder and head from `*_ckpt.pth`, without unused ones and the text tower."""
    heads = {
        name: tensor
        for name, tensor in state.items()
        if not name.startswith((*UNUSED, "ecg_encoder.", "lm_model.", "proj_t."))
    }
    return heads | {f"ecg_encoder.{name}": tensor for name, tensor in encoder_keys(state).items()}
