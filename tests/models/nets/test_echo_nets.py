"""Compare the networks for echocardiography with the same networks in libraries, hand-worked values and counts."""

from functools import partial

import pytest
import timm
import torch
from torch import nn

from cardiobench.models.families.echofm import network as echofm
from cardiobench.models.families.echofm.network import EchoFM
from cardiobench.models.families.echoprime.network import video_encoder, view_classifier
from cardiobench.models.families.echoprime.text_network import EchoPrimeText
from cardiobench.models.families.panecho import network as panecho
from cardiobench.models.families.panecho.heads import HEADS, WIDTHS, activated, by_head, head
from cardiobench.models.families.panecho.network import PanEcho


def drawn(network: nn.Module, seed: int = 0) -> nn.Module:
    """Randomise every tensor, including tables and scales that start at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in network.parameters():
            wide = tensor.ndim > 1
            tensor.normal_(0 if wide else 0.5, 1 / tensor[0].numel() ** 0.5 if wide else 0.2, generator=generator)
    return network.eval()


def clips(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("make", "tensors", "numbers"),
    [
        (video_encoder, 397, 34_623_872),
        (lambda: view_classifier(11), 344, 87_577_739),
        (EchoPrimeText, 206, 109_908_026),
        (PanEcho, 309, 42_063_514 - 16 * 768),
        (EchoFM, 550, 344_513_280),
    ],
)
def test_size(make, tensors, numbers):
    with torch.device("meta"):
        network = make()
    assert len(network.state_dict()) == tensors
    assert sum(tensor.numel() for tensor in network.parameters()) == numbers


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


@pytest.fixture(scope="module")
def drawn_panecho():
    return drawn(PanEcho())


@pytest.mark.slow
@torch.no_grad()
def test_panecho_sees_planes_in_the_order_of_memory(drawn_panecho):
    seen = []
    hook = drawn_panecho.encoder.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    planes = torch.arange(2 * 3 * 16.0).reshape(2, 3, 16, 1, 1).expand(2, 3, 16, 32, 32)
    drawn_panecho(planes / 96)
    hook.remove()
    assert (seen[0][:, :, 0, 0] * 96).round().tolist() == [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(32)]


@pytest.mark.slow
@torch.no_grad()
def test_panecho_frames_by_hand(drawn_panecho):
    network = drawn_panecho
    clip = clips(2, 3, 16, 32, 32)
    frames = network.encoder.encoder(clip.reshape(32, 3, 32, 32)).reshape(2, 16, 768) + network.encoder.time_encoder.pe
    for layer in network.encoder.transformer.layers:
        mixed, _ = layer.self_attn(frames, frames, frames)
        frames = layer.norm1(frames + mixed)
        frames = layer.norm2(frames + layer.linear2(layer.linear1(frames).relu()))
    torch.testing.assert_close(network(clip), frames.mean(dim=1), rtol=1e-4, atol=1e-4)
    table = panecho.time_code()[0]
    assert table[5, 0].item() == pytest.approx(-0.9589243, abs=1e-6)  # The value of sin(5).
    assert table[5, 1].item() == pytest.approx(0.2836622, abs=1e-6)  # The value of cos(5).
    assert table[7, 384].item() == pytest.approx(0.0699428, abs=1e-6)  # sin(7 / 10000^(1/2))


def test_heads_of_panecho():
    assert len(HEADS) == 40 and sum(WIDTHS) == 58
    assert [sum(len(h.classes) == n for h in HEADS) for n in (0, 2, 3)] == [21, 10, 9]
    assert sum(h.inverted for h in HEADS) == 7
    assert head("AVStenosis").classes == ("Mild|Moderate", "None", "Severe")
    assert {h.name: h.unit for h in HEADS if h.name in ("EF", "LVIDd", "RVSP", "TAPSE", "AVPkVel(m|s)")} == {
        "EF": "%",
        "LVIDd": "cm",
        "RVSP": "mmHg",
        "TAPSE": "cm",
        "AVPkVel(m|s)": "m/s",
    }
    assert head("MVStenosis").positive == "Mild|Moderate|Severe"
    assert head("LVWallMotionAbnormalities").positive == "Present"
    assert head("EF").positive == head("AVStenosis").positive == ""


def test_activations_by_hand():
    raw = torch.zeros(2, 58)
    parts = by_head(raw)
    parts["MVStenosis"][0] = 2.0
    parts["LVWallMotionAbnormalities"][0] = 2.0
    parts["EF"][0] = 61.5
    parts["AVStenosis"][0] = torch.tensor([0.0, 1.0, 0.0])
    answers = by_head(activated(raw))
    assert answers["MVStenosis"].flatten().tolist() == pytest.approx([0.1192029, 0.5])  # The value of 1 - sigmoid(2).
    assert answers["LVWallMotionAbnormalities"].flatten().tolist() == pytest.approx([0.8807971, 0.5])
    assert answers["EF"].flatten().tolist() == [61.5, 0.0]
    assert answers["AVStenosis"][0].tolist() == pytest.approx([0.2119416, 0.5761169, 0.2119416])


@torch.no_grad()
def test_report_encoder_ignores_masked_tokens():
    from transformers import BertConfig, BertForMaskedLM

    with torch.device("meta"):
        network = EchoPrimeText()
    small = BertConfig(vocab_size=50, hidden_size=768, num_hidden_layers=1, num_attention_heads=12)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network.backbone, network.text_projection = BertForMaskedLM(small), nn.Linear(768, 512)
    network.eval()
    ids = torch.tensor([[2, 7, 9, 3, 0, 0], [2, 7, 9, 3, 11, 12]])
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]] * 2)
    vectors = network(ids, mask)
    assert vectors.shape == (2, 512)
    torch.testing.assert_close(vectors[0], vectors[1])
    assert not torch.allclose(network(ids, torch.ones_like(mask))[1], vectors[1], atol=1e-4)
