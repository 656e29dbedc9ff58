"""Compare poolings of tokens with plain arithmetic, and the tokens of every family with its library."""

import numpy as np
import pytest
import torch

from cardiobench.data.media.types import Clip
from cardiobench.models.load import load_model
from cardiobench.models.pooling import POOLINGS, pool
from tests.models.tiny import seeded


@pytest.fixture(scope="module")
def clip() -> Clip:
    frames = np.random.default_rng(7).integers(0, 256, (3, 40, 56, 3), dtype=np.uint8)
    return Clip(frames, np.arange(3), 3, 30.0)


def test_pool_by_hand():
    tokens = torch.tensor([[[1.0, 8.0], [2.0, 4.0], [6.0, 0.0]]])
    expected = {"mean": [[3.0, 4.0]], "cls": [[1.0, 8.0]], "last": [[6.0, 0.0]], "max": [[6.0, 8.0]]}
    expected["tokens"] = tokens.tolist()
    assert {how: pool(tokens, how).tolist() for how in POOLINGS} == expected


@pytest.mark.parametrize("shape", [(3, 4), (2, 0, 4)])
def test_no_tokens(shape):
    with pytest.raises(ValueError, match="expected \\(N, T, D\\) with T >= 1"):
        pool(torch.zeros(shape), "mean")


def test_another_name():
    with pytest.raises(ValueError, match="pooling 'median': expected one of mean, cls, last, max, tokens"):
        pool(torch.zeros(1, 2, 3), "median")


def tower(**more):
    return {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, **more}


FAMILIES = ("dinov2", "dinov2_with_registers", "dinov3_vit", "vit", "deit", "videomae")


def families():
    """Return the model, configuration, processor and number of tokens before the patches of each of `FAMILIES`."""
    import transformers as t

    image = tower(image_size=32, patch_size=8)
    square = {"size": {"height": 32, "width": 32}}
    crop = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
    return {
        "dinov2": (t.Dinov2Model, t.Dinov2Config(**image), t.BitImageProcessor(**crop), 1),
        "dinov2_with_registers": (
            t.Dinov2WithRegistersModel, t.Dinov2WithRegistersConfig(**image, num_register_tokens=3),
            t.BitImageProcessor(**crop), 4,
        ),
        "dinov3_vit": (
            t.DINOv3ViTModel, t.DINOv3ViTConfig(**image, num_register_tokens=4), t.DINOv3ViTImageProcessor(**square), 5,
        ),
        "vit": (t.ViTModel, t.ViTConfig(**image), t.ViTImageProcessor(**square), 1),
        "deit": (t.DeiTModel, t.DeiTConfig(**image), t.ViTImageProcessor(**square), 2),
        "videomae": (
            t.VideoMAEModel, t.VideoMAEConfig(**image, num_frames=2, tubelet_size=2), t.VideoMAEImageProcessor(**crop), 0,
        ),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_transformers(tmp_path, clip, kind):
    model_class, config, processor, special = families()[kind]
    with seeded():
        model = model_class(config).eval()
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    default_loaded = load_model(str(tmp_path))
    default = default_loaded.encoder
    parts = default.transform(clip)
    pixels = default.network.normalise(parts) if parts.dtype == torch.uint8 else parts
    with torch.no_grad():
        tokens = model(pixel_values=pixels).last_hidden_state
    patches = tokens[:, special:]
    assert patches.shape[1] == 16, "4 x 4 patches"
    expected = {"mean": patches.mean(1), "max": patches.max(1).values}
    if special:
        expected["cls"] = tokens[:, 0]
    seen = {}
    for how, vectors in expected.items():
        loaded = load_model(str(tmp_path), pooling=how)
        encoder = loaded.encoder
        torch.testing.assert_close(encoder.encode(encoder.transform(clip)), vectors, rtol=1e-5, atol=1e-5)
        assert loaded.preprocessing["pooling"] == loaded.token_pooling == how
        assert loaded.setting == ("" if how == default_loaded.token_pooling else f"pooling-{how}")
        seen[how] = str(sorted(loaded.preprocessing.items(), key=str))
    assert len(set(seen.values())) == len(seen), "another pooling has another embedding key"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "own"), [("vit_tiny_patch16_224", "cls"), ("vit_small_patch16_dinov3", "cls")]
)
def test_timm(tmp_path, clip, architecture, own):
    import timm
    from timm.models import save_for_hf

    small = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2, "num_classes": 0}
    with seeded():
        model = timm.create_model(architecture, **small).eval()
    save_for_hf(model, tmp_path, safe_serialization=True)
    default_loaded = load_model(str(tmp_path))
    default = default_loaded.encoder
    assert default_loaded.token_pooling == own
    pixels = default.network.normalise(default.transform(clip))
    with torch.no_grad():
        tokens = model.forward_features(pixels)
    patches = tokens[:, model.num_prefix_tokens :]
    assert patches.shape[1] == pixels.shape[-1] ** 2 // 64
    expected = {"cls": tokens[:, 0], "mean": patches.mean(1), "max": patches.max(1).values}
    for how, vectors in expected.items():
        encoder = load_model(str(tmp_path), pooling=how).encoder
        torch.testing.assert_close(encoder.encode(encoder.transform(clip)), vectors, rtol=1e-5, atol=1e-5)
    if "dinov3" in architecture:  # The default of timm is the mean, which can also be requested.
        own_mean = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
        with torch.no_grad():
            torch.testing.assert_close(expected["mean"], own_mean(pixels), rtol=1e-5, atol=1e-5)
