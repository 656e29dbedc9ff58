"""Count the copies between host and GPU for a batch, without a GPU: tensors have a device and a shape, but no values."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cardiobench.core.errors import BadModel
from cardiobench.data.media import Ecg
from cardiobench.embeddings.extract import PartEncoder, batches_on_device, to_parts
from cardiobench.models.base import LoadedModel
from cardiobench.models.contract import join_parts
from cardiobench.models.custom import networks_of
from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, FAMILIES, change_card, smaller_networks
from tests.models.test_every_model import clips

GPU = torch.device("cuda")
NETWORKS = ("mkaichristensen/echo-clip", "facebook/dinov3-vits16-pretrain-lvd1689m", "google/medsiglip-448")
"""A network of each library that loads one."""


class Copies(TorchDispatchMode):
    """Counts operations whose result is on another device than their tensors; reading a value raises an error."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        given = [one.device.type for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        for one in tree_leaves(made):
            if given and isinstance(one, torch.Tensor) and one.device.type not in given:
                self.seen[f"{given[0]} to {one.device.type}"] += 1
        return made


def move_to_fake_gpu(network):
    """Replace the weights of a network by weights without values on the GPU, those that layers share too."""
    for module in network.modules():
        for tensors in (module._parameters, module._buffers):
            for name, one in tensors.items():
                if one is not None:
                    moved = one.detach().to(GPU)
                    tensors[name] = torch.nn.Parameter(moved, False) if tensors is module._parameters else moved


def copies_of(model, parts):
    """Return the number of copies by direction for a batch of recordings."""
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        for network in networks_of(model.encoder):
            move_to_fake_gpu(network)
        decoded, encode = [fake.from_tensor(one) for one in parts], PartEncoder(model, GPU)
        with Copies() as copies:
            for batch in batches_on_device(decoded, len(decoded), GPU):
                vectors = encode(join_parts(batch.on_device, model.encoder))
        assert vectors.device.type == "cpu"
    return dict(copies.seen)


class Linear:
    name, sampling, preprocessing, warnings, modalities = "linear", None, {}, (), ("ecg",)

    def __init__(self):
        self.network = torch.nn.Linear(3, 2)

    def encode(self, parts):
        return self.network(parts)


class Returns(Linear):
    """Copies the vectors to the host itself, and back."""

    def encode(self, parts):
        return super().encode(parts).cpu().to(GPU)


class Reads(Linear):
    """Waits for the GPU to read a value."""

    def encode(self, parts):
        return super().encode(parts) / parts.max().item()


def test_a_batch_is_copied_once_for_each_recording_and_back_once():
    parts = [torch.ones(2, 3) for _ in range(4)]
    assert copies_of(LoadedModel(Linear(), "", {}), parts) == {"cpu to cuda": 4, "cuda to cpu": 1}
    assert copies_of(LoadedModel(Returns(), "", {}), parts) == {"cpu to cuda": 5, "cuda to cpu": 2}
    with pytest.raises(BadModel, match="_local_scalar_dense"):
        copies_of(LoadedModel(Reads(), "", {}), parts)


def videos():
    """Return clips of at most 16 frames, as models with a sampling read them."""
    return [replace(one, frames=one.frames[:16], indices=one.indices[:16]) for one in clips()]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETWORKS, *(next(iter(one.checkpoints)) for one in FAMILIES.values())])
def test_networks_copy_nothing_beside_the_recordings_and_the_vectors(name, tmp_path, monkeypatch):
    change_card(monkeypatch, name)
    with smaller_networks():
        (tmp_path / "files").mkdir()
        model = load_model(name, weights=CHECKPOINTS[name](tmp_path / "files"))
        ecg = Ecg(np.random.default_rng(0).normal(size=(5000, 12)).astype(np.float32), 500)
        parts = [to_parts(model, one) for one in ([ecg] * 3 if "ecg" in model.encoder.modalities else videos())]
        assert copies_of(model, parts) == {"cpu to cuda": 3, "cuda to cpu": 1}
