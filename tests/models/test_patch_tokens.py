"""Test the number and positions of stored patch tokens against plain means, library tokens and the store's key."""

import numpy as np
import pytest
import torch

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.data.open import open_dataset
from cardiobench.embeddings.key import embedding_key
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.baselines.pixel_patches import PixelPatches
from cardiobench.models.load import load_model
from cardiobench.models.patch_tokens import RecordingTokens
from cardiobench.runner.run import load
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.tiny import tiny_timm

VIDEOS = {
    "echonet/EchoPrime": (1, (8, 7, 7)),
    "CarDS-Yale/PanEcho": (4, (4, 7, 7)),
    "sekeun/EchoFM": (1, (8, 7, 7)),
}
"""Video model -> number of parts and grid of the stored tokens of a part."""


class Clips:
    """Video encoder that cuts a recording into clips of `length` frames; tokens are the grey levels of a position."""

    name, revision, warnings, dim, pooling = "org/clips", "1", (), 1, "mean"
    preprocessing, modalities = {"length": "frames"}, ("echo",)

    def __init__(self, length, count=None):
        self.length, self.sampling = length, FrameSampling(count=count, start="first")

    def transform(self, clip):
        whole = len(clip.frames) // self.length * self.length
        return torch.from_numpy(clip.frames[:whole].astype(np.float32)).unflatten(0, (-1, self.length))

    def encode(self, parts):
        return parts.mean(dim=(1, 2, 3, 4))[:, None]

    def encode_tokens(self, parts):
        return parts

    def to(self, device):
        return self


def clip(frames, height, width):
    values = np.random.default_rng(frames).integers(0, 256, (frames, height, width, 3), dtype=np.uint8)
    return Clip(values, np.arange(frames), frames)


def test_large_grids_of_tokens_are_averaged():
    recording = clip(64, 14, 21)
    encoder = RecordingTokens(Clips(16))
    assert (encoder.parts, encoder.grid, encoder.dim) == (4, (4, 7, 7), 3)
    tokens = encoder.encode(encoder.transform(recording))
    expected = recording.frames.reshape(4, 4, 4, 7, 2, 7, 3, 3).mean(axis=(2, 4, 6))
    assert tokens.shape == (4, 4 * 49, 3)
    np.testing.assert_array_equal(tokens.numpy(), expected.reshape(4, 196, 3).astype(np.float16).astype(np.float32))
    short = encoder.encode(encoder.transform(Clip(recording.frames[:16], np.arange(16), 16)))
    assert torch.equal(short, tokens[:1]), "a short recording has fewer but equal tokens"


def test_sixteen_evenly_spread_parts_are_kept():
    encoder = RecordingTokens(Clips(1))
    recording = clip(46, 3, 64)
    assert encoder.parts == 16 and encoder.grid == (1, 7, 7)
    kept = encoder.transform(recording)[:, 0].numpy()
    np.testing.assert_array_equal(kept, recording.frames[::3])
    few = RecordingTokens(Clips(2, count=6))
    assert few.parts == 3 and few.grid == (2, 7, 7)


def test_token_settings_are_in_the_key(tmp_path):
    folder = str(tiny_timm(tmp_path / "timm"))
    whole, model = load_model(folder), load_model(folder, pooling="tokens")
    assert (model.setting, model.token_pooling, model.pooling) == ("pooling-tokens", "tokens", "mean")
    assert model.preprocessing["pooling"] == "tokens" and model.preprocessing["tokens"]["grid"][:3] == [1, 4, 4]
    phantom = open_dataset("phantom_echo")
    keys = [embedding_key(one, phantom) for one in (whole, model)]
    assert [key["dtype"] for key in keys] == ["float32", "float16"] and keys[0]["adapter"] != keys[1]["adapter"]
    recording = clip(3, 40, 56)
    tokens = model.encoder.encode(model.encoder.transform(recording))
    own = whole.encoder.encode_tokens(whole.encoder.transform(recording))
    assert torch.equal(tokens, own.flatten(1, 3).half().float())
    store = EmbeddingStore(tmp_path, model.name, "phantom_echo", keys[1])
    store.append(["a"], ["1"], [tokens.flatten(0, 1).numpy()])
    stored = store.load(["a"], ["1"]).vectors
    assert stored.dtype == np.float16 and np.array_equal(stored.astype(np.float32), tokens.flatten(0, 1).numpy())


@pytest.mark.parametrize(
    "name", ["cardiobench/pixel-motion", pytest.param("cardiobench/minirocket", marks=pytest.mark.slow)]
)
def test_model_without_tokens_is_refused(name):
    with pytest.raises(NotApplicable, match="no pooling 'tokens': it has no tokens with a position in the frame"):
        load_model(name, pooling="tokens")


def test_user_models_can_store_tokens():
    model = load(
        "own", RunConfig(models=("own",)), lambda: torch.device("cpu"), "tokens", encoders={"own": PixelPatches}
    )
    assert model.encoder.grid == (1, 7, 7) and model.setting == "pooling-tokens" and PixelPatches in model.code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parts", "grid"),
    [(name, *wanted) for name, wanted in VIDEOS.items() if name in CHECKPOINTS],
)
def test_video_models(name, parts, grid, tmp_path, monkeypatch):
    change_card(monkeypatch, name)
    with smaller_networks():
        encoder = load_model(name, weights=CHECKPOINTS[name](tmp_path), pooling="tokens").encoder
        assert (encoder.parts, encoder.grid) == (parts, grid)
        count = encoder.sampling.count or 80
        tokens = encoder.encode(encoder.transform(clip(count, 64, 64)))
    assert tokens.shape == (parts, int(np.prod(grid)), encoder.dim) and tokens.isfinite().all()
