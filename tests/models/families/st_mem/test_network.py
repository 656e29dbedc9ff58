"""Compare the network of ST-MEM with the published code and hand-worked values."""

import pytest
import torch

from cardiobench.models.families.st_mem import network as st_mem
from tests.models.networks import Case, check_description, check_outputs, check_token_shape


def st_mem_outputs(network, x, x600):
    lead = x[:, 1:2]
    # The published code gives one lead twelve embeddings, and drops only the first and last token overall.
    copies = network.with_separators(lead.expand(-1, 12, -1), range(12)).flatten(1, 2)[:, 1:-1]
    return {
        "tokens": network.tokens(x),
        "representation": network.representation(x)[:, 0],
        "tokens_600": network.tokens(x600),
        "representation_600": network.representation(x600)[:, 0],
        # Its single-lead network uses the embedding of lead I for every lead.
        "representation_lead1_model": network.representation(lead, leads=[0])[:, 0],
        "representation_broadcast": network.norm(copies.mean(1)),
    }


CASES = {"st_mem_vit_base": Case(st_mem.StMem, st_mem_outputs, st_mem.published_keys)}


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    check_description(CASES[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_outputs(name):
    check_outputs(CASES[name], name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "samples", "count"), [(st_mem.StMem.tokens, 2250, 360), (st_mem.StMem.representation, 600, 1)]
)
def test_tokens(read, samples, count):
    check_token_shape(st_mem.StMem, read, (2, 12, samples), (2, count, 768))


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
