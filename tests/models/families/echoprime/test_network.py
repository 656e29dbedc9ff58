"""Compare the networks of EchoPrime with the published code."""

import pytest
import torch
from torch import nn

from cardiobench.models.families.echoprime.adapter import EchoPrimeVectors
from cardiobench.models.families.echoprime.network import video_encoder, view_classifier
from cardiobench.models.families.echoprime.text_network import EchoPrimeText
from tests.models.golden import Golden
from tests.models.networks import (
    check_size,
    unfilled,
)


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


def test_echoprime_networks_in_one_folder():
    with torch.device("meta"):
        names = EchoPrimeVectors().state_dict()
    assert {name.partition(".")[0] for name in names} == {"video", "view"}


@pytest.mark.parametrize(
    ("make", "tensors", "numbers"),
    [
        (video_encoder, 397, 34_623_872),
        (lambda: view_classifier(11), 344, 87_577_739),
        (EchoPrimeText, 206, 109_908_026),
    ],
)
def test_size(make, tensors, numbers):
    check_size(make, tensors, numbers)


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
