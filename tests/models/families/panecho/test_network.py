"""Compare the network of PanEcho with the published code."""

import pytest
import torch

from cardiobench.models.families.panecho import network as panecho
from cardiobench.models.families.panecho.heads import HEADS, WIDTHS, activated, by_head, head
from cardiobench.models.families.panecho.network import PanEcho
from tests.models.golden import Golden
from tests.models.networks import (
    check_size,
    clips,
    drawn,
)


@pytest.mark.slow
@torch.no_grad()
def test_panecho():
    golden = Golden("panecho")
    network = golden.filled(PanEcho())
    golden.check_facts(network)
    clips = torch.from_numpy(golden.input((1, 3, 16, 224, 224)))
    embedding = network(clips)
    outputs = network.outputs(embedding)
    golden.check(
        {
            "embedding": embedding,
            "heads_off": outputs,
            "heads_on": activated(outputs),
            "frame_features_time_order": network.encoder.encoder(clips[0].transpose(0, 1)),
        }
    )


def test_heads_of_panecho_are_the_published_ones():
    config = Golden("panecho").spec["config"]
    kinds = {0: "regression", 2: "binary_classification", 3: "multi-class_classification"}
    start = 0
    for own, published in zip(HEADS, config["heads"], strict=True):
        assert own.name == published["task"]
        assert list(own.classes) == published["classes"]
        assert kinds[len(own.classes)] == published["type"]
        assert (start, own.width) == (published["start"], published["width"])
        assert (own.unit is None) == bool(own.classes)
        start += own.width
    assert {head.name for head in HEADS if head.inverted} == set(config["inverted"])


def test_size():
    check_size(PanEcho, 309, 42_063_514 - 16 * 768)


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
