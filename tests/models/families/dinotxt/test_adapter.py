"""Test dino.txt from its two files: load, prepare, encode, read, refuse."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from cardiobench.cli.doctor import examine
from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import FrameSampling
from cardiobench.models.base import NativeHeads, TextEncoder
from cardiobench.models.cards import card
from cardiobench.models.detect import detect
from cardiobench.models.families.dinotxt import adapter as dinotxt
from cardiobench.models.families.dinotxt.network import DinoTxt
from cardiobench.models.files import given_files
from cardiobench.models.load import load_model
from tests.models.checkpoints import change_card
from tests.models.families.dinotxt import checkpoint

NAME = "facebookresearch/dinotxt-vitl16"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Return a small network without checksums, because synthetic files cannot have those of the card."""
    monkeypatch.setattr(dinotxt, "DinoTxt", partial(DinoTxt, **checkpoint.SMALL_DINOTXT))
    change_card(monkeypatch, NAME)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return checkpoint.dinotxt_folder(tmp_path_factory.mktemp("dinotxt") / "files")


def test_encoder(folder, clips):
    loaded = load_model(NAME, weights=folder)
    encoder = loaded.encoder
    assert isinstance(encoder, TextEncoder) and not isinstance(encoder, NativeHeads)
    assert (encoder.name, encoder.dim, encoder.pooling) == (NAME, 64, "mean_l2")
    assert encoder.sampling == FrameSampling(count=16, stride=1, start="key_frame")
    assert list(loaded.weight_files) == [*dinotxt.BACKBONE, *dinotxt.HEADS] == list(card(NAME).weights)
    assert encoder.logit_scale == pytest.approx(math.exp(4.0))
    assert not loaded.warnings
    for network in (encoder.network, encoder.text_network):
        assert not any(module.training for module in network.modules())
        assert not any(tensor.requires_grad or tensor.is_meta for tensor in network.parameters())

    parts = [encoder.transform(clip) for clip in clips]
    assert [part.shape for part in parts] == [(len(clip.frames), 3, 224, 224) for clip in clips]
    assert all(part.dtype == torch.uint8 for part in parts)
    vectors = encoder.encode(torch.cat(parts))
    assert vectors.isfinite().all() and vectors.std(dim=0).max() > 1e-3
    again = load_model(NAME, weights=folder).encoder.encode(parts[1])
    torch.testing.assert_close(again, vectors[len(parts[0]) :][: len(again)], rtol=0, atol=1e-5)

    texts = ["SEVERE AORTIC STENOSIS. ", "ejection fraction 35 %"]
    said = encoder.encode_text(texts)
    torch.testing.assert_close(said.norm(dim=1), torch.ones(2))
    assert torch.equal(said, encoder.encode_text(texts))
    torch.testing.assert_close(encoder.encode_text(["severe aortic stenosis."]), said[:1], rtol=0, atol=1e-6)


def test_every_tensor_of_both_files_is_in_the_network(folder):
    encoder = load_model(NAME, weights=folder).encoder
    read = {f"backbone.{k}": v for k, v in torch.load(folder / dinotxt.BACKBONE[0], weights_only=True).items()}
    rest = torch.load(folder / dinotxt.HEADS[0], weights_only=True)
    assert rest.pop("logit_scale").shape == (1,)
    vision, text = "visual_model.", "text_model."
    read |= {name.removeprefix(vision): tensor for name, tensor in rest.items() if name.startswith(vision)}
    for network, expected in (
        (encoder.network.network, read),
        (
            encoder.text_network,
            {name.removeprefix(text): t for name, t in rest.items() if name.startswith(text)},
        ),
    ):
        state = network.state_dict()
        assert set(state) == set(expected)
        assert all(torch.equal(state[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize("shape", [(112, 112), (434, 636), (300, 200)])
def test_frames_are_prepared_as_by_the_authors(folder, shape):
    frames = np.random.default_rng(3).integers(0, 256, (3, *shape, 3), dtype=np.uint8)
    theirs = v2.Compose([
        v2.ToImage(),
        v2.Resize(256, interpolation=v2.InterpolationMode.BICUBIC),
        v2.CenterCrop(224),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
    ])  # fmt: skip
    expected = torch.stack([theirs(Image.fromarray(frame)) for frame in frames])
    ours = load_model(NAME, weights=folder).encoder.network.normalise(dinotxt.prepared(frames))
    torch.testing.assert_close(ours, expected, rtol=0, atol=2e-6)


def test_tokens_equal_clip():
    """Compare token ids with those in CLIP's documentation; a long text is cut but keeps its end token."""
    ids = dinotxt.tokens(["Hello  World!", "a photo of a cat", "heart " * 100])
    assert ids.shape == (3, 77)
    assert ids[0, :6].tolist() == [49406, 3306, 1002, 256, 49407, 0]
    assert ids[1, :8].tolist() == [49406, 320, 1125, 539, 320, 2368, 49407, 0]
    assert ids[2, 0] == 49406 and ids[2, -1] == 49407 and not (ids[2] == 0).any()


def test_missing_temperature_is_noted_on_every_result(tmp_path):
    files = checkpoint.dinotxt_folder(tmp_path, lambda backbone, rest: rest.pop("logit_scale"))
    loaded = load_model(NAME, weights=files)
    encoder = loaded.encoder
    assert encoder.logit_scale == pytest.approx(1 / 0.07)
    assert len(loaded.warnings) == 1 and "no learned temperature" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda backbone, rest: backbone.pop("blocks.1.ls1.gamma"), "1 missing: visual_model.backbone.blocks.1.ls1.gamma"),
        (lambda backbone, rest: backbone.update({"local_cls_norm.weight": torch.ones(32)}), "1 unexpected: visual_model.backbone.local_cls_norm.weight"),
        (lambda backbone, rest: rest.pop("text_model.head.linear_projection.weight"), "1 missing: text_model.head.linear_projection.weight"),
        (lambda backbone, rest: rest.update({"visual_model.head.ln_final.bias": torch.zeros(7)}), "1 wrong shape: visual_model.head.ln_final.bias"),
    ],
)  # fmt: skip
def test_mismatched_weights_are_refused(tmp_path, change, message):
    with pytest.raises(BadModel, match=message):
        load_model(NAME, weights=checkpoint.dinotxt_folder(tmp_path, change))


def test_missing_or_extra_files_are_reported(folder, tmp_path, monkeypatch):
    with pytest.raises(BadModel, match="Give the folder that contains both"):
        load_model(NAME, weights=folder / dinotxt.HEADS[0])
    checkpoint.dinotxt_folder(tmp_path)
    change_card(monkeypatch, NAME, weights={dinotxt.BACKBONE[0]: None, dinotxt.HEADS[0]: "a442d8f5"})
    with pytest.raises(BadModel, match=rf"{dinotxt.HEADS[0]} differs from the file .* expected a442d8f5"):
        load_model(NAME, weights=tmp_path)
    (tmp_path / dinotxt.HEADS[0]).unlink()
    with pytest.raises(BadModel, match=f"has no weights in .* Accepted file names: {dinotxt.HEADS[0]}"):
        load_model(NAME, weights=tmp_path)
    with pytest.raises(BadModel, match="is not on the Hub"):
        load_model(NAME)


def test_folder_of_the_files_is_known_by_its_keys(folder):
    found = detect(given_files(str(folder), folder))
    assert found.rule.endswith(f"-> the adapter of {NAME}")
    assert load_model(str(folder)).name == folder.name


def test_doctor_and_registry_state_prompt_support(folder):
    diagnosis = examine(NAME, weights=folder)
    assert diagnosis.problem is None
    assert ("text", "prompts can be used") in diagnosis.facts
    assert all(any(file in value for what, value in diagnosis.facts if what == "weights read") for file in card(NAME).weights)  # fmt: skip
    assert {row[0]: row[1] for row in diagnosis.answers}["camus/ef"] == "yes"
