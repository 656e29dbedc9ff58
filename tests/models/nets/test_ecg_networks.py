"""Test properties of the ECG networks without reference outputs: published names and sizes, positions, attention, edges."""

import math
from functools import partial

import pytest
import torch

from cardiobench.models.blocks import net1d
from cardiobench.models.blocks.vit_block import Attention
from cardiobench.models.families.ecg_fm import network as wav2vec2_cmsc
from cardiobench.models.families.ecg_jepa_kim import network as ecg_jepa_kim
from cardiobench.models.families.ecg_jepa_weimann import network as ecg_jepa_weimann
from cardiobench.models.families.hubert_ecg import network as hubert_ecg
from cardiobench.models.families.st_mem import network as st_mem
from tests.models.golden import key_hash

HUBERT = {size: partial(hubert_ecg.build, numbers) for size, numbers in hubert_ecg.SIZES.items()}
WEIMANN = {size: partial(ecg_jepa_weimann.EcgJepaWeimann, size) for size in ecg_jepa_weimann.SIZES}

# Number of parameters, and hash of all names and shapes in the published code.
PUBLISHED = {
    "ECGFounder": (net1d.Net1D, 30819014, "b3d510030a8dccfd"),
    "ECGFounder, 1 lead": (partial(net1d.Net1D, leads=1), 30807750, "7c35e9dfc5a626be"),
    "ECG-FM": (wav2vec2_cmsc.Wav2Vec2Cmsc, 90883072, "79256519471440be"),
    "Weimann XS": (WEIMANN["XS"], 3600000, "28d8bffd4f5318eb"),
    "Weimann S": (WEIMANN["S"], 14277888, "15db27c60a369150"),
    "Weimann B": (WEIMANN["B"], 85185024, "78347dbc85beebf7"),
    "Kim": (ecg_jepa_kim.EcgJepaKim, 85374720, "9b8bc1856e34df28"),
    "HuBERT-ECG small": (HUBERT["small"], 30209664, "b1d902cb36b59ae4"),
    "HuBERT-ECG base": (HUBERT["base"], 92798848, "ce7c6a690bf0637c"),
    "HuBERT-ECG large": (HUBERT["large"], 187644736, "133fe815c859bc7c"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_names(name):
    build, parameters, names = PUBLISHED[name]
    with torch.device("meta"):
        network = build()
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    shapes = {key: tensor.shape for key, tensor in network.state_dict().items()}
    assert key_hash(shapes) == names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "read", "signal", "tokens"),
    [
        (net1d.Net1D, net1d.Net1D.tokens, (2, 12, 5000), (2, 20, 1024)),
        (net1d.Net1D, net1d.Net1D.tokens, (2, 12, 2500), (2, 10, 1024)),
        (net1d.Net1D, net1d.Net1D.tokens, (2, 12, 1250), (2, 5, 1024)),
        (
            wav2vec2_cmsc.Wav2Vec2Cmsc,
            wav2vec2_cmsc.Wav2Vec2Cmsc.tokens,
            (2, 12, 2500),
            (2, 156, 768),
        ),
        (WEIMANN["S"], ecg_jepa_weimann.EcgJepaWeimann.tokens, (2, 12, 5000), (2, 200, 384)),
        (WEIMANN["S"], ecg_jepa_weimann.EcgJepaWeimann.with_register, (2, 12, 5000), (2, 201, 384)),
        (ecg_jepa_kim.EcgJepaKim, ecg_jepa_kim.EcgJepaKim.tokens, (2, 8, 2500), (2, 400, 768)),
        (HUBERT["small"], hubert_ecg.tokens, (2, 6000), (2, 93, 512)),
        (HUBERT["large"], hubert_ecg.tokens, (2, 6000), (2, 93, 960)),
        (st_mem.StMem, st_mem.StMem.tokens, (2, 12, 2250), (2, 360, 768)),
        (st_mem.StMem, st_mem.StMem.representation, (2, 12, 600), (2, 1, 768)),
    ],
)
def test_tokens(build, read, signal, tokens):
    with torch.device("meta"):
        network = build().eval().to("meta")
        got = read(network, torch.zeros(signal)).shape
    assert got == tokens


def test_same_convolution_rounds_up_and_pads_right():
    layer = net1d.SameConv1d(1, 1, 16, 2)
    torch.nn.init.zeros_(layer.conv.bias)
    torch.nn.init.zeros_(layer.conv.weight)
    layer.conv.weight.data[0, 0, 0] = 1  # The kernel returns its first sample.
    ramp = torch.arange(1.0, 6)[None, None]  # Samples 1 2 3 4 5: 3 outputs, 15 zeros of padding, 7 on the left.
    assert layer(ramp)[0, 0].tolist() == [0, 0, 0]
    layer.conv.weight.data.zero_()
    layer.conv.weight.data[0, 0, 7] = 1
    assert layer(ramp)[0, 0].tolist() == [1, 3, 5]


def test_shortcut_of_net1d():
    block = net1d.Bottleneck(32, 48, 2, first=False)
    got = block.shortcut(torch.tensor([-3.0, -1, -2, -4, -5]).repeat(1, 32, 1))
    assert got.shape == (1, 48, 3)
    assert got[0, :8].abs().sum() == 0 and got[0, 40:].abs().sum() == 0
    # The zero after the end takes part in the last maximum.
    assert got[0, 8].tolist() == [-1, -2, 0]


def test_batch_norms_of_net1d_do_nothing():
    network = net1d.Net1D().eval()
    signal = torch.randn(1, 12, 512, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = network(signal)
        for name, tensor in network.state_dict().items():
            if ".bn" in name or name.startswith("first_bn"):
                tensor.fill_(7)
        assert torch.equal(network(signal), before)


def test_positions_of_weimann():
    table = ecg_jepa_weimann.positions(3, 4)
    rows = [[math.sin(place), math.cos(place), math.sin(place / 100), math.cos(place / 100)] for place in range(3)]
    torch.testing.assert_close(table, torch.tensor(rows))


def test_positions_of_kim():
    table = ecg_jepa_kim.positions()
    lead, time = 3, 17
    row = table[lead * 50 + time]
    rate = 10000 ** (-5 / 192)
    for column, value in ((5, math.sin(time * rate)), (192 + 5, math.cos(time * rate))):
        assert row[column] == pytest.approx(value, abs=1e-6)
        assert row[384 + column] == pytest.approx((math.sin if column == 5 else math.cos)(lead * rate), abs=1e-6)


def test_cross_pattern_of_kim():
    allowed = ecg_jepa_kim.cross_pattern()
    assert allowed.sum(dim=1).tolist() == [50 + 8 - 1] * 400
    assert allowed[0, 49] and allowed[0, 50] and allowed[0, 350] and not allowed[0, 51]


@pytest.fixture
def small_st_mem(monkeypatch):
    """Return one block with random values."""
    monkeypatch.setattr(st_mem, "DEPTH", 1)
    network, generator = st_mem.StMem().eval(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, 0.2, generator=generator)
        yield network, torch.randn(1, 12, 300, generator=generator)


def test_leads_of_st_mem_are_known_by_their_names(small_st_mem):
    network, signal = small_st_mem
    few = network.representation(signal[:, [1, 6]], leads=[1, 6])
    torch.testing.assert_close(network.representation(signal[:, [6, 1]], leads=[6, 1]), few)
    assert (network.representation(signal[:, [1, 6]], leads=[0, 1]) - few).abs().max() > 1e-2
    network.lead_embeddings[0].zero_()  # The embedding of an absent lead.
    torch.testing.assert_close(network.representation(signal[:, [1, 6]], leads=[1, 6]), few)


def test_st_mem_is_blind_to_voltage(small_st_mem):
    """Check the invariance stated on the card: each patch may have its own gain and offset."""
    network, signal = small_st_mem
    gain = torch.tensor([1.0, 3.0, 0.5, 2.0]).repeat_interleave(75)
    torch.testing.assert_close(network.tokens(gain * signal + 2 * gain), network.tokens(signal), rtol=0, atol=1e-3)


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


def test_older_names_of_the_weight_norm():
    tensor = torch.zeros(1)
    old = {"encoder.pos_conv_embed.conv.weight_g": tensor, "encoder.pos_conv_embed.conv.weight_v": tensor}
    name = "encoder.pos_conv_embed.conv.parametrizations.weight.original"
    assert set(hubert_ecg.published_keys(old)) == {f"{name}0", f"{name}1"}


def test_names_of_fine_tuned_hubert_ecg():
    tensor = torch.zeros(1)
    tuned = {"hubert_ecg.masked_spec_embed": tensor, "classifier.weight": tensor, "label_embedding.0.weight": tensor}
    assert set(hubert_ecg.published_keys(tuned)) == {"masked_spec_embed"}


def test_names_of_st_mem_with_its_decoder():
    names = (
        "encoder.block3.ff.fn.net.3.bias",
        "encoder.norm.weight",
        "to_patch_embedding.1.weight",
        "decoder_norm.bias",
    )
    found = st_mem.published_keys({name: torch.zeros(1) for name in names})
    assert set(found) == {"blocks.3.mlp.fc2.bias", "norm.weight"}
    assert set(st_mem.published_keys({"block3.attn.gate.weight": torch.zeros(1)})) == {"blocks.3.attn.gate.weight"}


def test_names_of_fine_tuned_ecg_fm():
    with torch.device("meta"):
        network = wav2vec2_cmsc.Wav2Vec2Cmsc(pretraining=False)
    tuned = {f"encoder.{name}": tensor for name, tensor in network.state_dict().items()}
    tuned |= {"proj.weight": torch.zeros(17, 768), "proj.bias": torch.zeros(17)}
    assert wav2vec2_cmsc.published_keys(tuned).keys() == network.state_dict().keys()
