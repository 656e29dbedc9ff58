"""Test the echo models on synthetic checkpoints in their published containers: load, encode, predict, refuse.

The networks are small ones of the same kind; tests/models/nets compares full-size networks with the published code.
"""

import json
import os
import pickle

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import FrameSampling
from cardiobench.models.base import Encoder, NativeHeads, TextEncoder
from cardiobench.models.cards import card
from cardiobench.models.families.echoprime import adapter as echoprime_adapter
from cardiobench.models.families.echoprime.retrieval import VIEWS
from cardiobench.models.families.panecho.adapter import ANSWERS
from cardiobench.models.files import given_files
from cardiobench.models.load import load_model
from tests.models.checkpoints import smaller_networks
from tests.models.echo import fake
from tests.models.echo.conftest import clip_of


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def echoprime(small, tmp_path_factory):
    return fake.echoprime_folder(tmp_path_factory.mktemp("EchoPrime") / "EchoPrime")


@pytest.fixture(scope="module")
def panecho(small, tmp_path_factory):
    return fake.panecho_file(tmp_path_factory.mktemp("PanEcho"))


@pytest.fixture(scope="module")
def prime(echoprime):
    return load_model("echonet/EchoPrime", weights=echoprime)


@pytest.fixture(scope="module")
def pan(panecho):
    return load_model("CarDS-Yale/PanEcho", weights=panecho, variant="one_clip").encoder


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


@pytest.mark.slow
def test_echoprime(prime, clips):
    assert prime.preprocessing["variant"] == "by_name" and not prime.warnings
    prime = prime.encoder
    vectors = check_encoder(prime, "echonet/EchoPrime", 523, clips)
    assert set(vectors[:, 512:].unique().tolist()) == {0.0, 1.0}
    assert (vectors[:, 512:].sum(dim=1) == 1).all()
    assert prime.sampling == FrameSampling(count=16, stride=2, start="first")
    assert isinstance(prime, NativeHeads) and prime.native == ("view", *echoprime_adapter.ASKED)
    assert set(prime.native) == set(card("echonet/EchoPrime").native)


def studies():
    """Return a study of three recordings, and one of a single recording whose view has no weight for the left ventricle."""
    video = np.random.default_rng(8).normal(size=(4, 512)).astype(np.float32)
    views = np.eye(11, dtype=np.float32)[[VIEWS.index(name) for name in ("A4C", "A2C", "Parasternal_Long", "A5C")]]
    vectors = np.concatenate([video, views], axis=1)
    return [vectors[:3], vectors[3:]]


def share_of_nearest(study, row, folder):
    """Compute the share of aortic stenosis among the 50 nearest candidates of a study, weighted by a row of the section table."""
    bank = folder / "model_data" / "candidates_data"
    halves = [torch.load(bank / f"candidate_embeddings_p{n}.pt", weights_only=True).double().numpy() for n in (1, 2)]
    names = (bank / "candidate_studies.csv").read_text().split()[1:]
    content = (bank / "candidate_labels.pkl").read_bytes()
    labels = pickle.loads(content)["aortic_stenosis"]  # noqa: S301 - our own
    seen = [weight * video[:512] for video in study for weight in [fake.section_table()[row][video[512:].argmax()]]]
    nearest = np.argsort(-(np.concatenate(halves) @ np.sum(seen, axis=0, dtype=np.float64)))[:50]
    return np.nanmean([labels.get(names[place], np.nan) for place in nearest])


def test_released_code_predicts_stenosis_from_other_section(prime, echoprime):
    """Check both variants: by name from the row of the aortic valve, and as released from row 5 of the table, the atrial septum."""
    rng = np.random.default_rng(5)
    weighted = [view for view in range(11) if fake.section_table()[[5, 7], view].all()]
    videos = rng.normal(size=(12, 3, 512))
    several = np.concatenate([videos, np.eye(11)[rng.choice(weighted, (12, 3))]], axis=2).astype(np.float32)
    released = load_model("echonet/EchoPrime", weights=echoprime, variant="upstream_compat").encoder
    shares = {}
    for encoder, section in ((prime.encoder, "Aortic Valve"), (released, "Atrial Septum")):
        row = fake.SECTIONS.index(section)
        shares[section] = [share_of_nearest(study, row, echoprime) for study in several]
        # Straight lines through (0, 0), the published cut (0.78, 0.5) and (1, 1).
        expected = [0.5 * s / 0.78 if s <= 0.78 else 0.5 + 0.5 * (s - 0.78) / 0.22 for s in shares[section]]
        np.testing.assert_allclose(encoder.predict_native("as", several), expected, atol=1e-12)
    assert np.count_nonzero(np.not_equal(*shares.values())) >= 6


def test_answers_of_echoprime(prime, echoprime, caplog):
    fractions, shares = (prime.encoder.predict_native(target, studies()) for target in ("ef", "as"))
    assert fractions.shape == shares.shape == (2,)
    assert ((fractions > 20) & (fractions < 70)).all()
    assert ((shares >= 0) & (shares <= 1)).all()
    views = prime.encoder.predict_native("view", studies())
    np.testing.assert_allclose(views, [[1 / 3, 0, 1 / 3, 0, 1 / 3, 0], [0, 0, 0, 0, 0, 1]])
    assert prime.encoder.native_details["ef"]["units_without_weighted_view"] == 1
    assert prime.encoder.native_details["as"]["units_without_weighted_view"] == 0
    assert "1 of 2 units have only views with zero weight" in caplog.text

    released = load_model("echonet/EchoPrime", weights=echoprime, variant="upstream_compat")
    assert released.encoder.predict_native("ef", studies())[0] == fractions[0]
    assert released.setting == "variant-upstream_compat"
    assert released.preprocessing["variant"] == "upstream_compat"
    assert released.revision == prime.revision


def linked(folder, target):
    """Link every file of a download instead of copying its weights."""
    for file in folder.rglob("*"):
        if file.is_file():
            there = target / file.relative_to(folder)
            there.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, there)
    return target


@pytest.mark.parametrize("name", ["MIL_weights.csv", "candidate_labels.pkl"])
def test_echoprime_without_its_bank_has_embeddings_and_views(echoprime, tmp_path, name):
    folder = linked(echoprime, tmp_path / "EchoPrime")
    next(folder.rglob(name)).unlink()
    loaded = load_model("echonet/EchoPrime", weights=folder)
    encoder = loaded.encoder
    assert encoder.native == ("view",)
    assert len(loaded.warnings) == 1 and name in loaded.warnings[0]


def test_incomplete_echoprime_files_are_refused(echoprime, tmp_path):
    folder = linked(echoprime, tmp_path / "EchoPrime")
    classifier = next(folder.rglob("view_classifier.pt"))
    state = torch.load(classifier, weights_only=True, mmap=True)
    refused = {
        "1 missing: classifier.2.bias": {name: t for name, t in state.items() if name != "classifier.2.bias"},
        "1 unexpected: extra": {**state, "extra": torch.zeros(1)},
        "1 wrong shape: classifier.2.weight": {**state, "classifier.2.weight": torch.zeros(58, 128)},
    }
    original = classifier.read_bytes()
    for message, changed in refused.items():
        classifier.unlink()
        torch.save(changed, classifier)
        with pytest.raises(BadModel, match=message) as caught:
            load_model("echonet/EchoPrime", weights=folder)
        assert "view_classifier.pt" in str(caught.value)
    classifier.write_bytes(original[: len(original) // 2])
    with pytest.raises(BadModel, match="truncated or not a PyTorch file"):
        load_model("echonet/EchoPrime", weights=folder)
    classifier.unlink()
    with pytest.raises(BadModel, match=r"no weights.*view_classifier\.pt"):
        load_model("echonet/EchoPrime", weights=folder)
    with pytest.raises(BadModel, match=r"is several files.*Give the folder"):
        load_model("echonet/EchoPrime", weights=next(folder.rglob("echo_prime_encoder.pt")))


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
        load_model("CarDS-Yale/PanEcho", weights=fake.panecho_file(tmp_path, change))


@pytest.mark.slow
def test_panecho_time_table_is_never_loaded(tmp_path, pan):
    table = "encoder.time_encoder.pe"
    path = fake.panecho_file(tmp_path, lambda state: state.pop(table))
    encoder = load_model("CarDS-Yale/PanEcho", weights=path, variant="one_clip").encoder
    for name, tensor in pan.network.state_dict().items():
        assert torch.equal(tensor, encoder.network.state_dict()[name]), name


def test_unknown_poolings_and_variants(tmp_path):
    source = given_files("echonet/EchoPrime", tmp_path)
    with pytest.raises(BadModel, match=r"no variant 'released'. It has: by_name, upstream_compat"):
        echoprime_adapter.load(card("echonet/EchoPrime"), source, variant="released")
    with pytest.raises(BadModel, match=r"no pooling 'max'. It has: cls"):
        echoprime_adapter.load(card("echonet/EchoPrime"), source, pooling="max")


@pytest.mark.slow
def test_echofm(tmp_path):
    path = fake.echofm_file(tmp_path / "EchoFM")
    encoder = load_model("sekeun/EchoFM", weights=path).encoder
    clips = [clip_of(5, 30, 40, seed=1), clip_of(1, 40, 30, seed=2)]
    vectors = check_encoder(encoder, "sekeun/EchoFM", 128, clips)
    assert encoder.sampling == FrameSampling(count=32, stride=1, start="first")
    assert not isinstance(encoder, NativeHeads)
    network = encoder.network.network
    with torch.no_grad():
        tokens = network.tokens(encoder.transform(clips[0]).movedim(-1, 1) / 255)
    torch.testing.assert_close(vectors[:1], tokens.mean(dim=1), rtol=1e-5, atol=1e-5)
    encoder.network.pooling = "max"
    torch.testing.assert_close(encoder.encode(encoder.transform(clips[0])), tokens.amax(dim=1), rtol=1e-5, atol=1e-5)
    encoder.network.pooling = "cls"
    assert encoder.encode(encoder.transform(clips[0])).shape == (1, 128)
    state = torch.load(path, weights_only=True, mmap=True)
    older = {name: tensor for name, tensor in state["model"].items() if not name.startswith("prj_norm")}
    torch.save({**state, "model": older}, tmp_path / "older.pth")
    with pytest.raises(BadModel, match=r"2 missing: prj_norm\.weight, prj_norm\.bias"):
        load_model("sekeun/EchoFM", weights=tmp_path / "older.pth")


def test_echofm_of_other_settings_is_refused(tmp_path):
    """Check that sixteen frames with tubes of two frames are rejected as another network, even if tensor shapes match."""
    path = fake.echofm_file(tmp_path / "EchoFM")
    content = torch.load(path, weights_only=True)
    content["model_args"] |= {"num_frames": 16, "t_patch_size": 2}
    torch.save(content, path)
    with pytest.raises(BadModel, match=r"'num_frames': 16, 't_patch_size': 2.*'num_frames': 32, 't_patch_size': 4"):
        load_model("sekeun/EchoFM", weights=path)


@pytest.mark.parametrize("name", ["bowang-lab/EchoJEPA", "siemens-healthineers/EchoVLM"])
def test_models_without_public_weights_are_reported(name, tmp_path):
    assert not card(name).public_weights and card(name).seen == ("mimic_iv_echo",)
    for weights in (None, tmp_path):
        with pytest.raises(BadModel, match="available outside the authors' group"):
            load_model(name, weights=weights)
