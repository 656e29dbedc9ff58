"""Test tokens of the last block of every echo model: their positions in the frame are correct."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.types import Clip
from cardiobench.models.base import SpatialEncoder
from cardiobench.models.cards import card
from cardiobench.models.image import ImageEncoder
from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.tiny import seeded, tiny_timm

QUICK = ("facebook/dinov3-vits16-pretrain-lvd1689m", "google/medsiglip-448")
ECHO = [name for name in CHECKPOINTS if "echo" in card(name).modalities]
GRIDS = {"echonet/EchoPrime": (8, 7, 7), "CarDS-Yale/PanEcho": (16, 7, 7), "sekeun/EchoFM": (8, 14, 14)}


def still(encoder, top: int = 0, left: int = 0, side: int = 16) -> torch.Tensor:
    """Return the parts of a grey square of 128 x 128 pixels with a square of noise, as a clip if the model needs one."""
    frame = np.full((128, 128, 3), 90, dtype=np.uint8)
    noise = np.random.default_rng(1).integers(0, 256, (side, side, 1), dtype=np.uint8)
    frame[top : top + side, left : left + side] = noise
    count = 1 if getattr(encoder, "frame_wise", False) else encoder.sampling.count or 1
    return encoder.transform(Clip(np.stack([frame] * count), np.arange(count), count))


def check_places(encoder, grid=None):
    """Check that noise at two positions changes the tokens there most."""
    assert isinstance(encoder, SpatialEncoder)
    parts = still(encoder, side=0)
    assert len(parts) == 1
    grey = encoder.encode_tokens(parts)
    assert grid is None or tuple(grey.shape[1:4]) == grid
    assert grey.dtype == torch.float32
    for top, left in ((88, 24), (24, 72)):
        change = (encoder.encode_tokens(still(encoder, top, left)) - grey).norm(dim=-1).mean(dim=(0, 1))
        row, column = np.unravel_index(int(change.argmax()), change.shape)
        centre = (row + 0.5) / change.shape[0] * 128, (column + 0.5) / change.shape[1] * 128
        assert np.abs(np.subtract(centre, (top + 8, left + 8))).max() < 26, (centre, top, left)


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in ECHO])
def test_every_echo_model_has_tokens_in_their_places(name, tmp_path, monkeypatch):
    change_card(monkeypatch, name)
    (tmp_path / "files").mkdir()
    model = load_model(name, weights=CHECKPOINTS[name](tmp_path / "files"))
    check_places(model.encoder, GRIDS.get(name))


def test_random_network_and_timm(tmp_path):
    check_places(load_model("cardiobench/random-vit").encoder, (1, 7, 7))
    encoder = load_model(str(tiny_timm(tmp_path / "timm"))).encoder
    check_places(encoder, (1, 4, 4))
    parts = still(encoder, 24, 72)
    network = encoder.network.network.network
    whole = network.forward_features(encoder.network.normalise(parts))
    torch.testing.assert_close(encoder.encode_tokens(parts).flatten(1, 3), whole[:, network.num_prefix_tokens :])


def transformers_model(kind: str):
    """Return a tiny network of transformers with its parts."""
    import transformers

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    with seeded():
        if kind == "clip":
            vision = {**sizes, "image_size": 32, "patch_size": 8}
            config = transformers.CLIPConfig(text_config={**sizes, "vocab_size": 9}, vision_config=vision)
            return transformers.CLIPModel(config).eval(), torch.randn(1, 3, 32, 32)
        if kind == "videomae":
            config = transformers.VideoMAEConfig(**sizes, image_size=32, patch_size=8, num_frames=4, tubelet_size=2)
            return transformers.VideoMAEModel(config).eval(), torch.randn(1, 4, 3, 32, 32)
        if kind == "resnet":
            config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
            return transformers.ResNetModel(config).eval(), torch.randn(1, 3, 32, 32)
        config = transformers.DeiTConfig(**sizes, image_size=32, patch_size=8)
        return transformers.DeiTModel(config).eval(), torch.randn(1, 3, 32, 32)


@pytest.mark.parametrize(
    ("kind", "grid"), [("clip", (1, 4, 4)), ("videomae", (2, 4, 4)), ("deit", (1, 4, 4)), ("resnet", (1, 4, 4))]
)
def test_families_of_transformers(kind, grid):
    from cardiobench.models.transformers_tokens import grid_tokens

    model, parts = transformers_model(kind)
    tokens = grid_tokens(model, parts)
    assert tokens.shape == (1, *grid, 16)
    if kind == "clip":  # Normalised like the class token.
        torch.testing.assert_close(tokens.mean(dim=-1), torch.zeros(1, *grid), rtol=0, atol=1e-5)
    if kind == "deit":  # Neither class nor distillation token.
        whole = model(parts).last_hidden_state
        torch.testing.assert_close(tokens.flatten(1, 3), whole[:, 2:])


def test_networks_without_tokens_are_reported():
    encoder = ImageEncoder(
        name="org/plain",
        revision="1",
        network=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 4)),
        prepare=lambda frames: torch.zeros(len(frames), 3, 2, 2),
        preprocessing={},
    )
    with pytest.raises(NotApplicable, match="no tokens"):
        encoder.encode_tokens(torch.zeros(1, 3, 2, 2))
