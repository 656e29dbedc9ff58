import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Ecg
from cardiobench.models.baselines.random_xresnet1d101 import random_xresnet1d101
from cardiobench.models.load import load_model
from cardiobench.models.weights import weights_digest

NAME = "cardiobench/random-xresnet1d101"


@pytest.mark.slow
def test_seed_decides_the_weights_and_no_other_random_state():
    before = torch.get_rng_state()
    digest = weights_digest(random_xresnet1d101())
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(7)
    assert digest == weights_digest(random_xresnet1d101(0)) == load_model(NAME).revision
    assert digest != weights_digest(random_xresnet1d101(1))


def test_weights_equal_those_of_a_new_network():
    """Check the deviation sqrt(2 / fan in) of every convolution (He et al.); a bottleneck starts as its identity path."""
    network = random_xresnet1d101().eval()
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Conv1d):
            wanted = (2 / module.weight[0].numel()) ** 0.5
            assert abs(module.weight.std() / wanted - 1) < 0.1, name
    with torch.no_grad():
        signal = torch.rand(1, 512, 40)
        torch.testing.assert_close(network[6][5](signal), signal)  # Its input is never negative.


@pytest.mark.slow
def test_mean_of_tokens_equals_the_vector():
    rng = np.random.default_rng(3)
    mean, tokens = (load_model(NAME, pooling=pooling) for pooling in (None, "tokens"))
    records = [Ecg(rng.normal(size=(5000, 12)).astype(np.float32), 500) for _ in range(3)]
    parts = torch.cat([mean.encoder.transform(record) for record in records])
    kept = tokens.encoder.encode(parts)
    assert kept.shape == (3, 32, 768) and tokens.setting == "pooling-tokens"
    torch.testing.assert_close(kept.mean(1), mean.encoder.encode(parts))
    assert torch.pdist(kept.mean(1)).min() > 1e-2
