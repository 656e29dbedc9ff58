"""Compare dino.txt's network with transformers' DINOv3, open_clip's text transformer and PyTorch's attention."""

import pytest
import torch
from torch import nn

from cardiobench.models.families.dinotxt.dinov3 import REGISTERS, DINOv3, Places
from cardiobench.models.families.dinotxt.network import (
    CONTEXT,
    VOCABULARY,
    DinoTxt,
    GatedMlp,
    TextTower,
    VisionHead,
    VisionTower,
)
from tests.models.networks import drawn

DIM, DEPTH, HEADS = 32, 2, 2


def pictures(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_size():
    """Compare parameter counts with published ones: transformers' ViT-L without key bias, and trained weights by part."""
    with torch.device("meta"):
        network = DinoTxt()
    text = network.text_model
    parts = {
        "backbone": network.visual_model.backbone,
        "head": network.visual_model.head,
        "last two text blocks and norm": nn.ModuleList([*text.backbone.blocks[-2:], text.backbone.ln_final]),
        "projection": text.head,
    }
    counts = {
        name: (len(part.state_dict()), sum(tensor.numel() for tensor in part.parameters()))
        for name, part in parts.items()
    }
    assert counts == {
        "backbone": (368, 303_129_600 + 24 * 1024),
        "head": (32, 25_326_336),
        "last two text blocks and norm": (24, 39_349_760),
        "projection": (1, 2_621_440),
    }
    assert network.logit_scale.shape == (1,)
    assert network.text_model.backbone.token_embedding.weight.shape == (49408, 1280)


def as_in_transformers(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Map the authors' names to those of `DINOv3ViTModel`, which has separate queries, keys and values, and no key bias."""
    parts = {
        "embeddings.cls_token": state["cls_token"],
        "embeddings.register_tokens": state["storage_tokens"],
        "embeddings.mask_token": state["mask_token"][None],
    }
    for name, tensor in state.items():
        if name.startswith("patch_embed.proj."):
            parts[name.replace("patch_embed.proj", "embeddings.patch_embeddings")] = tensor
        elif name.startswith("norm."):
            parts[name] = tensor
        elif name.startswith("blocks."):
            _, number, *rest = name.split(".")
            rest, block = ".".join(rest), f"model.layer.{number}."
            if rest in ("attn.qkv.weight", "attn.qkv.bias"):
                for which, part in zip("qkv", tensor.chunk(3), strict=True):
                    if (which, rest) != ("k", "attn.qkv.bias"):
                        parts[f"{block}attention.{which}_proj.{rest.rpartition('.')[2]}"] = part
            elif rest != "attn.qkv.bias_mask":
                for ours, theirs in (("attn.proj", "attention.o_proj"), ("ls1.gamma", "layer_scale1.lambda1"),
                                     ("ls2.gamma", "layer_scale2.lambda1"), ("mlp.fc1", "mlp.up_proj"),
                                     ("mlp.fc2", "mlp.down_proj")):  # fmt: skip
                    rest = rest.replace(ours, theirs)
                parts[block + rest] = tensor
    return parts


def dinov3(seed: int = 0) -> DINOv3:
    """Return a small random backbone; a stored mask removes the key bias, as in the training code."""
    network = drawn(DINOv3(DIM, DEPTH, HEADS), seed)
    for block in network.blocks:
        block.attn.qkv.bias_mask[DIM : 2 * DIM] = 0
    return network


def reference(network: DINOv3) -> nn.Module:
    import transformers

    config = transformers.DINOv3ViTConfig(
        hidden_size=DIM, num_hidden_layers=DEPTH, num_attention_heads=HEADS, intermediate_size=4 * DIM,
        num_register_tokens=REGISTERS, image_size=64, patch_size=16,
    )  # fmt: skip
    theirs = transformers.DINOv3ViTModel(config).eval()
    theirs.load_state_dict(as_in_transformers(network.state_dict()), strict=True)
    return theirs


@pytest.mark.parametrize(("height", "width"), [(64, 64), (48, 80)])
@torch.no_grad()
def test_backbone_equals_transformers(height, width):
    network, frames = dinov3(), pictures(2, 3, height, width)
    ours = network(frames)
    close(ours, reference(network)(pixel_values=frames).last_hidden_state)
    assert ours.shape == (2, 1 + REGISTERS + height * width // 256, DIM)
    for change in ("cls_token", "storage_tokens", "blocks.1.ls2.gamma", "blocks.0.attn.qkv.bias", "rope_embed.periods"):
        other = dinov3()
        other.state_dict()[change].mul_(1.5)
        assert not torch.allclose(other(frames), ours, atol=1e-3), change


@torch.no_grad()
def test_published_mask_switches_every_bias_off():
    network, without, frames = dinov3(), dinov3(), pictures(1, 3, 32, 32)
    for block, plain in zip(network.blocks, without.blocks, strict=True):
        block.attn.qkv.bias_mask.zero_()
        plain.attn.qkv.bias.zero_()
    assert torch.equal(network(frames), without(frames))


def test_places_by_hand():
    """Check rotary positions of two rows and one column with head size 8: centres (-1/2, 0), (1/2, 0), periods 1 and 10."""
    places = Places(8)
    torch.testing.assert_close(places.periods, torch.tensor([1.0, 10.0]))
    sine, cosine = places(2, 1)
    row = torch.tensor([torch.pi, torch.pi / 10])
    angles = torch.stack([torch.cat([-row, torch.zeros(2)]), torch.cat([row, torch.zeros(2)])]).repeat(1, 2)
    torch.testing.assert_close(sine, angles.sin())
    torch.testing.assert_close(cosine, angles.cos())


def attended(attention: nn.Module, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """Compute the same attention with PyTorch's module."""
    theirs = nn.MultiheadAttention(tokens.shape[-1], attention.heads, bias=True, batch_first=True).eval()
    theirs.load_state_dict({
        "in_proj_weight": attention.qkv.weight,
        "in_proj_bias": torch.zeros(3 * tokens.shape[-1]),
        "out_proj.weight": attention.proj.weight,
        "out_proj.bias": attention.proj.bias,
    })  # fmt: skip
    return theirs(tokens, tokens, tokens, attn_mask=mask, need_weights=False)[0]


def gated(mlp: GatedMlp, tokens: torch.Tensor) -> torch.Tensor:
    """Compute the same gated MLP with timm."""
    from timm.layers import SwiGLU

    theirs = SwiGLU(tokens.shape[-1], mlp.w1.out_features)
    names = {"w1": "fc1_g", "w2": "fc1_x", "w3": "fc2"}
    theirs.load_state_dict({f"{names[key[:2]]}{key[2:]}": tensor for key, tensor in mlp.state_dict().items()})
    return theirs(tokens)


def headed(head: VisionHead, tokens: torch.Tensor) -> torch.Tensor:
    """Compute the vision head with PyTorch's attention and timm's MLP."""
    for block in head.blocks:
        tokens = tokens + block.ls1.gamma * attended(block.attn, block.norm1(tokens))
        tokens = tokens + block.ls2.gamma * gated(block.mlp, block.norm2(tokens))
    return head.ln_final(tokens)


@torch.no_grad()
def test_vision_tower_joins_class_token_and_patch_mean():
    tower = drawn(VisionTower(DIM, DEPTH, HEADS))
    for block in tower.backbone.blocks:
        block.attn.qkv.bias_mask[DIM : 2 * DIM] = 0
    frames = pictures(2, 3, 48, 64)
    tokens = headed(tower.head, reference(tower.backbone)(pixel_values=frames).last_hidden_state)
    expected = torch.cat([tokens[:, 0], tokens[:, 1 + REGISTERS :].mean(dim=1)], dim=1)
    assert tower(frames).shape == (2, 2 * DIM)
    close(tower(frames), expected)


@torch.no_grad()
def test_text_tower_equals_open_clip():
    from open_clip.transformer import TextTransformer

    ours = drawn(TextTower(DIM, DEPTH, HEADS, 2 * DIM))
    theirs = TextTransformer(
        context_length=CONTEXT, vocab_size=VOCABULARY, width=DIM, heads=HEADS, layers=DEPTH, output_dim=2 * DIM
    ).eval()
    state = ours.state_dict()
    parts = {
        "positional_embedding": state["backbone.positional_embedding"],
        "text_projection": state["head.linear_projection.weight"].T,
        "token_embedding.weight": state["backbone.token_embedding.weight"],
        "ln_final.weight": state["backbone.ln_final.weight"],
        "ln_final.bias": state["backbone.ln_final.bias"],
    }
    names = {"attention_norm": "ln_1", "ffn_norm": "ln_2", "attention.proj": "attn.out_proj",
             "feed_forward.fc1": "mlp.c_fc", "feed_forward.fc2": "mlp.c_proj"}  # fmt: skip
    for number in range(DEPTH):
        block = f"transformer.resblocks.{number}."
        parts[f"{block}attn.in_proj_weight"] = state[f"backbone.blocks.{number}.attention.qkv.weight"]
        parts[f"{block}attn.in_proj_bias"] = torch.zeros(3 * DIM)
        for mine, other in names.items():
            for kind in ("weight", "bias"):
                parts[f"{block}{other}.{kind}"] = state[f"backbone.blocks.{number}.{mine}.{kind}"]
    theirs.load_state_dict(parts, strict=True)
    assert len(state) == 5 + DEPTH * (1 + 2 * len(names))

    ids = torch.zeros(3, CONTEXT, dtype=torch.long)
    for line, length in enumerate((3, 20, CONTEXT)):
        ids[line, 0], ids[line, length - 1] = 49406, 49407
        ids[line, 1 : length - 1] = torch.arange(1, length - 1) * 37 % 49000
    close(ours(ids), theirs(ids))
