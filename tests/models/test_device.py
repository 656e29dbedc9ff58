"""Moving a network: convolutions over pictures get their channels last, those over time can stay, numbers do not change."""

import torch

from cardiobench.models.device import to_device


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.video, self.picture = torch.nn.Conv3d(3, 4, 2), torch.nn.Conv2d(4, 5, 2)

    def forward(self, clips):
        return self.picture(self.video(clips).mean(dim=2))


def test_pictures_and_clips_in_one_network():
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
