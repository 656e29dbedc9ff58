import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Clip
from cardiobench.models.baselines.random_vit import random_vit, weights_digest
from cardiobench.models.load import load_model


@pytest.mark.slow
def test_seed_decides_the_weights():
    assert (
        weights_digest(random_vit(0)) == weights_digest(random_vit(0)) == load_model("cardiobench/random-vit").revision
    )
    assert weights_digest(random_vit(0)) != weights_digest(random_vit(1))


def test_frames_are_scaled_to_one():
    encoder = load_model("cardiobench/random-vit").encoder
    frames = np.zeros((2, 60, 80, 3), dtype=np.uint8)
    frames[1] = 255
    parts = encoder.transform(Clip(frames, np.arange(2), 2))
    assert parts.shape == (2, 3, 112, 112)
    torch.testing.assert_close(parts[0], torch.full((3, 112, 112), -1.0))
    torch.testing.assert_close(parts[1], torch.full((3, 112, 112), 1.0))


def test_network_is_frozen_and_separates_frames():
    encoder = load_model("cardiobench/random-vit").encoder
    assert not any(module.training for module in encoder.network.modules())
    assert not any(parameter.requires_grad for parameter in encoder.network.parameters())
    frames = np.random.default_rng(0).integers(0, 256, (4, 112, 112, 3), dtype=np.uint8)
    vectors = encoder.encode(encoder.transform(Clip(frames, np.arange(4), 4)))
    assert torch.pdist(vectors).min() > 1e-3
