"""Compare the attention of vision transformers with that of PyTorch."""

import pytest
import torch

from cardiobench.models.blocks.vit_block import Attention


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_attention_equals_pytorch(qkv_bias):
    generator = torch.Generator().manual_seed(0)
    own, theirs = Attention(24, 4, True, qkv_bias).eval(), torch.nn.MultiheadAttention(24, 4, batch_first=True).eval()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(own.qkv.weight)
        theirs.in_proj_bias.copy_(own.qkv.bias if qkv_bias else torch.zeros(72))
        theirs.out_proj.load_state_dict(own.proj.state_dict())
        tokens = torch.randn(2, 9, 24, generator=generator)
        allowed = torch.rand(9, 9, generator=generator) < 0.5
        allowed.fill_diagonal_(True)
        wanted, _ = theirs(tokens, tokens, tokens, attn_mask=~allowed)
        torch.testing.assert_close(own(tokens, allowed), wanted)
