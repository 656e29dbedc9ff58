"""Compare the arrays that enter EchoPrime with an independent computation."""

import numpy as np
import pytest
import torch

from tests.models.entering import cropped, entering, seen_by, video


@pytest.mark.slow
@pytest.mark.parametrize("count", [45, 9])
def test_echoprime(loaded, count):
    """Check that EchoPrime gets every second frame in RGB order with truncated borders, and its view classifier the first."""
    encoder, frames = loaded("echonet/EchoPrime"), video(count, 48, 66)
    mean, deviation = (29.110628, 28.076836, 29.096405), (47.989223, 46.456997, 47.20083)
    chosen = frames[:32:2]
    wanted = np.zeros((16, 224, 224, 3))
    wanted[: len(chosen)] = (np.stack([cropped(frame, int) for frame in chosen]) - mean) / deviation
    wanted = wanted.transpose(3, 0, 1, 2)
    got = entering(encoder.network.video, encoder, seen_by(encoder, frames))[0].numpy()
    np.testing.assert_allclose(got, wanted, atol=2e-5)
    got = entering(encoder.network.view, encoder, seen_by(encoder, frames))[0].numpy()
    np.testing.assert_allclose(got, wanted[:, 0], atol=2e-5)


@pytest.mark.slow
def test_echoprime_prompts(loaded):
    frames = video(45, 48, 66)
    encoder, usual = loaded("echonet/EchoPrime", "prompts"), loaded("echonet/EchoPrime")
    got = entering(encoder.network.video, encoder, seen_by(encoder, frames))
    assert torch.equal(got, entering(usual.network.video, usual, seen_by(usual, frames)))
