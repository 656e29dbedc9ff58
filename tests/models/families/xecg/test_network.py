"""Compare the network of xECG with the published code, and its recurrences with slow loops over the equations."""

import numpy as np
import pytest
import torch

from cardiobench.models.families.xecg import network as xecg
from tests.models.encoders import load, record
from tests.models.families.xecg.checkpoint import NAME, base, cuda_layout, weights
from tests.models.networks import Case, check_description, check_outputs


def outputs(network, signal):
    signal[1, 900:] = 0  # Padding.
    leads_first = signal.transpose(1, 2)
    return {"tokens": network.tokens(leads_first), "representation": network.representation(leads_first)[:, 0]}


CASE = Case(xecg.XEcg, outputs, xecg.published_keys)


def test_names_shapes_and_constants():
    check_description(CASE, "xecg_base")


@pytest.mark.slow
def test_outputs():
    check_outputs(CASE, "xecg_base")


def normal(*shape, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=shape)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_slstm_follows_its_equations(scale):
    """Compare with equations 10 to 14 of arXiv:2405.04517 without stabilisation, in a float type with a wide exponent."""
    gates, recurrent = normal(2, 6, 4, 6, scale=scale), normal(2, 12, 3, seed=1)
    got = xecg.slstm(torch.tensor(gates), torch.tensor(recurrent)).numpy()
    for row in range(2):
        for head in range(2):
            own = slice(3 * head, 3 * head + 3)
            hidden, cell, norm = (np.zeros(3, np.longdouble) for _ in range(3))
            for step in range(6):
                full = gates[row, step][:, own] + (recurrent[head] @ hidden.astype(float)).reshape(4, 3)
                enter, forget, value, out = full.astype(np.longdouble)
                cell = sigmoid(forget) * cell + np.exp(enter) * np.tanh(value)
                norm = sigmoid(forget) * norm + np.exp(enter)
                hidden = sigmoid(out) * cell / norm
                np.testing.assert_allclose(got[row, step, own], hidden.astype(float), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_mlstm_follows_its_equations(scale):
    """Compare the parallel form with the recurrence of a matrix memory, equations 19 to 27 of arXiv:2405.04517."""
    query, key, value = (normal(1, 2, 7, 3, seed=seed) for seed in range(3))
    enter, forget = normal(1, 2, 7, seed=3, scale=scale), normal(1, 2, 7, seed=4, scale=scale)
    got = xecg.mlstm(*map(torch.tensor, (query, key, value, enter, forget))).numpy()
    for head in range(2):
        memory, norm = np.zeros((3, 3), np.longdouble), np.zeros(3, np.longdouble)
        for step in range(7):
            keep = sigmoid(forget[0, head, step].astype(np.longdouble))
            write = np.exp(enter[0, head, step].astype(np.longdouble))
            scaled = key[0, head, step] / np.sqrt(3)
            memory = keep * memory + write * np.outer(value[0, head, step], scaled)
            norm = keep * norm + write * scaled
            wanted = memory @ query[0, head, step] / max(abs(norm @ query[0, head, step]), 1)
            np.testing.assert_allclose(got[0, head, step], wanted.astype(float), rtol=2e-5, atol=1e-9)


@pytest.fixture
def small(monkeypatch):
    """Return one block of each kind with random weights, a signal, and the weights under their published names."""
    monkeypatch.setattr(xecg, "BLOCKS", "sm")
    state, network = weights(), xecg.XEcg().eval()
    network.load_state_dict(xecg.published_keys(state))
    with torch.inference_mode():
        yield network, torch.randn(2, 12, 100, generator=torch.Generator().manual_seed(0)), state


def test_first_block_reads_forwards_and_the_second_backwards(small, monkeypatch):
    network, signal, _ = small
    changed = signal.clone()
    changed[:, :, 75:] += 1
    difference = (network.tokens(changed) - network.tokens(signal)).abs().amax((0, 2))
    assert (difference > 1e-3).all(), "a later patch reaches earlier ones through the second block"
    network.blocks = network.blocks[:1]
    difference = (network.tokens(changed) - network.tokens(signal)).abs().amax((0, 2))
    assert not difference[:3].any() and difference[3] > 1e-3, "the first block is causal"


def test_mean_leaves_out_patches_that_begin_with_zeros(small):
    network, signal, _ = small
    tokens = network.tokens(signal)
    torch.testing.assert_close(network.representation(signal)[:, 0], tokens.mean(1))
    signal[0, :, 75] = 0
    signal[1, 1:, 75] = 0  # One lead is not zero.
    tokens, pooled = network.tokens(signal), network.representation(signal)
    torch.testing.assert_close(pooled[0, 0], tokens[0, :3].mean(0))
    torch.testing.assert_close(pooled[1, 0], tokens[1].mean(0))
    nothing = torch.zeros(1, 12, 100)
    torch.testing.assert_close(network.representation(nothing)[:, 0], network.tokens(nothing).mean(1))


def test_both_layouts_of_the_recurrent_weights_are_read(small):
    network, _, state = small
    cuda = cuda_layout(state)
    assert cuda["core.model.blocks.0.xlstm.slstm_cell._recurrent_kernel_"].shape == (4, 256, 1024)
    read = xecg.published_keys(cuda)
    assert set(read) == set(network.state_dict())
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, read[name]), name


@pytest.mark.slow
def test_short_record_is_not_mixed_with_its_padding(tmp_path, monkeypatch):
    monkeypatch.setattr(xecg, "BLOCKS", "sm")
    encoder = load(NAME, base(tmp_path))
    parts = encoder.transform(record(6.0))
    tokens = encoder.network.network.tokens(parts)
    torch.testing.assert_close(encoder.encode(parts), tokens[:, :24].mean(1))
