"""Test how a model's loader is found, and how a card or a `cardiobench.json` changes it."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from cardiobench.core import resources
from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models import cards
from cardiobench.models.base import TextEncoder
from cardiobench.models.cards import card, list_models
from cardiobench.models.detect import RULES, detect
from cardiobench.models.files import given_files
from cardiobench.models.frames import frame_settings
from cardiobench.models.load import load_model, plan_model
from tests.models.checkpoints import FAMILIES
from tests.models.golden import Golden
from tests.models.tiny import tiny_open_clip, tiny_siglip, tiny_timm

ECHO_CLIP = "mkaichristensen/echo-clip"
# The golden description of a network, and the prefix of all keys in its checkpoint.
DESCRIBED = {name: described for family in FAMILIES.values() for name, described in family.tensors.items()}


@pytest.fixture(scope="module")
def clip() -> Clip:
    frames = np.random.default_rng(7).integers(0, 256, (50, 41, 57, 3), dtype=np.uint8)
    return Clip(frames, np.arange(50), 50, 30.0)


def keys_of(name):
    golden, prefix = DESCRIBED[name]
    return [prefix + key for key in Golden(golden).shapes]


def test_described_networks_are_known_by_their_keys():
    stated = {name for name in list_models() if card(name).weight_keys}
    assert set(DESCRIBED) <= stated and all(card(name).weights for name in stated)


@pytest.mark.parametrize("name", list(DESCRIBED))
@pytest.mark.parametrize("wrapped", [True, False])
def test_weights_are_recognised_by_published_keys(tmp_path, name, wrapped):
    state = {key: torch.zeros(1) for key in keys_of(name)}
    torch.save({"state_dict": state, "epoch": 3} if wrapped else state, tmp_path / "mine.pt")
    for given in (tmp_path, tmp_path / "mine.pt"):
        found = detect(given_files(str(given), given))
        assert found.rule.endswith(f"-> the adapter of {name}")
        assert "mine.pt has keys " in found.rule
        assert found.card.id == str(given), "the result has another name than the registered model"
        assert found.poolings == card(name).poolings


def test_unknown_weight_keys_are_reported(tmp_path):
    save_file({"layer.weight": torch.zeros(2)}, tmp_path / "x.safetensors")
    with pytest.raises(BadModel) as caught:
        load_model(str(tmp_path))
    message = str(caught.value)
    assert "The first keys of x.safetensors are layer.weight" in message
    assert all(rule in message for rule in RULES)


# ---- A name, and files from elsewhere


def test_registered_models_accept_user_files(tmp_path, clip):
    folder = tiny_open_clip(tmp_path / "downloaded", safe=False)
    loaded = load_model(ECHO_CLIP.upper(), weights=folder)
    encoder = loaded.encoder
    assert encoder.name == ECHO_CLIP
    assert loaded.loaded_by == f"'{ECHO_CLIP}' is registered; the folder has open_clip_config.json -> open_clip"
    assert list(loaded.weight_files) == ["open_clip_pytorch_model.bin"]
    assert encoder.sampling == FrameSampling(20, 2, "first")
    assert isinstance(encoder, TextEncoder)
    with pytest.raises(BadModel, match="there is no file or folder"):
        load_model(ECHO_CLIP, weights=tmp_path / "nowhere")


def test_other_names_accept_user_files(tmp_path):
    encoder = load_model("someone/vit", weights=tiny_timm(tmp_path / "vit"))
    assert encoder.name == "someone/vit"


@pytest.mark.parametrize(("variant", "whole"), [("echo_clip", int), ("paper", round)])
def test_echo_clip_sees_cropped_bgr_frames(tmp_path, clip, variant, whole):
    import open_clip

    folder = tiny_open_clip(tmp_path / "clip", safe=False)
    loaded = load_model(ECHO_CLIP, weights=folder, variant=variant)
    encoder = loaded.encoder
    _, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    images = []
    for frame in clip.frames:
        square = cv2.cvtColor(frame, cv2.COLOR_RGB2BGR)[:, 8:49]
        border = whole(0.1 * 41)
        cut = square[border : 41 - border, border : 41 - border]
        images.append(transform(Image.fromarray(cv2.resize(cut, (224, 224), interpolation=cv2.INTER_CUBIC))))
    parts = encoder.transform(clip)
    assert parts.dtype == torch.uint8
    torch.testing.assert_close(encoder.network.normalise(parts), torch.stack(images), rtol=0, atol=2e-6)
    assert loaded.setting == ("" if variant == "echo_clip" else "variant-paper")
    assert loaded.preprocessing["colour"] == "BGR"
    assert loaded.preprocessing["border"] == {int: "truncate", round: "round"}[whole]


def test_echo_clip_r_encodes_frames_and_refuses_prompts(tmp_path, clip):
    encoder = load_model("mkaichristensen/echo-clip-r", weights=tiny_open_clip(tmp_path / "clip", safe=False)).encoder
    assert not isinstance(encoder, TextEncoder)
    assert "template vocabulary" in encoder.no_text_reason
    assert encoder.encode(encoder.transform(clip)).shape == (50, 16)


# ---- cardiobench.json


def test_settings_next_to_weights(tmp_path, clip):
    folder = tiny_timm(tmp_path / "vit")
    plain_loaded = load_model(str(folder))
    plain = plain_loaded.encoder
    (folder / "cardiobench.json").write_text(
        json.dumps({"colour": "BGR", "frames": 4, "stride": 3, "start": "uniform", "pooling": "max"})
    )
    loaded = load_model(str(folder))
    encoder = loaded.encoder
    assert encoder.sampling == FrameSampling(4, 3, "uniform")
    assert (loaded.token_pooling, plain_loaded.token_pooling) == (
        "max",
        "mean" if plain_loaded.token_pooling == "mean" else "cls",
    )
    swapped = Clip(clip.frames[..., ::-1], clip.indices, clip.n_frames)
    assert torch.equal(encoder.transform(clip), plain.transform(swapped))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"color": "BGR"}, "{} has unknown keys ['color']"),
        ({"colour": "GRB"}, "colour='GRB': Input should be 'RGB' or 'BGR'. Correct {}."),
        ({"zoom": 0.6}, "zoom=0.6: Input should be less than 0.5. Correct {}."),
        ({"frames": 0}, "frames=0: Input should be greater than or equal to 1. Correct {}."),
        ({"frames": 2.5}, "frames=2.5: Input should be a valid integer. Correct {}."),
        ({"start": "middle"}, "start='middle': Input should be 'key_frame', 'first' or 'uniform'. Correct {}."),
        ({"fs": 100, "frames": 4}, "{} states fs, but this loader reads only pooling, colour, zoom, border, frames"),
        ({"variant": "paper"}, "{} states variant, but this loader reads only pooling"),
        ({"pooling": "median"}, "{} requests pooling 'median'; choose one of: cls, mean, max"),
    ],
)
def test_invalid_settings_are_refused_with_their_source(tmp_path, facts, message):
    folder = tiny_timm(tmp_path / "vit")
    with pytest.raises(BadModel, match=re.escape(message.format("--preprocessing"))):
        load_model(str(folder), preprocessing=facts)
    (folder / "cardiobench.json").write_text(json.dumps(facts))
    with pytest.raises(BadModel, match=re.escape(message.format("cardiobench.json"))):
        load_model(str(folder))


def test_invalid_settings_of_a_card_are_refused_with_its_name():
    with pytest.raises(BadModel, match=r"colour='GRB'.* Correct the card of .*echo-clip"):
        frame_settings(replace(card(ECHO_CLIP), preprocessing={"colour": "GRB"}).stated(), ECHO_CLIP)


# ---- Checksums and revisions


@pytest.fixture
def known(monkeypatch):
    """Return a function that changes the card of a model."""

    def change(name, **facts):
        table = {**cards._cards(), name: replace(card(name), **facts)}
        monkeypatch.setattr(cards, "_cards", lambda: MappingProxyType(table))

    return change


def test_checksums_of_the_card(tmp_path, known):
    folder = tiny_open_clip(tmp_path / "clip", safe=False)
    file = folder / "open_clip_pytorch_model.bin"
    digest = sha256(file.read_bytes()).hexdigest()
    for right in (digest, digest[:8]):
        known(ECHO_CLIP, weights={file.name: right})
        assert load_model(ECHO_CLIP, weights=folder).weight_files == {file.name: digest}
    known(ECHO_CLIP, weights={file.name: "0" * 64})
    with pytest.raises(BadModel) as caught:
        load_model(ECHO_CLIP, weights=folder)
    assert f"its SHA-256 is {digest}; expected {'0' * 64}" in str(caught.value)
    assert str(file) in str(caught.value)
    # The same file is valid as a user's own model.
    assert load_model(str(folder)).weight_files == {file.name: digest}


def test_renamed_single_file_is_compared_too(tmp_path):
    path = tmp_path / "renamed.pt"
    path.write_bytes(b"weights")
    source = replace(given_files("x/y", path), checksums={"original.pt": "0" * 8})
    with pytest.raises(BadModel, match=r"renamed\.pt differs from the file in the card of x/y"):
        source.weights(("original.pt",))


@pytest.mark.parametrize(
    ("value", "good"), [("'12345678'", True), ("null", True), ("'123'", False), ("'not hex!'", False)]
)
def test_checksums_in_a_card(tmp_path, value, good):
    text = (resources.folder("model_cards") / "mkaichristensen__echo-clip.md").read_text()
    path = tmp_path / "a__b.md"
    path.write_text(text.replace("open_clip_pytorch_model.bin: null", f"open_clip_pytorch_model.bin: {value}"))
    if good:
        assert cards.read_card(path).weights
    else:
        with pytest.raises(BadModel, match="not a SHA-256"):
            cards.read_card(path)


def test_unavailable_choice(tmp_path):
    folder = tiny_siglip(tmp_path / "siglip")
    with pytest.raises(NotApplicable, match=r"has no pooling 'cls'\. It has only one"):
        load_model(str(folder), pooling="cls")
    with pytest.raises(NotApplicable, match=r"has no variant 'raw'\. It offers: echo_clip, paper"):
        plan_model(ECHO_CLIP, weights=tiny_open_clip(tmp_path / "clip"), variant="raw")
    with pytest.raises(BadModel, match="no precision 'fp8'"):
        load_model(str(folder), precision="fp8")
    with pytest.raises(BadModel, match="has no weights, but"):
        load_model("cardiobench/constant", weights=folder)


def test_files_in_folders_below(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for name in ("top.pt", "a/b/deep.pt", ".hidden/no.pt"):
        (tmp_path / name).write_bytes(b"x")
    source = given_files("x/y", tmp_path)
    assert source.files == ("a/b/deep.pt", "top.pt")
    assert source.find(["deep.pt"]) == "a/b/deep.pt"
    assert source.find(["no.pt"]) is None
