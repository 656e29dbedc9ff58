"""MViTv2-S: a transformer for short video clips whose tokens become fewer and wider, EchoPrime's video encoder."""

import torch
from torch import nn

EPS = 1e-6
FRAMES, SIZE = 16, 224
STEM = 96
HEAD_DIM = 96

# (heads, stride of the queries, stride of keys and values) of the 16 blocks; strides are of rows and columns, never of time.
BLOCKS = [(1, 1, 8), (2, 2, 4), (2, 1, 4), (4, 2, 2), *[(4, 1, 2)] * 10, (8, 2, 1), (8, 1, 1)]


class MViT(nn.Module):
    """MViTv2-S on clips of 16 x 224 x 224 with decomposed relative positions and residual pooling.

    The names of its tensors are those of torchvision's `mvit_v2_s`, which the published checkpoint was made with.
    Source: Li et al., MViTv2, CVPR 2022.

    Args:
        outputs: numbers a clip.
    """

    def __init__(self, outputs: int):
        super().__init__()
        self.conv_proj = nn.Conv3d(3, STEM, kernel_size=(3, 7, 7), stride=(2, 4, 4), padding=(1, 3, 3))
        self.pos_encoding = ClassToken(STEM)
        grid, dim = (FRAMES // 2, SIZE // 4, SIZE // 4), STEM
        self.grid = grid
        self.blocks = nn.ModuleList()
        for heads, stride_q, stride_kv in BLOCKS:
            block = Block(dim, heads, grid, stride_q, stride_kv)
            self.blocks.append(block)
            grid, dim = block.attn.grid_q, heads * HEAD_DIM
        self.norm = nn.LayerNorm(dim, eps=EPS)
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(dim, outputs))

    def tokens(self, clips: torch.Tensor) -> torch.Tensor:
        """Clips (N, 3, 16, 224, 224) to normalised tokens (N, 1 + 8*7*7, 768), the class token first."""
        tokens = self.pos_encoding(self.conv_proj(clips).flatten(2).transpose(1, 2))
        for block in self.blocks:
            tokens = block(tokens)
        return self.norm(tokens)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Clips (N, 3, 16, 224, 224) to (N, outputs)."""
        return self.head(self.tokens(clips)[:, 0])


class ClassToken(nn.Module):
    """A learned token in front of all others. There is no table of absolute positions."""

    def __init__(self, dim: int):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(dim))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(N, L, dim) to (N, 1 + L, dim)."""
        return torch.cat([self.class_token.expand(len(tokens), 1, -1), tokens], dim=1)


class Block(nn.Module):
    """Attention, which changes grid and width, then a perceptron; both with LayerNorm before and a way around."""

    def __init__(self, dim: int, heads: int, grid: tuple[int, int, int], stride_q: int, stride_kv: int):
        super().__init__()
        out = heads * HEAD_DIM
        self.grid = grid
        self.norm1 = nn.LayerNorm(dim, eps=EPS)
        self.attn = Attention(dim, heads, grid, stride_q, stride_kv)
        self.norm2 = nn.LayerNorm(out, eps=EPS)
        self.mlp = nn.Sequential(nn.Linear(out, 4 * out), nn.GELU(), nn.Identity(), nn.Linear(4 * out, out))
        self.project = nn.Linear(dim, out) if dim != out else None
        self.shrink = nn.MaxPool3d((1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1)) if stride_q > 1 else None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(N, 1 + L, dim) to (N, 1 + L', out)."""
        normed = self.norm1(tokens)
        around = tokens if self.project is None else self.project(normed)
        if self.shrink is not None:
            around = on_grid(self.shrink, around, self.grid)
        tokens = around + self.attn(normed)
        return tokens + self.mlp(self.norm2(tokens))


class Attention(nn.Module):
    """Attention between pooled queries, keys and values; the pooled queries are added to what comes out.

    Attributes:
        grid_q: (time, rows, columns) of the tokens that come out.
    """

    def __init__(self, dim: int, heads: int, grid: tuple[int, int, int], stride_q: int, stride_kv: int):
        super().__init__()
        out = heads * HEAD_DIM
        self.heads, self.grid = heads, grid
        self.grid_q, self.grid_kv = shrunk(grid, stride_q), shrunk(grid, stride_kv)
        self.qkv = nn.Linear(dim, 3 * out)
        self.project = nn.Sequential(nn.Linear(out, out))
        self.pool_q, self.pool_k, self.pool_v = Pool(stride_q), Pool(stride_kv), Pool(stride_kv)
        frames, rows, columns = (2 * max(q, k) - 1 for q, k in zip(self.grid_q, self.grid_kv, strict=True))
        self.rel_pos_h = nn.Parameter(torch.zeros(rows, HEAD_DIM))
        self.rel_pos_w = nn.Parameter(torch.zeros(columns, HEAD_DIM))
        self.rel_pos_t = nn.Parameter(torch.zeros(frames, HEAD_DIM))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(N, 1 + L, dim) to (N, 1 + L', out)."""
        parts = self.qkv(tokens).unflatten(-1, (3, self.heads, HEAD_DIM)).permute(2, 0, 3, 1, 4)
        pools = (self.pool_q, self.pool_k, self.pool_v)
        queries, keys, values = (pool(part, self.grid) for pool, part in zip(pools, parts, strict=True))
        bias = self.positions(queries)
        mixed = nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        mixed = torch.cat([mixed[:, :, :1], mixed[:, :, 1:] + queries[:, :, 1:]], dim=2)
        return self.project(mixed.transpose(1, 2).flatten(2))

    def positions(self, queries: torch.Tensor) -> torch.Tensor:
        """Bias of every query and key, (N, heads, 1 + Lq, 1 + Lk): the unscaled query times the vector of their distance.

        Distances in time, rows and columns have a table each and are summed; the class token has none.
        """
        placed = queries[:, :, 1:].unflatten(2, self.grid_q)
        tables = (self.rel_pos_t, self.rel_pos_h, self.rel_pos_w)
        time, rows, columns = (
            table[distances(q, k, table.device)] for table, q, k in zip(tables, self.grid_q, self.grid_kv, strict=True)
        )
        bias = (
            torch.einsum("nathwc,tkc->nathwk", placed, time)[..., :, None, None]
            + torch.einsum("nathwc,hkc->nathwk", placed, rows)[..., None, :, None]
            + torch.einsum("nathwc,wkc->nathwk", placed, columns)[..., None, None, :]
        )
        return nn.functional.pad(bias.flatten(5).flatten(2, 4), (1, 0, 1, 0))


class Pool(nn.Module):
    """Depthwise convolution over the grid of one head, then LayerNorm; the class token takes part in the norm only."""

    def __init__(self, stride: int):
        super().__init__()
        self.pool = nn.Conv3d(
            HEAD_DIM, HEAD_DIM, kernel_size=3, stride=(1, stride, stride), padding=1, groups=HEAD_DIM, bias=False
        )
        self.norm_act = nn.Sequential(nn.LayerNorm(HEAD_DIM, eps=EPS))

    def forward(self, tokens: torch.Tensor, grid: tuple[int, int, int]) -> torch.Tensor:
        """(N, heads, 1 + L, HEAD_DIM) to (N, heads, 1 + L', HEAD_DIM)."""
        pooled = on_grid(self.pool, tokens.flatten(0, 1), grid)
        return self.norm_act(pooled.unflatten(0, tokens.shape[:2]))


def on_grid(layer: nn.Module, tokens: torch.Tensor, grid: tuple[int, int, int]) -> torch.Tensor:
    """Apply a layer for (N, C, T, H, W) to the tokens (N, 1 + T*H*W, C) behind the class token."""
    volume = tokens[:, 1:].transpose(1, 2).unflatten(2, grid)
    return torch.cat([tokens[:, :1], layer(volume).flatten(2).transpose(1, 2)], dim=1)


def shrunk(grid: tuple[int, int, int], stride: int) -> tuple[int, int, int]:
    """Grid (time, rows, columns) after a stride in rows and columns."""
    return grid[0], grid[1] // stride, grid[2] // stride


def distances(queries: int, keys: int, device: torch.device) -> torch.Tensor:
    """Row of the table of relative positions for each query and key along one axis, (queries, keys).

    The coarser of the two is counted in steps of the finer one; the row of distance 0 is in the middle.
    """
    step_q, step_k = max(keys // queries, 1), max(queries // keys, 1)
    q = torch.arange(queries, device=device)[:, None] * step_q
    k = torch.arange(keys, device=device)[None, :] * step_k
    return q - k + (keys - 1) * step_k
