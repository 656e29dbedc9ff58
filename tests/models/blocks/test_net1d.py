"""Test Net1D: outputs of the published code for the network of ECGFounder, sizes, edges."""

from functools import partial

import pytest
import torch

from cardiobench.models.blocks import net1d
from tests.models.networks import Case, check_description, check_outputs, check_published, check_token_shape


def net1d_outputs(network, x):
    columns = network.feature_map(x)
    return {"logits": network(x), "features": network.tokens(x).mean(1), "feature_map": columns}


CASES = {
    "ecgfounder_net1d_12lead": Case(net1d.Net1D, net1d_outputs),
    "ecgfounder_net1d_1lead": Case(partial(net1d.Net1D, leads=1), net1d_outputs),
}


@pytest.mark.parametrize("name", CASES)
def test_names_shapes_and_constants(name):
    check_description(CASES[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_outputs(name):
    check_outputs(CASES[name], name)


@pytest.mark.parametrize(
    ("leads", "parameters", "names"), [(12, 30819014, "b3d510030a8dccfd"), (1, 30807750, "7c35e9dfc5a626be")]
)
def test_parameters_and_names(leads, parameters, names):
    check_published(partial(net1d.Net1D, leads=leads), parameters, names)


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "count"), [(5000, 20), (2500, 10), (1250, 5)])
def test_tokens(samples, count):
    check_token_shape(net1d.Net1D, net1d.Net1D.tokens, (2, 12, samples), (2, count, 1024))


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
