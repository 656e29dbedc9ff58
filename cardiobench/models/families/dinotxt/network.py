"""dino.txt: two blocks on top of a frozen DINOv3, and a text transformer, in a common space of 2048 dimensions."""

import torch
from torch import nn
from torch.nn import functional

from cardiobench.models.blocks.vit_block import Attention, Mlp
from cardiobench.models.families.dinotxt.dinov3 import DEPTH, DIM, EPS, HEADS, PATCH, REGISTERS, DINOv3, Scale
from cardiobench.models.tokens import on_grid

HEAD_BLOCKS = 2
TEXT_DIM, TEXT_DEPTH, TEXT_HEADS = 1280, 24, 20
CONTEXT, VOCABULARY = 77, 49408  # Number of CLIP's byte pairs.


class DinoTxt(nn.Module):
    """Both towers.

    Tensors under `visual_model.backbone.` come from the file of DINOv3, all others from that of dino.txt.

    Source: Jose et al., DINOv2 meets text, arXiv 2412.16334; github.com/facebookresearch/dinov3.

    Args:
        dim: Length of a vision token.
        depth: Blocks of the backbone.
        heads: Attention heads of the backbone and the vision head.
        text_dim: Length of a text token.
        text_depth: Blocks of the text transformer.
        text_heads: Attention heads of the text tower.
    """

    def __init__(
        self,
        dim: int = DIM,
        depth: int = DEPTH,
        heads: int = HEADS,
        text_dim: int = TEXT_DIM,
        text_depth: int = TEXT_DEPTH,
        text_heads: int = TEXT_HEADS,
    ):
        super().__init__()
        self.visual_model = VisionTower(dim, depth, heads)
        self.text_model = TextTower(text_dim, text_depth, text_heads, 2 * dim)
        self.logit_scale = nn.Parameter(torch.zeros(1))


class VisionTower(nn.Module):
    """Vision tower: class token and mean of the patches after the head, concatenated."""

    def __init__(self, dim: int, depth: int, heads: int):
        super().__init__()
        self.backbone = DINOv3(dim, depth, heads)
        self.head = VisionHead(dim, heads)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map frames (N, 3, H, W) to vectors (N, 2 * dim), not normalised."""
        tokens = self.head(self.backbone(frames))
        return torch.cat([tokens[:, 0], tokens[:, 1 + REGISTERS :].mean(dim=1)], dim=1)

    def tokens(self, frames: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, H, W) as the tokens of the backbone, (N, 1, H/16, W/16, dim)."""
        return on_grid(self.backbone(frames), (1, frames.shape[2] // PATCH, frames.shape[3] // PATCH))


class VisionHead(nn.Module):
    """Two blocks on the normalised tokens of the backbone, including registers, and a norm."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.blocks = nn.ModuleList(HeadBlock(dim, heads) for _ in range(HEAD_BLOCKS))
        self.ln_final = nn.LayerNorm(dim, eps=EPS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, T, dim); the shape stays the same."""
        for block in self.blocks:
            tokens = block(tokens)
        return self.ln_final(tokens)


class HeadBlock(nn.Module):
    """Block of attention without positions and a gated MLP, each with pre-norm, scaling and a residual connection."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=EPS)
        self.attn = Attention(dim, heads, bias=True)
        self.ls1 = Scale(dim)
        self.norm2 = nn.LayerNorm(dim, eps=EPS)
        self.mlp = GatedMlp(dim)
        self.ls2 = Scale(dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, T, dim); the shape stays the same."""
        tokens = tokens + self.ls1(self.attn(self.norm1(tokens)))
        return tokens + self.ls2(self.mlp(self.norm2(tokens)))


class GatedMlp(nn.Module):
    """SwiGLU with an inner width of 8/3 of the input, rounded up to a multiple of 64."""

    def __init__(self, dim: int):
        super().__init__()
        inside = -(-(8 * dim // 3) // 64) * 64
        self.w1, self.w2, self.w3 = nn.Linear(dim, inside), nn.Linear(dim, inside), nn.Linear(inside, dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, T, dim); the shape stays the same."""
        return self.w3(functional.silu(self.w1(tokens)) * self.w2(tokens))


class TextTower(nn.Module):
    """Text tower: output of the transformer at the end of the text, and a projection."""

    def __init__(self, dim: int, depth: int, heads: int, width: int):
        super().__init__()
        self.backbone = TextTransformer(dim, depth, heads)
        self.head = TextHead(dim, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Map token ids (N, L), L <= 77, to vectors (N, width), not normalised; the end token has the highest id."""
        tokens = self.backbone(ids)
        return self.head(tokens[torch.arange(len(ids), device=ids.device), ids.argmax(dim=1)])


class TextHead(nn.Module):
    """Projection to the space of the frames."""

    def __init__(self, dim: int, width: int):
        super().__init__()
        self.linear_projection = nn.Linear(dim, width, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens (N, dim) to vectors (N, width)."""
        return self.linear_projection(tokens)


class TextTransformer(nn.Module):
    """A causal transformer."""

    def __init__(self, dim: int, depth: int, heads: int):
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, dim)
        self.positional_embedding = nn.Parameter(torch.zeros(CONTEXT, dim))
        self.blocks = nn.ModuleList(TextBlock(dim, heads) for _ in range(depth))
        self.ln_final = nn.LayerNorm(dim, eps=EPS)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Map token ids (N, L) to normalised tokens (N, L, dim)."""
        length = ids.shape[1]
        tokens = self.token_embedding(ids) + self.positional_embedding[:length]
        earlier = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
        for block in self.blocks:
            tokens = block(tokens, earlier)
        return self.ln_final(tokens)


class TextBlock(nn.Module):
    """Block of attention and MLP, each with pre-norm and a residual connection."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim, eps=EPS)
        self.attention = Attention(dim, heads, bias=True)
        self.ffn_norm = nn.LayerNorm(dim, eps=EPS)
        self.feed_forward = Mlp(dim, bias=True)

    def forward(self, tokens: torch.Tensor, earlier: torch.Tensor) -> torch.Tensor:
        """Transform tokens (N, L, dim).

        The shape stays the same; `earlier` (L, L) states whether a token (row) may attend to another (column).
        """
        tokens = tokens + self.attention(self.attention_norm(tokens), earlier)
        return tokens + self.feed_forward(self.ffn_norm(tokens))
