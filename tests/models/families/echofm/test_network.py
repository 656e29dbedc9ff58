"""Compare the network of EchoFM with the published code and with timm."""

from functools import partial

import pytest
import timm
import torch
from torch import nn

from cardiobench.models.families.echofm import network as echofm
from cardiobench.models.families.echofm.network import EchoFM
from tests.models.golden import Golden
from tests.models.networks import (
    check_size,
    clips,
    drawn,
    unfilled,
)


@pytest.mark.slow
@torch.no_grad()
def test_echofm():
    golden = Golden("echofm_vitl")
    network = golden.filled(unfilled(EchoFM))
    golden.check_facts(network)
    tokens = network.tokens(torch.from_numpy(golden.input((1, 3, 32, 224, 224), "uniform")))
    golden.check({"tokens": tokens, "embedding": tokens.mean(dim=1), "phase": network.phases(tokens)})


def test_size():
    check_size(EchoFM, 550, 344_513_280)


@torch.no_grad()
def test_block_of_echofm_equals_timm():
    ours = drawn(echofm.EchoFmBlock(64, heads=4))
    theirs = timm.models.vision_transformer.Block(64, 4, qkv_bias=True, norm_layer=partial(nn.LayerNorm, eps=1e-6))
    state = ours.state_dict()
    for kind in ("weight", "bias"):
        state[f"attn.qkv.{kind}"] = torch.cat([state.pop(f"attn.{part}.{kind}") for part in "qkv"])
    theirs.load_state_dict(state, strict=True)
    tokens = clips(2, 7, 64)
    torch.testing.assert_close(ours(tokens), theirs.eval()(tokens), rtol=1e-5, atol=1e-4)


@torch.no_grad()
def test_small_echofm_by_hand():
    network = drawn(EchoFM(dim=32, depth=0, heads=2, decoder_depth=1))
    clip = clips(2, 3, 32, 224, 224)
    tokens = network.tokens(clip)
    assert tokens.shape == (2, 8 * 196, 32)
    time, row, column = 3, 5, 9
    tube = clip[1, :, 4 * time : 4 * time + 4, 16 * row : 16 * row + 16, 16 * column : 16 * column + 16]
    token = network.patch_embed.proj.weight.flatten(1) @ tube.flatten() + network.patch_embed.proj.bias
    token = token + network.pos_embed_temporal[0, time] + network.pos_embed_spatial[0, 14 * row + column]
    torch.testing.assert_close(tokens[1, 196 * time + 14 * row + column], network.norm(token), rtol=1e-4, atol=1e-4)
    first = network.norm(network.cls_token + network.pos_embed_class)[0, 0]
    torch.testing.assert_close(network.encoded(clip)[0, 0], first)
    phases = network.phases(tokens)
    assert phases.shape == (2, 8, 32)
    alone = torch.cat([network.decoder_prj_cls_token, tokens[:1, 196 * time : 196 * time + 196]], dim=1)
    torch.testing.assert_close(phases[0, time], network.prj_norm(network.decoder_block(alone))[0, 0])
