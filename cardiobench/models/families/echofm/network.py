"""EchoFM: a masked autoencoder of echo clips (ViT-L, tubelets of four frames), with tokens of the cardiac phase."""

import torch
from torch import nn

EPS = 1e-6
FRAMES, SIZE = 32, 224
TUBE, PATCH = 4, 16
TIMES = FRAMES // TUBE
PLACES = (SIZE // PATCH) ** 2
DIM, DEPTH, HEADS = 1024, 24, 16
DECODER_DIM, DECODER_DEPTH, DECODER_HEADS = 512, 8, 16


class EchoFM(nn.Module):
    """Encoder, phase tokens and the pretraining decoder, which is also in the checkpoint.

    Source: Kim et al., EchoFM, IEEE TMI 2025, doi 10.1109/TMI.2025.3580713; code of August 2026 (f5b6821).

    Args:
        dim: Width of the encoder.
        depth: Number of blocks.
        heads: Number of attention heads.
        decoder_depth: Number of blocks of the decoder, which is not used for encoding.
    """

    def __init__(self, dim: int = DIM, depth: int = DEPTH, heads: int = HEADS, decoder_depth: int = DECODER_DEPTH):
        super().__init__()
        self.cls_token = table(1, dim)
        self.decoder_cls_token = table(1, DECODER_DIM)
        self.decoder_prj_cls_token = table(1, dim)
        self.pos_embed_spatial, self.pos_embed_temporal = table(PLACES, dim), table(TIMES, dim)
        self.pos_embed_class = table(1, dim)
        self.patch_embed = Tubelets(dim)
        self.blocks = nn.ModuleList(EchoFmBlock(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=EPS)
        self.decoder_block = EchoFmBlock(dim, heads)
        self.prj_norm = nn.LayerNorm(dim, eps=EPS)
        self.mask_token = table(1, DECODER_DIM)
        self.decoder_pos_embed_spatial = table(PLACES, DECODER_DIM)
        self.decoder_pos_embed_temporal = table(TIMES, DECODER_DIM)
        self.decoder_pos_embed_class = table(1, DECODER_DIM)
        self.decoder_embed = nn.Linear(dim, DECODER_DIM)
        self.decoder_blocks = nn.ModuleList(EchoFmBlock(DECODER_DIM, DECODER_HEADS) for _ in range(decoder_depth))
        self.decoder_norm = nn.LayerNorm(DECODER_DIM, eps=EPS)
        self.decoder_pred = nn.Linear(DECODER_DIM, 3 * PATCH**2)

    def encoded(self, clips: torch.Tensor) -> torch.Tensor:
        """Encode clips (N, 3, 32, 224, 224) in [0, 1] as normalised tokens (N, 1 + 8*196, dim): class token, then time by time."""
        tokens = self.patch_embed(clips)
        places = (self.pos_embed_temporal[:, :, None] + self.pos_embed_spatial[:, None]).flatten(1, 2)
        first = (self.cls_token + self.pos_embed_class).expand(len(tokens), -1, -1)
        tokens = torch.cat([first, tokens + places], dim=1)
        for block in self.blocks:
            tokens = block(tokens)
        return self.norm(tokens)

    def tokens(self, clips: torch.Tensor) -> torch.Tensor:
        """Encode clips (N, 3, 32, 224, 224) as the authors' latent: tokens without the class token.

        Returns an array (N, 8*196, dim).
        """
        return self.encoded(clips)[:, 1:]

    def phases(self, tokens: torch.Tensor) -> torch.Tensor:
        """Pool tokens (N, 8*196, dim) to one token of the cardiac phase per eighth of the clip.

        Returns an array (N, 8, dim).
        """
        times = tokens.unflatten(1, (TIMES, PLACES)).flatten(0, 1)
        asked = torch.cat([self.decoder_prj_cls_token.expand(len(times), -1, -1), times], dim=1)
        return self.prj_norm(self.decoder_block(asked))[:, 0].unflatten(0, (len(tokens), TIMES))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Map clips (N, 3, 32, 224, 224) in [0, 1] to their published embedding, the mean of the tokens.

        Returns an array (N, dim).
        """
        return self.tokens(clips).mean(dim=1)


def table(rows: int, dim: int) -> nn.Parameter:
    """Create a learned position table (1, rows, dim), initialised to zero."""
    return nn.Parameter(torch.zeros(1, rows, dim))


class Tubelets(nn.Module):
    """Tubelets of 4 frames x 16 x 16 pixels to tokens."""

    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Conv3d(3, dim, kernel_size=(TUBE, PATCH, PATCH), stride=(TUBE, PATCH, PATCH))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Map (N, 3, 32, 224, 224) to (N, 8*196, dim), time by time, row by row."""
        return self.proj(clips).flatten(2).transpose(1, 2)


class EchoFmBlock(nn.Module):
    """A pre-norm transformer block: attention and an MLP, each with a residual connection."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=EPS)
        self.attn = EchoFmAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, eps=EPS)
        self.mlp = Perceptron(dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, L, dim); the shape stays the same."""
        tokens = tokens + self.attn(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))


class EchoFmAttention(nn.Module):
    """Attention of all tokens to all tokens, with separate matrices for queries, keys and values."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.proj = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, L, dim); the shape stays the same."""
        parts = (layer(tokens).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(*parts)
        return self.proj(mixed.transpose(1, 2).flatten(2))


class Perceptron(nn.Module):
    """MLP of two layers with four times the width inside."""

    def __init__(self, dim: int):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, L, dim); the shape stays the same."""
        return self.fc2(nn.functional.gelu(self.fc1(tokens)))
