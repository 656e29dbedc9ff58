"""ST-MEM (Na et al., ICLR 2024, arXiv:2402.09450): a vision transformer over patches of 0.3 s of each lead."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from cardiobench.models.blocks.vit_block import Block, translate_weight_name

PATCH = 75
SAMPLES = 2250
LEADS = 12
WIDTH = 768
DEPTH = 12
HEADS = 12


class StMem(nn.Module):
    """The encoder; each lead has a learned embedding, so that any leads can be given in any order."""

    def __init__(self):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.zeros(1, SAMPLES // PATCH + 2, WIDTH))
        self.sep_embedding = nn.Parameter(torch.zeros(WIDTH))
        self.lead_embeddings = nn.ParameterList(torch.zeros(WIDTH) for _ in range(LEADS))
        self.to_patch_embedding = nn.Sequential(
            nn.Unflatten(-1, (-1, PATCH)), nn.LayerNorm(PATCH), nn.Linear(PATCH, WIDTH), nn.LayerNorm(WIDTH)
        )
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS, eps=1e-5, bias=True, qkv_bias=True) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-5)

    def with_separators(self, signal: torch.Tensor, leads: Sequence[int]) -> torch.Tensor:
        """Encode each lead as its patches with a separator before and after.

        Args:
            signal: (B, len(leads), n) at 250 Hz, n a multiple of 75 up to 2250.
            leads: Index of each given lead, which selects its embedding.

        Returns:
            (B, len(leads), n / 75 + 2, 768).
        """
        patches = self.to_patch_embedding(signal)
        count, places = patches.shape[2], self.pos_embedding[0]
        # The separator after the patches always has the last position.
        ends = (self.sep_embedding + torch.stack([places[0], places[-1]])).expand(*patches.shape[:2], 2, -1)
        tokens = torch.cat([ends[:, :, :1], patches + places[1 : count + 1], ends[:, :, 1:]], dim=2)
        tokens = (tokens + torch.stack([self.lead_embeddings[lead] for lead in leads])[:, None]).flatten(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        return tokens.unflatten(1, (len(leads), count + 2))

    def tokens(self, signal: torch.Tensor, leads: Sequence[int] = range(LEADS)) -> torch.Tensor:
        """Encode a signal as its patches, lead after lead and without the final norm, (B, len(leads) * n / 75, 768)."""
        return self.with_separators(signal, leads)[:, :, 1:-1].flatten(1, 2)

    def representation(self, signal: torch.Tensor, leads: Sequence[int] = range(LEADS)) -> torch.Tensor:
        """Encode a signal as one token (B, 1, 768), the normalised mean of all patches as published."""
        return self.norm(self.tokens(signal, leads).mean(1, keepdim=True))

    forward = tokens


def published_keys(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the weights of a checkpoint to the names of `StMem`, without the pretraining decoder."""
    encoder = {key.removeprefix("encoder."): tensor for key, tensor in state.items() if key.startswith("encoder.")}
    return {translate_weight_name(key): tensor for key, tensor in (encoder or state).items()}
