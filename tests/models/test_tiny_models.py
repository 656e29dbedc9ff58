"""Load every kind of model from a folder saved by its library, and compare with that library's outputs."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.models.load import load_model
from tests.models.tiny import seeded, tiny_open_clip, tiny_siglip, tiny_timm, tiny_tokenizer

TEXTS = ["A view of the left ventricle", "severe aortic stenosis , ejection fraction 35 %"]


@pytest.fixture(scope="module")
def clip() -> Clip:
    frames = np.random.default_rng(7).integers(0, 256, (5, 40, 56, 3), dtype=np.uint8)
    return Clip(frames, np.arange(5), 5, 30.0)


MAKERS = {"siglip": tiny_siglip, "timm": tiny_timm, "open_clip": tiny_open_clip}


@pytest.fixture(scope="module", params=list(MAKERS))
def encoder(request, tmp_path_factory) -> Encoder:
    return load_model(str(MAKERS[request.param](tmp_path_factory.mktemp("models") / request.param))).encoder


def seen(encoder, clip) -> torch.Tensor:
    """Return the input of the network: uint8 parts are normalised first, all others are already."""
    parts = encoder.transform(clip)
    return encoder.network.normalise(parts) if parts.dtype == torch.uint8 else parts


def pil(frames):
    return [Image.fromarray(frame) for frame in frames]


# ---- All models


def test_is_an_encoder(encoder, clip):
    assert isinstance(encoder, Encoder)
    assert encoder.modalities == ("echo",)
    assert encoder.pooling == "mean_l2"
    assert encoder.sampling == FrameSampling(count=16, stride=1, start="key_frame")
    parts = encoder.transform(clip)
    assert parts.shape == (5, 3, 32, 32)
    assert parts.dtype == torch.uint8
    vectors = encoder.encode(parts)
    assert vectors.shape == (5, encoder.dim)
    assert vectors.dtype == torch.float32
    json.dumps(dict(encoder.preprocessing))


def test_single_batched_and_repeated(encoder, clip):
    parts = encoder.transform(clip)
    together = encoder.encode(parts)
    torch.testing.assert_close(encoder.encode(parts), together, rtol=0, atol=0)
    alone = torch.cat([encoder.encode(part[None]) for part in parts])
    torch.testing.assert_close(alone, together, rtol=1e-5, atol=1e-6)


def test_models_are_frozen_and_without_dropout(encoder):
    assert not any(module.training for module in encoder.network.modules())
    assert not any(parameter.requires_grad for parameter in encoder.network.parameters())
    assert {parameter.dtype for parameter in encoder.network.parameters()} == {torch.float32}


def test_still_equals_a_clip_of_one_frame(encoder, clip):
    one = Clip(clip.frames[:1], np.arange(1), 1)
    torch.testing.assert_close(encoder.transform(one), encoder.transform(clip)[:1])


def test_works_in_loader_workers(encoder, clip):
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return encoder.transform(clip)

    loaded = list(torch.utils.data.DataLoader(Rows(), batch_size=None, num_workers=1))
    torch.testing.assert_close(loaded[2], encoder.transform(clip))


# ---- transformers SigLIP


@pytest.mark.parametrize("processor", ["together", "apart", "none"])
def test_siglip_equals_transformers(tmp_path, clip, processor):
    import transformers

    folder = tiny_siglip(tmp_path / "siglip", processor=processor)
    loaded = load_model(str(folder))
    encoder = loaded.encoder
    assert loaded.loaded_by == "config.json has model_type 'siglip' -> transformers"
    assert isinstance(encoder, TextEncoder)
    assert bool(loaded.warnings) == (processor == "none")

    model = transformers.SiglipModel.from_pretrained(folder).eval()
    images = transformers.SiglipImageProcessor(size={"height": 32, "width": 32})(pil(clip.frames), return_tensors="pt")
    torch.testing.assert_close(seen(encoder, clip), images["pixel_values"], rtol=1e-6, atol=1e-6)
    texts = [text.lower() for text in TEXTS]
    tokens = tiny_tokenizer()(texts, padding="max_length", max_length=24, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = model(input_ids=tokens, pixel_values=images["pixel_values"])
    image, text = encoder.encode(encoder.transform(clip)), encoder.encode_text(TEXTS)
    torch.testing.assert_close(
        torch.nn.functional.normalize(image, dim=-1), expected.image_embeds, rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(text, expected.text_embeds, rtol=1e-4, atol=1e-5)
    cosines = torch.nn.functional.normalize(image, dim=-1) @ text.T
    torch.testing.assert_close(
        encoder.logit_scale * cosines + model.logit_bias, expected.logits_per_image, rtol=1e-4, atol=1e-4
    )


def test_siglip_text_is_lower_case_and_independent_of_its_neighbours(tmp_path):
    loaded = load_model(str(tiny_siglip(tmp_path / "siglip")))
    encoder = loaded.encoder
    one = encoder.encode_text(["APICAL FOUR CHAMBER VIEW"])
    torch.testing.assert_close(one, encoder.encode_text(["x", "apical four chamber view"])[1:])
    torch.testing.assert_close(one.norm(dim=-1), torch.ones(1))
    assert loaded.preprocessing["text"] == {
        "tokenizer": "TokenizersBackend",
        "padding": "max_length 24",
        "lower_case": True,
    }


def test_siglip_without_tokenizer_encodes_images_only(tmp_path, clip):
    folder = tiny_siglip(tmp_path / "siglip", processor="apart", tokenizer=False)
    encoder = load_model(str(folder)).encoder
    assert isinstance(encoder, Encoder)
    assert not isinstance(encoder, TextEncoder)
    assert encoder.no_text_reason == f"no tokenizer files in {folder}"
    whole = load_model(str(tiny_siglip(tmp_path / "whole"))).encoder
    torch.testing.assert_close(encoder.encode(encoder.transform(clip)), whole.encode(whole.transform(clip)))


# ---- timm


@pytest.mark.parametrize(("classes", "safe"), [(5, True), (0, True), (5, False), (5, "both")])
def test_timm_equals_timm(tmp_path, clip, classes, safe):
    import timm

    folder = tiny_timm(tmp_path / "vit", classes=classes, safe=safe)
    loaded = load_model(str(folder))
    encoder = loaded.encoder
    assert loaded.loaded_by == "config.json has architecture 'vit_tiny_patch16_224' -> timm"
    assert encoder.no_text_reason == "a timm model has no text tower"
    assert not isinstance(encoder, TextEncoder)

    model = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    images = torch.stack([transform(image) for image in pil(clip.frames)])
    torch.testing.assert_close(seen(encoder, clip), images, rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(encoder.encode(images), model(images))


# ---- open_clip


@pytest.mark.parametrize(("text", "safe"), [("clip", True), ("tokenizer", "both"), ("bert", False)])
def test_open_clip_equals_open_clip(tmp_path, clip, text, safe):
    import open_clip

    folder = tiny_open_clip(tmp_path / "clip", text=text, safe=safe)
    loaded = load_model(str(folder))
    encoder = loaded.encoder
    assert loaded.loaded_by == "the folder has open_clip_config.json -> open_clip"
    assert isinstance(encoder, TextEncoder)

    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    model.eval()
    images = torch.stack([transform(image) for image in pil(clip.frames)])
    torch.testing.assert_close(seen(encoder, clip), images, rtol=1e-6, atol=1e-6)
    tokens = open_clip.get_tokenizer(f"local-dir:{folder}")(TEXTS)
    with torch.no_grad():
        torch.testing.assert_close(encoder.encode(images), model.encode_image(images))
        torch.testing.assert_close(encoder.encode_text(TEXTS), model.encode_text(tokens, normalize=True))
        assert encoder.logit_scale == pytest.approx(float(model.logit_scale.exp()))


def test_open_clip_text_tower_has_no_dropout(tmp_path):
    # The library returns models in training mode, in which the BERT text tower is random.
    encoder = load_model(str(tiny_open_clip(tmp_path / "clip", text="bert"))).encoder
    torch.testing.assert_close(encoder.encode_text(TEXTS), encoder.encode_text(TEXTS), rtol=0, atol=0)
    torch.testing.assert_close(encoder.encode_text(TEXTS[:1]), encoder.encode_text(TEXTS)[:1], rtol=1e-5, atol=1e-6)


def test_open_clip_without_its_tokenizer_encodes_images_only(tmp_path):
    folder = tiny_open_clip(tmp_path / "clip", text="tokenizer")
    for file in folder.glob("token*"):
        file.unlink()
    encoder = load_model(str(folder)).encoder
    assert not isinstance(encoder, TextEncoder)
    assert f"no readable tokenizer files in {folder}" in encoder.no_text_reason
    assert "org/tokenizer" in encoder.no_text_reason


# ---- Other families of transformers


def tower(**more):
    return {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, **more}


def saved(model_class, config, folder, processor=None):
    with seeded():
        model = model_class(config)
    model.save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    return model.eval()


def test_clip_equals_transformers(tmp_path, clip):
    import transformers

    words = tiny_tokenizer(lower=True)
    text = tower(vocab_size=len(words), max_position_embeddings=20, eos_token_id=1, bos_token_id=1, pad_token_id=0)
    config = transformers.CLIPConfig(
        text_config=text, vision_config=tower(image_size=32, patch_size=8), projection_dim=24
    )
    images = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    model = saved(transformers.CLIPModel, config, tmp_path, images)
    words.save_pretrained(tmp_path)
    loaded = load_model(str(tmp_path))
    encoder = loaded.encoder
    assert loaded.loaded_by == "config.json has model_type 'clip' -> transformers"
    pixels = images(pil(clip.frames), return_tensors="pt")["pixel_values"]
    tokens = words(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**{key: tokens[key] for key in ("input_ids", "attention_mask")}, pixel_values=pixels)
    torch.testing.assert_close(seen(encoder, clip), pixels, rtol=1e-6, atol=1e-6)
    vectors = torch.nn.functional.normalize(encoder.encode(pixels), dim=-1)
    torch.testing.assert_close(vectors, expected.image_embeds, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(encoder.encode_text(TEXTS), expected.text_embeds, rtol=1e-4, atol=1e-5)
    assert encoder.dim == 24


def test_siglip2_keeps_the_aspect_ratio_of_a_frame(tmp_path, clip):
    import transformers

    vision = tower(patch_size=8, num_patches=16)
    text = tower(vocab_size=len(tiny_tokenizer()), max_position_embeddings=24, projection_size=32)
    model = saved(
        transformers.Siglip2Model,
        transformers.Siglip2Config(text_config=text, vision_config=vision),
        tmp_path,
        images := transformers.Siglip2ImageProcessor(patch_size=8, max_num_patches=16),
    )
    tiny_tokenizer().save_pretrained(tmp_path)
    loaded = load_model(str(tmp_path))
    encoder = loaded.encoder
    assert loaded.loaded_by == "config.json has model_type 'siglip2' -> transformers"
    parts = encoder.transform(clip)
    assert parts.shape == (5, 17, 192)
    inputs = images(pil(clip.frames), return_tensors="pt")
    with torch.no_grad():
        expected = model.get_image_features(**inputs).pooler_output
    torch.testing.assert_close(encoder.encode(parts), expected, rtol=1e-4, atol=1e-5)


def image_models():
    import transformers as t

    square, crop = (
        {"height": 32, "width": 32},
        {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}},
    )
    image = tower(image_size=32, patch_size=8)
    return {
        "dinov2": (t.Dinov2Model, t.Dinov2Config(**image), t.BitImageProcessor(**crop), "pooler output"),
        "dinov3_vit": (t.DINOv3ViTModel, t.DINOv3ViTConfig(**image), t.DINOv3ViTImageProcessor(size=square), "pooler output"),
        "vit": (t.ViTModel, t.ViTConfig(**image), t.ViTImageProcessor(size=square), "pooler output"),
        "siglip_vision_model": (
            t.SiglipVisionModel, t.SiglipVisionConfig(**image), t.SiglipImageProcessor(size=square), "pooler output",
        ),
        "resnet": (
            t.ResNetModel,
            t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
            t.BitImageProcessor(**crop),
            "pooler output",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["dinov2", "dinov3_vit", "vit", "siglip_vision_model", "resnet"])
def test_image_models_give_their_pooler_output(tmp_path, clip, kind):
    model_class, config, processor, readout = image_models()[kind]
    model = saved(model_class, config, tmp_path, processor)
    loaded = load_model(str(tmp_path))
    encoder = loaded.encoder
    assert loaded.loaded_by == f"config.json has model_type '{kind}' -> transformers"
    assert loaded.preprocessing["readout"] == readout
    assert encoder.no_text_reason == f"a {kind} model has no text tower"
    pixels = processor(pil(clip.frames), return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(seen(encoder, clip), pixels, rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        expected = model(pixel_values=pixels).pooler_output.flatten(1)
    torch.testing.assert_close(encoder.encode(pixels), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("saved_as", ["ViTForImageClassification", "ViTModel without pooler"])
def test_vit_without_pooler_is_read_at_its_class_token(tmp_path, clip, saved_as):
    import transformers

    config = transformers.ViTConfig(**tower(image_size=32, patch_size=8), num_labels=3)
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    if saved_as == "ViTModel without pooler":
        model = saved(
            lambda settings: transformers.ViTModel(settings, add_pooling_layer=False), config, tmp_path, processor
        )
    else:
        model = saved(transformers.ViTForImageClassification, config, tmp_path, processor).vit
    loaded = load_model(str(tmp_path))
    encoder = loaded.encoder
    assert loaded.preprocessing["class"] == "ViTModel"
    pixels = seen(encoder, clip)
    with torch.no_grad():
        expected = model(pixel_values=pixels).last_hidden_state[:, 0]
    torch.testing.assert_close(encoder.encode(pixels), expected, rtol=1e-4, atol=1e-5)
    assert loaded.preprocessing["readout"] == "class token"


def test_videomae_uses_the_clip_as_one_part(tmp_path, clip):
    import transformers

    config = transformers.VideoMAEConfig(**tower(image_size=32, patch_size=8, num_frames=4, tubelet_size=2))
    processor = transformers.VideoMAEImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    model = saved(transformers.VideoMAEModel, config, tmp_path, processor)
    encoder = load_model(str(tmp_path), device="cpu").encoder  # As in the runner.
    assert encoder.sampling == FrameSampling(count=4, start="uniform")
    four = clip.frames[[0, 1, 3, 4]]  # Positions 0, 4/3, 8/3 and 4, rounded.
    pixels = processor(pil(four), return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(seen(encoder, clip), pixels, rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        expected = model(pixel_values=pixels).last_hidden_state.mean(dim=1)
    torch.testing.assert_close(encoder.encode(pixels), expected, rtol=1e-4, atol=1e-5)
    still = Clip(clip.frames[:1], np.arange(1), 1)
    assert encoder.transform(still).shape == (1, 4, 3, 32, 32)


@pytest.mark.parametrize("with_processor", [True, False])
def test_vjepa2_is_read_without_its_predictor(tmp_path, clip, with_processor):
    import transformers

    config = transformers.VJEPA2Config(
        patch_size=8, crop_size=32, frames_per_clip=4, hidden_size=32, num_attention_heads=4, num_hidden_layers=2,
        mlp_ratio=2, pred_hidden_size=24, pred_num_attention_heads=4, pred_num_hidden_layers=2,
    )  # fmt: skip
    processor = transformers.VJEPA2VideoProcessor(crop_size=32)
    model = saved(transformers.VJEPA2Model, config, tmp_path, processor if with_processor else None)
    loaded = load_model(str(tmp_path), device="cpu")
    encoder = loaded.encoder  # As in the runner.
    assert bool(loaded.warnings) != with_processor
    parts = encoder.transform(clip)
    assert parts.shape == (1, 4, 3, 32, 32)
    four = torch.from_numpy(clip.frames[[0, 1, 3, 4]]).permute(0, 3, 1, 2)
    frames = processor(four, return_tensors="pt")["pixel_values_videos"]
    torch.testing.assert_close(seen(encoder, clip), frames, rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        expected = model(pixel_values_videos=frames, skip_predictor=True).last_hidden_state.mean(dim=1)
    torch.testing.assert_close(encoder.encode(parts), expected, rtol=1e-4, atol=1e-5)
