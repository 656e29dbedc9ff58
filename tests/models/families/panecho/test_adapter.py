"""Test PanEcho on synthetic checkpoints of small networks: load, encode, predict, refuse."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.base import NativeHeads
from cardiobench.models.cards import card
from cardiobench.models.families.panecho.adapter import ANSWERS
from cardiobench.models.load import load_model
from cardiobench.protocols.analysis import Perturbation
from cardiobench.runner.encode import PerturbedDataset
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.encoders import check_encoder, clip_of
from tests.models.families.panecho import checkpoint


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def panecho(small, tmp_path_factory):
    return checkpoint.panecho_file(tmp_path_factory.mktemp("PanEcho"))


@pytest.fixture(scope="module")
def pan(panecho):
    return load_model("CarDS-Yale/PanEcho", weights=panecho, variant="one_clip").encoder


@pytest.mark.slow
def test_panecho(pan, clips):
    check_encoder(pan, "CarDS-Yale/PanEcho", 768, clips)
    assert pan.sampling == FrameSampling(count=16, stride=1, start="first")
    assert isinstance(pan, NativeHeads) and pan.native == card("CarDS-Yale/PanEcho").native == tuple(ANSWERS)
    assert pan.clips == 1


@pytest.mark.slow
def test_panecho_takes_blue_green_red_from_recordings(pan):
    clip = clip_of(16, 40, 40)
    swapped = clip_of(16, 40, 40)
    swapped.frames[:] = clip.frames[..., ::-1]
    ours, theirs = pan.transform(clip), pan.transform(swapped)
    assert torch.equal(ours.flip(-1), theirs)
    blue = clip_of(16, 40, 40)
    blue.frames[..., :2], blue.frames[..., 2] = 0, 200
    first = pan.transform(blue)[0]
    assert (first[..., 0] == 200).all() and (first[..., 1:] == 0).all()


@pytest.mark.slow
def test_panecho_takes_four_clips_of_a_long_recording(panecho, pan):
    loaded = load_model("CarDS-Yale/PanEcho", weights=panecho)
    encoder = loaded.encoder
    assert encoder.sampling == FrameSampling(count=None, start="first") and loaded.setting == ""
    long = clip_of(76, 24, 24)
    parts = encoder.transform(long)
    assert parts.shape == (4, 16, 224, 224, 3)
    assert torch.equal(parts[:1], pan.transform(long))
    later = clip_of(76, 24, 24)
    assert torch.equal(parts[3], pan.transform(type(later)(later.frames[60:], later.indices[60:], 16))[0])
    assert len(encoder.transform(clip_of(3))) == 1


def test_answers_of_panecho(pan):
    vectors = np.random.default_rng(9).normal(size=(5, 768)).astype(np.float32)
    units = [vectors[:3], vectors[3:4], vectors[4:]]
    answers = pan.answers(vectors)
    assert len(answers) == 40
    state = pan.network.network.state_dict()

    def raw(name):
        weight, bias = (state[f"{name}_head.1.{kind}"].double().numpy() for kind in ("weight", "bias"))
        return vectors.astype(np.float64) @ weight.T + bias

    for target, name in (("ef", "EF"), ("lvidd", "LVIDd"), ("ivsd", "IVSd"), ("lvpwd", "LVPWd")):
        column = raw(name)[:, 0]
        expected = [column[:3].mean(), column[3], column[4]]
        np.testing.assert_allclose(pan.predict_native(target, units), expected, atol=1e-4)
    classes = np.exp(raw("AVStenosis"))
    stenosis = 1 - classes[:, 1] / classes.sum(axis=1)
    np.testing.assert_allclose(pan.predict_native("as", units)[1:], stenosis[3:], atol=1e-6)
    motion = 1 / (1 + np.exp(-raw("LVWallMotionAbnormalities")[:, 0]))
    np.testing.assert_allclose(pan.predict_native("rwma", units)[0], motion[:3].mean(), atol=1e-6)
    effusion = 1 - 1 / (1 + np.exp(-raw("pericardial-effusion")[:, 0]))
    np.testing.assert_allclose(answers["pericardial-effusion"][:, 0], effusion, atol=1e-6)
    np.testing.assert_allclose(pan.predict_native("effusion_modlarge", units)[1:], effusion[3:], atol=1e-6)
    # Classes in alphabetical order: Mild, Moderate|Severe, None|Trace; Mildly, Moderately|Severely, Normal.
    leak, size = (
        np.exp(raw(name)) / np.exp(raw(name)).sum(axis=1, keepdims=True) for name in ("MVRegurgitation", "LASize")
    )
    np.testing.assert_allclose(pan.predict_native("mr_modsev", units)[1:], leak[3:, 1], atol=1e-6)
    np.testing.assert_allclose(pan.predict_native("la_dilated", units)[1:], size[3:, :2].sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(pan.predict_native("tapse", units)[1:], raw("TAPSE")[3:, 0], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("EF_head.1.bias"), "1 missing: EF_head.1.bias"),
        (lambda state: state.update(extra=torch.zeros(2)), "1 unexpected: extra"),
        (lambda state: state.update({"EF_head.1.weight": torch.zeros(2, 768)}), "1 wrong shape: EF_head.1.weight"),
    ],
)
def test_incomplete_panecho_files_are_refused(tmp_path, change, message):
    with pytest.raises(BadModel, match=message):
        load_model("CarDS-Yale/PanEcho", weights=checkpoint.panecho_file(tmp_path, change))


@pytest.mark.slow
def test_panecho_time_table_is_never_loaded(tmp_path, pan):
    table = "encoder.time_encoder.pe"
    path = checkpoint.panecho_file(tmp_path, lambda state: state.pop(table))
    encoder = load_model("CarDS-Yale/PanEcho", weights=path, variant="one_clip").encoder
    for name, tensor in pan.network.state_dict().items():
        assert torch.equal(tensor, encoder.network.state_dict()[name]), name


@pytest.mark.parametrize("count", [18, *(pytest.param(count, marks=pytest.mark.slow) for count in (5, 76))])
def test_frame_order_follows_network_input(count, tmp_path, monkeypatch):
    """Check that PanEcho's clips are shuffled individually, so that each contains the same frames as before."""
    change_card(monkeypatch, "CarDS-Yale/PanEcho")
    with smaller_networks():
        model = load_model("CarDS-Yale/PanEcho", weights=CHECKPOINTS["CarDS-Yale/PanEcho"](tmp_path))
    levels = np.linspace(3, 250, count).astype(np.uint8)
    clip = Clip(np.broadcast_to(levels[:, None, None, None], (count, 24, 24, 3)).copy(), np.arange(count), count)
    dataset = SimpleNamespace(frame=pd.DataFrame({"id": ["a"]}), recording=lambda number, sampling=None: clip)

    def order(count, severity, rng):
        return rng.permutation(count)

    def apply(clip, severity, rng):
        return replace(clip, frames=clip.frames[order(len(clip.frames), severity, rng)])

    shuffle = Perturbation("shuffle", 1.0, apply, order=order)
    perturbed = PerturbedDataset(dataset, shuffle, 0, model.cut).recording(0, model.sampling)
    before, after = (model.encoder.transform(one)[:, :, 0, 0, 0].numpy() for one in (clip, perturbed))
    assert before.shape == after.shape and (before != after).any()
    for one, other in zip(before, after, strict=True):
        assert set(one) == set(other)
    usual = PerturbedDataset(dataset, shuffle, 0).recording(0, model.sampling)
    assert isinstance(usual, Clip)
