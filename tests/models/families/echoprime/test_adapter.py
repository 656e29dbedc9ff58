"""Test EchoPrime on synthetic checkpoints of small networks: load, encode, predict, refuse."""

import os
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import FrameSampling
from cardiobench.models.base import NativeHeads
from cardiobench.models.cards import card
from cardiobench.models.families.echoprime import adapter as echoprime_adapter
from cardiobench.models.families.echoprime.retrieval import VIEWS
from cardiobench.models.files import given_files
from cardiobench.models.load import load_model
from tests.models.checkpoints import smaller_networks
from tests.models.encoders import check_encoder
from tests.models.families.echoprime import checkpoint


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def echoprime(small, tmp_path_factory):
    return checkpoint.echoprime_folder(tmp_path_factory.mktemp("EchoPrime") / "EchoPrime")


@pytest.fixture(scope="module")
def prime(echoprime):
    return load_model("echonet/EchoPrime", weights=echoprime)


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
    seen = [
        weight * video[:512] for video in study for weight in [checkpoint.section_table()[row][video[512:].argmax()]]
    ]
    nearest = np.argsort(-(np.concatenate(halves) @ np.sum(seen, axis=0, dtype=np.float64)))[:50]
    return np.nanmean([labels.get(names[place], np.nan) for place in nearest])


def test_released_code_predicts_stenosis_from_other_section(prime, echoprime):
    """Check both variants: by name from the row of the aortic valve, and as released from row 5 of the table, the atrial septum."""
    rng = np.random.default_rng(5)
    weighted = [view for view in range(11) if checkpoint.section_table()[[5, 7], view].all()]
    videos = rng.normal(size=(12, 3, 512))
    several = np.concatenate([videos, np.eye(11)[rng.choice(weighted, (12, 3))]], axis=2).astype(np.float32)
    released = load_model("echonet/EchoPrime", weights=echoprime, variant="upstream_compat").encoder
    shares = {}
    for encoder, section in ((prime.encoder, "Aortic Valve"), (released, "Atrial Septum")):
        row = checkpoint.SECTIONS.index(section)
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


def test_unknown_poolings_and_variants(tmp_path):
    source = given_files("echonet/EchoPrime", tmp_path)
    with pytest.raises(BadModel, match=r"no variant 'released'. It has: by_name, upstream_compat"):
        echoprime_adapter.load(card("echonet/EchoPrime"), source, variant="released")
    with pytest.raises(BadModel, match=r"no pooling 'max'. It has: cls"):
        echoprime_adapter.load(card("echonet/EchoPrime"), source, pooling="max")


def test_lone_view_classifier_is_named(tmp_path):
    save_file(
        {"features.0.0.weight": torch.zeros(2), "classifier.2.weight": torch.zeros(2)}, tmp_path / "v.safetensors"
    )
    with pytest.raises(
        BadModel,
        match=r"v\.safetensors is a part of echonet/EchoPrime: give the folder that also contains echo_prime_encoder\.pt",
    ):
        load_model(str(tmp_path / "v.safetensors"))
