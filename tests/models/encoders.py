"""Records, clips and checks for tests of encoders."""

import json

import numpy as np
import torch

from cardiobench.data.media.types import Clip, Ecg
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.models.cards import card
from cardiobench.models.files import given_files
from cardiobench.models.load import adapter


def record(seconds=10.0, fs=500.0, seed=0):
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * fs)) / fs
    beats = np.exp(-(((time % 0.8) - 0.3) ** 2) / 0.0004)[:, None] * rng.normal(size=12)
    return Ecg((beats + 0.05 * rng.normal(size=(len(time), 12))).astype(np.float32), fs)


def load(name, folder, pooling=None, variant=None):
    model = card(name)
    default = model.variants[0] if model.variants else ""
    return adapter(model.adapter)(
        model, given_files(name, folder), pooling=pooling or model.poolings[0], variant=variant or default
    )


def clip_of(n_frames: int, height: int = 60, width: int = 80, seed: int = 0) -> Clip:
    """Return a clip of noise with rising and falling brightness."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 160, (n_frames, height, width, 3))
    beat = (40 * (1 + np.sin(np.arange(n_frames) / 3))).astype(int)[:, None, None, None]
    return Clip((noise + beat).astype(np.uint8), np.arange(n_frames), n_frames)


def check_encoder(encoder, name, dim, clips):
    """Check the contract of every adapter; return the vectors of the clips."""
    assert isinstance(encoder, Encoder) and not isinstance(encoder, TextEncoder)
    assert (encoder.name, encoder.dim, encoder.modalities) == (name, dim, ("echo",))
    assert len(encoder.revision) == 12
    json.dumps(dict(encoder.preprocessing))
    assert not any(module.training for module in encoder.network.modules())
    assert not any(tensor.requires_grad for tensor in encoder.network.parameters())
    assert not any(tensor.is_meta for tensor in encoder.network.state_dict().values())
    parts = [encoder.transform(clip) for clip in clips]
    assert len({part.shape[1:] for part in parts}) == 1 and all(part.dtype == torch.uint8 for part in parts)
    vectors = encoder.encode(torch.cat(parts))
    assert vectors.shape == (sum(map(len, parts)), dim) and vectors.dtype == torch.float32
    assert vectors.isfinite().all() and vectors.std(dim=0).max() > 1e-3
    alone = encoder.encode(parts[0])
    assert torch.equal(alone, encoder.encode(encoder.transform(clips[0])))
    scale = vectors.abs().max().item()
    torch.testing.assert_close(alone, vectors[: len(alone)], rtol=0, atol=1e-6 * max(scale, 1))
    return vectors
