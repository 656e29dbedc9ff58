"""Compare the networks for echocardiography with outputs of the published code for the same weights."""

import pytest
import torch

from cardiobench.models.families.echofm.network import EchoFM
from cardiobench.models.families.echoprime.adapter import EchoPrimeVectors
from cardiobench.models.families.echoprime.network import video_encoder, view_classifier
from cardiobench.models.families.echoprime.text_network import EchoPrimeText
from cardiobench.models.families.panecho.heads import HEADS, activated
from cardiobench.models.families.panecho.network import PanEcho
from tests.models.golden import Golden


def unfilled(make):
    """Build a network without drawing initial weights, which would take longer than the test."""
    with torch.device("meta"):
        network = make()
    return network.to_empty(device="cpu")


@pytest.mark.slow
@torch.no_grad()
def test_video_encoder_of_echoprime():
    golden = Golden("echoprime_video_encoder")
    network = golden.filled(unfilled(video_encoder))
    golden.check_facts(network)
    tokens = []
    network.norm.register_forward_hook(lambda module, inputs, output: tokens.append(output))
    embedding = network(torch.from_numpy(golden.input((1, 3, 16, 224, 224))))
    golden.check(
        {
            "embedding": embedding,
            "cls_after_norm": tokens[0][:, 0],
            "token_mean_after_norm": tokens[0].mean(dim=1),
        }
    )


@pytest.mark.slow
@torch.no_grad()
def test_view_classifier_of_echoprime():
    golden = Golden("echoprime_view_classifier")
    network = golden.filled(unfilled(lambda: view_classifier(11)))
    golden.check_facts(network)
    images = torch.from_numpy(golden.input((1, 3, 224, 224)))
    pooled = network.avgpool(network.features(images))
    golden.check(
        {"logits": network(images), "pooled": pooled.flatten(1), "normed_pooled": network.classifier[:2](pooled)}
    )


@pytest.mark.slow
@torch.no_grad()
def test_text_encoder_of_echoprime():
    golden = Golden("echoprime_text_encoder")
    network = golden.filled(EchoPrimeText())
    eps = {m.eps for m in network.modules() if isinstance(m, torch.nn.LayerNorm)}
    assert eps == {1e-12}
    ids = torch.from_numpy(golden.input((2, 64), "ids"))
    ids[1, 40], ids[1, 41:] = 3, 0
    mask = torch.ones_like(ids)
    mask[1, 41:] = 0
    hidden = network.hidden(ids, mask)
    golden.check(
        {
            "embedding": network(ids, mask),
            "last_hidden_first_row": hidden[0],
            "mlm_logits_row0_pos0": network.backbone.cls(hidden[:1, :1])[0, 0],
        }
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
    for head, published in zip(HEADS, config["heads"], strict=True):
        assert head.name == published["task"]
        assert list(head.classes) == published["classes"]
        assert kinds[len(head.classes)] == published["type"]
        assert (start, head.width) == (published["start"], published["width"])
        assert (head.unit is None) == bool(head.classes)
        start += head.width
    assert {head.name for head in HEADS if head.inverted} == set(config["inverted"])


@pytest.mark.slow
@torch.no_grad()
def test_echofm():
    golden = Golden("echofm_vitl")
    network = golden.filled(unfilled(EchoFM))
    golden.check_facts(network)
    tokens = network.tokens(torch.from_numpy(golden.input((1, 3, 32, 224, 224), "uniform")))
    golden.check({"tokens": tokens, "embedding": tokens.mean(dim=1), "phase": network.phases(tokens)})


def test_echoprime_networks_in_one_folder():
    with torch.device("meta"):
        names = EchoPrimeVectors().state_dict()
    assert {name.partition(".")[0] for name in names} == {"video", "view"}
