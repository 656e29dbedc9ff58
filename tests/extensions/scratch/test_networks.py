"""Test networks trained from scratch: the published reference's outputs, sizes, and properties of kernels."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from cardiobench.embeddings.cost import count_work
from cardiobench.extensions.scratch.recipes import RECIPES
from cardiobench.models.blocks.s4 import S4Classifier, S4Kernel, S4Layer, convolve
from tests.models.golden import Golden


def test_s4_gives_the_published_outputs():
    golden = Golden("rc_s4_supervised")
    network = S4Classifier(5)
    state = network.state_dict()
    assert {key: tuple(value.shape) for key, value in state.items()} == golden.shapes
    assert sum(one.numel() for one in network.parameters()) == golden.spec["total_params"]
    network.load_state_dict({**golden.weights, **golden.kept})
    with torch.no_grad():
        outputs = network.eval()(torch.from_numpy(golden.input((2, 12, 250))))
    golden.check({"logits": outputs})
    golden.check_facts(network)


def test_initial_states_equal_published_up_to_phase():
    golden = Golden("rc_s4_supervised")
    kernel = S4Kernel(2, 8, 250)
    recipe = {name: np.array(golden.spec["kept_recipe"][f"{name}_values"]) @ [1, 1j] for name in "wPQB"}
    ours = {name: torch.view_as_complex(getattr(kernel, name)).reshape(-1, 4)[0].numpy() for name in "wPQB"}
    np.testing.assert_allclose(ours["w"], recipe["w"], atol=1e-5)
    for one, other in ("PQ", "BQ"):
        np.testing.assert_allclose(ours[one] * ours[other], recipe[one] * recipe[other], rtol=1e-4)


def test_kernel_equals_impulse_response():
    """Return the kernel C dA^t dB of the bilinear discretisation, step by step, with C before its length correction."""
    torch.manual_seed(0)
    kernel = S4Kernel(3, 8, 60)
    drawn = torch.randn(2, 3, 4, dtype=torch.complex64)
    with torch.no_grad():
        kernel.C.copy_(torch.view_as_real(kernel._length_corrected(drawn, 60)))
    step, matrix = kernel._transition(), torch.view_as_complex(kernel.B[0]).to(torch.complex128)
    both = torch.cat([matrix, matrix.conj()], -1)
    w, p, q = (torch.view_as_complex(one).to(torch.complex128) for one in (kernel.w, kernel.P[0], kernel.Q[0]))
    w, p, q = (torch.cat([one, one.conj()], -1) for one in (w, p, q))
    generator = torch.diag_embed(w) - p[:, :, None] * q[:, None, :]
    dt = kernel.log_dt.double().exp()[:, None, None]
    state = torch.linalg.solve(torch.eye(8) - dt / 2 * generator, dt * both[:, :, None])
    out = torch.cat([drawn, drawn.conj()], -1).to(torch.complex128)
    wanted = []
    for _ in range(60):
        wanted.append(torch.einsum("chn,hni->ch", out, state).real)
        state = step @ state
    np.testing.assert_allclose(kernel().detach().numpy(), torch.stack(wanted, -1).numpy(), atol=2e-5)


def test_gradients_reach_only_trained_layers():
    network = S4Classifier(2, width=8, layers=2, length=50)
    network(torch.randn(3, 12, 50)).sum().backward()
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in network.parameters())
    assert not any(name.endswith((".w", ".B", ".log_dt")) for name, _ in network.named_parameters())


@pytest.mark.parametrize(("name", "least", "most"), [("small", 2.5e5, 3.5e5), ("r2plus1d", 3e5, 1e6)])
def test_small_networks_treat_recordings_independently(name, least, most):
    torch.manual_seed(0)
    recipe = RECIPES[name]
    network = recipe.build(3, True)
    assert least < sum(one.numel() for one in network.parameters()) < most
    shape = (12, recipe.window) if recipe.modality == "ecg" else (1, recipe.window, 112, 112)
    batch = torch.randn(2, *shape)
    alone = torch.cat([network(batch[:1]), network(batch[1:])])
    torch.testing.assert_close(network(batch), alone, atol=1e-5, rtol=1e-4)


def test_image_variant_has_no_temporal_convolution():
    network = RECIPES["r2plus1d"].build(2, False)
    assert all(one.kernel_size[0] == 1 for one in network.modules() if isinstance(one, torch.nn.Conv3d))
    answers = network(torch.randn(2, 1, 1, 112, 112))
    assert answers.shape == (2, 2)
    answers.sum().backward()
    assert [name for name, one in network.named_parameters() if one.grad is None] == [], "all parameters are used"


def convolutions(*shapes):
    """Return the operations of convolutions given as (positions, inputs, outputs, taps)."""
    return 2 * sum(places * inputs * outputs * taps for places, inputs, outputs, taps in shapes)


def small_by_hand():
    """Test 250 samples: a stem to 125 positions, and blocks to 63, 32, 16 and 8, with two convolutions and a shortcut each."""
    widths, taps, places = (32, 32, 64, 128, 128), (5, 5, 5, 3), (63, 32, 16, 8)
    shapes, size = [(125, 12, 32, 15)], 12 * 32 * 15 + 2 * 32 + 128 * 5 + 5
    for before, width, count, place in zip(widths, widths[1:], taps, places, strict=False):
        shapes += [(place, before, width, count), (place, width, width, count), (place, before, width, 1)]
        size += before * width * (count + 1) + width * width * count + 4 * width
    return size, convolutions(*shapes) + 2 * 128 * 5


def s4_by_hand():
    """Test 250 samples: linear maps, and kernels of two directions mixed from a basis of 8; FFTs are not counted."""
    layer = 2 * 250 * 512 * 1024 + 2 * 2 * 8 * 512 * 250
    return 2_149_381, 2 * 250 * 12 * 512 + 4 * layer + 2 * 512 * 5


def r2plus1d_by_hand():
    """Test 16 frames of 112 x 112: a stem to 56 x 56, and blocks to 56, 28, 14 and 7 squared with 16, 8, 4 and 2 frames."""
    widths = (16, 16, 32, 64, 128)
    shapes, size = [(16 * 56**2, 1, 16, 49)], 49 * 16 + 32 + 128 * 5 + 5
    frames, side = 16, 56
    for number, (before, width) in enumerate(pairwise(widths)):
        space = side // 2 if number else side
        time = frames // 2 if number else frames
        shapes += [
            (frames * space**2, before, width, 9), (time * space**2, width, width, 3),
            (time * space**2, width, width, 9), (time * space**2, width, width, 3), (time * space**2, before, width, 1),
        ]  # fmt: skip
        size += 9 * before * width + 9 * width**2 + 6 * width**2 + before * width + 4 * 2 * width
        frames, side = time, space
    return size, convolutions(*shapes) + 2 * 128 * 5


def net1d_by_hand():
    """Test 1,250 samples: a stem to 625 positions, then seven stages that halve the length; batch norms are not counted."""
    places, before = 625, 64
    size, flops = 12 * 64 * 16 + 64 + 1024 * 5 + 5, convolutions((625, 12, 64, 16)) + 2 * 1024 * 5
    for width, blocks in ((64, 2), (160, 2), (160, 2), (400, 3), (400, 3), (1024, 4), (1024, 4)):
        for number in range(blocks):
            after = places if number else -(-places // 2)
            size += (before + 1) * width + (16 * 16 + 1) * width + (width + 1) * width
            size += (width + 1) * (width // 2) + (width // 2 + 1) * width
            flops += convolutions((places, before, width, 1), (after, 16, width, 16), (after, width, width, 1))
            flops += 2 * 2 * width * (width // 2)
            places, before = after, width
    return size, flops


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [("small", small_by_hand), ("s4", s4_by_hand), ("net1d", net1d_by_hand), ("r2plus1d", r2plus1d_by_hand)],
)
def test_parameters_and_operations_equal_hand_counts(name, by_hand):
    network = RECIPES[name].build(5, True).eval()
    window = RECIPES[name].window
    shape = (12, window) if RECIPES[name].modality == "ecg" else (1, window, 112, 112)
    sizes, flops = count_work(lambda: network(torch.zeros(1, *shape)))
    assert (sum(sizes.values()), flops) == by_hand()


def test_image_variant_cost_equals_hand_count():
    shapes, size = [(56**2, 1, 16, 49)], 49 * 16 + 32 + 128 * 5 + 5
    for side, before, width in ((56, 16, 16), (28, 16, 32), (14, 32, 64), (7, 64, 128)):
        shapes += [(side**2, before, width, 9), (side**2, width, width, 9), (side**2, before, width, 1)]
        size += 10 * before * width + 9 * width**2 + 2 * 2 * width
    network = RECIPES["r2plus1d"].build(5, False).eval()
    sizes, flops = count_work(lambda: network(torch.zeros(1, 1, 1, 112, 112)))
    assert (sum(sizes.values()), flops) == (size, convolutions(*shapes) + 2 * 128 * 5)


@pytest.mark.parametrize("length", [40, 250])
def test_product_of_shifts_equals_fft_convolution(length):
    """Compare both implementations with the sum over lags: for 8 recordings, 40 samples use the product and 250 the FFT."""
    rng = torch.Generator().manual_seed(0)
    signal, kernel = torch.randn(3, 8, length, generator=rng), torch.randn(3, 2 * length - 1, generator=rng)
    wanted = torch.zeros(3, 8, length, dtype=torch.float64)
    for channel, row in np.ndindex(3, 8):
        whole = np.convolve(signal[channel, row].double(), kernel[channel].double())
        wanted[channel, row] = torch.from_numpy(whole[length - 1 : 2 * length - 1])
    torch.testing.assert_close(convolve(signal, kernel).double(), wanted, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("length", [50, 40])
def test_halves_with_exchanged_states_equal_fft(length):
    """Compare one recording (FFT) with ten (convolved in halves): outputs and gradients agree."""
    torch.manual_seed(0)
    layer, signal = S4Layer(6, 8, 50, 0.0), torch.randn(6, 10, length)
    found, gradients = {}, {}
    for count in (1, 10):
        found[count] = torch.cat([layer(one) for one in signal.split(count, dim=1)], dim=1)
        gradients[count] = torch.autograd.grad(found[count].square().sum(), list(layer.parameters()))
    torch.testing.assert_close(found[10], found[1], atol=1e-5, rtol=1e-5)
    for one, other in zip(gradients[10], gradients[1], strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("count", [1, 16])
def test_s4_runs_under_autocast(count):
    network, signal = S4Classifier(2, width=8, layers=1, length=50).eval(), torch.randn(count, 12, 50)
    with torch.autocast("cpu", torch.bfloat16):
        half = network(signal)
    torch.testing.assert_close(half.float(), network(signal), atol=0.03, rtol=0.05)
