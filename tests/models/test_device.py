"""Check that device and memory layout do not change results."""

import pytest
import torch

from cardiobench.core.errors import BadConfig
from cardiobench.models.device import choose_device, to_device


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.video, self.picture = torch.nn.Conv3d(3, 4, 2), torch.nn.Conv2d(4, 5, 2)

    def forward(self, clips):
        return self.picture(self.video(clips).mean(dim=2))


def test_images_and_clips_in_one_network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network, clips = Both().eval(), torch.randn(2, 3, 4, 9, 8)
    with torch.inference_mode():
        before = network(clips)
        assert to_device(network, torch.device("cpu")) is network
        torch.testing.assert_close(network(clips), before, rtol=0, atol=1e-6)
    assert network.picture.weight.is_contiguous(memory_format=torch.channels_last)
    assert not network.picture.weight.is_contiguous()
    assert network.video.weight.is_contiguous()


@pytest.mark.parametrize(
    ("wanted", "cuda", "mps", "launched", "chosen"),
    [
        ("auto", False, False, "", "cpu"),
        ("auto", True, False, "", "cuda"),
        ("auto", True, False, "true", "cpu"),
        ("auto", False, True, "", "cpu"),
        ("cpu", True, True, "", "cpu"),
        ("cuda", True, False, "true", "cuda"),
        ("mps", False, True, "", "mps"),
    ],
)
def test_device_is_the_named_one_or_a_gpu(wanted, cuda, mps, launched, chosen, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.setenv("ACCELERATE_USE_CPU", launched)
    assert choose_device(wanted).type == chosen


@pytest.mark.parametrize(("wanted", "other", "here"), [("cuda", "mps", "cpu and mps"), ("mps", "cuda", "cpu and cuda")])
def test_missing_device_is_refused_with_a_list(wanted, other, here, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: other == "cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: other == "mps")
    with pytest.raises(BadConfig, match=f"^probe.device is {wanted}, .* only {here}\\. Give probe.device"):
        choose_device(wanted, "probe.device")
