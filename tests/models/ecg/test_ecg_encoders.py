"""Load every ECG model from a synthetic checkpoint, and reject every damaged one."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.data import catalog
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.base import Encoder, NativeHeads, leads_of
from cardiobench.models.cards import card
from cardiobench.models.families.ecg_fm import adapter as ecg_fm
from cardiobench.models.families.ecg_jepa_kim import adapter as ecg_jepa_kim
from cardiobench.models.families.ecgfounder import heads as ecgfounder_heads
from cardiobench.models.families.hubert_ecg import adapter as hubert_ecg
from cardiobench.models.files import given_files
from cardiobench.models.load import adapter, load_model
from tests.models.checkpoints import change_card
from tests.models.ecg import fake

# Tests of networks with some 90 million parameters take seconds each.
LARGE = ("wanglab/ecg-fm", "sehunfromdaegu/ECG_JEPA", "vuno/ST-MEM", "AI4HealthUOL/ECG-CPC")
MODELS = [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in fake.FAKES]

PARTS = {
    "PKUDigitalHealth/ECGFounder": (12, 5000),
    "wanglab/ecg-fm": (12, 2500),
    "Edoardo-BS/hubert-ecg-small": (6000,),
    "kweimann/ECG-JEPA": (12, 5000),
    "sehunfromdaegu/ECG_JEPA": (8, 2500),
    "control-spiderman/ECGFM-KED": (12, 1000),
    "vuno/ST-MEM": (12, 2250),
    "AI4HealthUOL/ECG-CPC": (12, 2400),
    "cheliu-computation/MERL-resnet18": (12, 5000),
    "cheliu-computation/MERL-vit-tiny": (12, 5000),
}


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


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(name):
        if name not in made:
            made[name] = fake.FAKES[name](tmp_path_factory.mktemp(name.replace("/", "__")))
        return made[name]

    return folder


@pytest.fixture(scope="module")
def encoders(folders):
    made = {}

    def encoder(name):
        if name not in made:
            with pytest.MonkeyPatch.context() as patch:
                change_card(patch, name)  # The checksums are those of the real files.
                made[name] = load_model(name, weights=folders(name)).encoder
        return made[name]

    return encoder


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_from_checkpoint_to_vectors(encoders, name):
    encoder, model = encoders(name), card(name)
    assert isinstance(encoder, Encoder)
    assert (encoder.name, encoder.modalities, encoder.sampling) == (name, ("ecg",), None)
    assert leads_of(encoder) == tuple(LEADS if name != "sehunfromdaegu/ECG_JEPA" else ecg_jepa_kim.INDEPENDENT)
    assert encoder.preprocessing["pooling"] == model.poolings[0]
    assert encoder.preprocessing.get("variant", "") == (model.variants[0] if model.variants else "")
    json.dumps(dict(encoder.preprocessing))
    assert len(encoder.revision) == 12
    for ecg in (record(), record(10.24, 400), record(7, 400), record(30, 257), record(10, 1000), record(10, 100)):
        parts = encoder.transform(ecg)
        assert parts.shape[1:] == PARTS[name] and parts.dtype == torch.float32
        assert len(parts) >= 1 and torch.isfinite(parts).all()
    vectors = encoder.encode(encoder.transform(record()))
    assert vectors.shape[1] == encoder.dim and vectors.dtype == torch.float32
    assert torch.isfinite(vectors).all() and vectors.std() > 1e-3
    other = encoder.encode(encoder.transform(record(seed=1)))
    assert (vectors[0] - other[0]).abs().max() > 1e-2 * vectors.abs().max()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_single_and_batched(encoders, name):
    encoder = encoders(name)
    assert not any(module.training for module in encoder.network.modules())
    assert not any(parameter.requires_grad for parameter in encoder.network.parameters())
    parts = torch.cat([encoder.transform(record(seed=seed))[:1] for seed in range(2)])
    together = encoder.encode(parts)
    assert torch.equal(encoder.encode(parts), together)
    scale = together.abs().max()
    for index, part in enumerate(parts):
        assert (encoder.encode(part[None])[0] - together[index]).abs().max() <= 1e-6 * max(1, scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Edoardo-BS/hubert-ecg-small", "kweimann/ECG-JEPA"])
def test_poolings(folders, encoders, name):
    parts = encoders(name).transform(record())[:1]
    with torch.no_grad():
        tokens = encoders(name).network(parts)[0]
    wanted = {"mean": tokens.mean(0), "last": tokens[-1], "max": tokens.max(0).values, "tokens": tokens}
    for pooling, vector in wanted.items():
        got = load(name, folders(name), pooling=pooling)
        torch.testing.assert_close(got.encode(parts)[0], vector)
        assert got.preprocessing["pooling"] == pooling


def test_register_of_weimann_is_its_cls_token(folders):
    name = "kweimann/ECG-JEPA"
    encoder = load(name, folders(name), pooling="cls")
    parts = encoder.transform(record())
    with torch.no_grad():
        register = encoder.network.network.with_register(parts)[:, 0]
    assert torch.equal(encoder.encode(parts), register)


@pytest.mark.parametrize(
    "name", [model for model in MODELS if len(card(model.values[0]).variants) > 1 and not card(model.values[0]).text]
)
def test_variants_differ(encoders, name):
    prepare, ecg = encoders(name).prepare.func, record()
    parts = [prepare(ecg.signal.astype(np.float64), ecg.fs, variant) for variant in card(name).variants]
    assert all(
        one.shape != other.shape or np.abs(one - other).max() > 1e-3 or "queries" in card(name).variants
        for index, one in enumerate(parts)
        for other in parts[:index]
    )


def test_requested_variant_is_used(folders):
    name = "Edoardo-BS/hubert-ecg-small"
    first = load(name, folders(name), variant="first").transform(record(12))
    every = load(name, folders(name), variant="mean").transform(record(12))
    assert (len(first), len(every)) == (1, 2)
    assert torch.equal(first[0], every[0])


def test_first_window_of_ecg_fm():
    ecg = record(12)
    first, every = (ecg_fm.prepare(ecg.signal, ecg.fs, variant) for variant in ("first", "mean"))
    assert (len(first), len(every)) == (1, 2)
    np.testing.assert_array_equal(first[0], every[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_unsuitable_records_are_refused(encoders, name):
    encoder = encoders(name)
    with pytest.raises(BadMedia, match=r"lasts 0\.50 s"):
        encoder.transform(record(0.5))
    with pytest.raises(BadMedia, match=r"has shape \(samples, 12\), got \(5000, 8\)"):
        encoder.transform(Ecg(np.zeros((5000, 8), dtype=np.float32), 500))
    hole = record()
    hole.signal[17, 3] = np.nan
    with pytest.raises(BadMedia, match="not finite"):
        encoder.transform(hole)


@pytest.mark.parametrize("name", MODELS)
def test_record_without_any_signal_gives_finite_vectors(encoders, name):
    encoder = encoders(name)
    parts = encoder.transform(Ecg(np.full((5000, 12), 0.1, dtype=np.float32), 500))
    assert torch.isfinite(encoder.encode(parts)).all()


def missing(state):
    del state[some_matrix(state)]


def unexpected(state):
    state["left.over.weight"] = torch.zeros(2, 2)


def wrong_shape(state):
    name = some_matrix(state)
    state[name] = state[name][:-1].clone()


def some_matrix(state):
    return next(
        name
        for name in state
        if "weight" in name
        and any(part in name for part in ("blocks.1.", "layers.1.", "list.1.", "convs.1.", "layer1.1."))
        and state[name].dim() > 1
    )


@pytest.mark.parametrize("name", fake.FAKES)
@pytest.mark.parametrize("change", [missing, unexpected, wrong_shape])
def test_mismatched_weights(tmp_path, name, change):
    folder = fake.FAKES[name](tmp_path, change)
    with pytest.raises(BadModel, match=f"1 {change.__name__.replace('_', ' ')}: .*Nothing was loaded"):
        load(name, folder)


@pytest.mark.parametrize("name", fake.FAKES)
def test_truncated_and_absent_files(tmp_path, folders, name):
    with pytest.raises(BadModel, match="has no weights"):
        load(name, tmp_path)
    for file in folders(name).iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content if file.suffix == ".json" else content[: len(content) // 2])
    with pytest.raises(BadModel, match="truncated"):
        load(name, tmp_path)


@pytest.mark.parametrize("name", [name for name in fake.FAKES if "hubert" not in name])
def test_pickle_that_would_run_code(tmp_path, name):
    class Evil:
        def __reduce__(self):
            return print, ("code ran",)

    torch.save({"model": {}, "trap": Evil()}, tmp_path / next(iter(card(name).weights)))
    with pytest.raises(BadModel, match="could run code"):
        load(name, tmp_path)


@pytest.mark.slow
def test_settings_in_the_ecg_fm_checkpoint_are_skipped(tmp_path, folders):
    folder = folders("wanglab/ecg-fm")
    (file,) = folder.iterdir()
    with pytest.raises(Exception, match=r"omegaconf"):
        torch.load(file, weights_only=True)
    assert load("wanglab/ecg-fm", folder).dim == 768


@pytest.mark.slow
def test_fine_tuned_ecg_fm_is_refused(tmp_path):
    encoder = load("wanglab/ecg-fm", fake.ecg_fm_finetuned(tmp_path))
    assert "fine-tuned" in encoder.warnings[0]


@pytest.mark.parametrize("name", ["S", pytest.param("B", marks=pytest.mark.slow)])
def test_size_of_weimann_by_its_weights(tmp_path, name):
    folder = fake.jepa_weimann(tmp_path, size=name)
    assert load("kweimann/ECG-JEPA", folder).dim == {"S": 384, "B": 768}[name]


def test_unpublished_size_of_weimann_is_refused(tmp_path):
    torch.save({"model": {"target_encoder.norm.weight": torch.ones(100)}}, tmp_path / "ecg_jepa_weimann.pt")
    with pytest.raises(BadModel, match="tokens of length 100, expected one of 192, 384, 768"):
        load("kweimann/ECG-JEPA", tmp_path)


def test_pickled_settings_of_hubert_ecg(tmp_path):
    torch.save({"model_state_dict": {}, "model_config": None}, tmp_path / "hubert_ecg_small.pt")
    with pytest.raises(
        BadModel, match=r"hubert_ecg_small\.pt keeps its settings as Python objects.*model\.safetensors"
    ):
        load("Edoardo-BS/hubert-ecg-small", tmp_path)
    with pytest.raises(BadModel, match="keeps its settings as Python objects"):
        load("Edoardo-BS/hubert-ecg-small", tmp_path / "hubert_ecg_small.pt")


def test_hubert_ecg_is_recognised_by_width(tmp_path):
    state = {"encoder.layer_norm.weight": torch.zeros(960)}
    assert hubert_ecg.config({}, state, "x")["num_attention_heads"] == 12
    with pytest.raises(BadModel, match="width 64, expected one of 512, 768, 960"):
        hubert_ecg.config({}, {"encoder.layer_norm.weight": torch.zeros(64)}, "x")
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(BadModel, match="missing"):
        load("Edoardo-BS/hubert-ecg-large", tmp_path)


def test_hubert_ecg_with_contradictory_settings(tmp_path):
    folder = fake.hubert(tmp_path)
    (folder / "config.json").write_text(json.dumps({**fake.TINY_HUBERT, "conv_kernel": [10, 3]}))
    with pytest.raises(BadModel, match=r"config\.json does not describe a network"):
        load("Edoardo-BS/hubert-ecg-small", folder)


def test_labels_of_ecgfounder():
    names = ecgfounder_heads.labels()
    assert len(names) == len(set(names)) == 150
    for index, name in {
        5: "ATRIAL FIBRILLATION",
        11: "RIGHT BUNDLE BRANCH BLOCK",
        20: "LEFT BUNDLE BRANCH BLOCK",
        36: "LEFT ANTERIOR FASCICULAR BLOCK",
        54: "ANTEROLATERAL INFARCT",
        61: "INFERIOR INFARCT",
        79: "WITH 1ST DEGREE AV BLOCK",
        107: "WOLFF-PARKINSON-WHITE",
        132: "POSTERIOR INFARCT",
        149: "MULTIFOCAL ATRIAL TACHYCARDIA",
    }.items():
        assert names[index] == name
    assert all(label in names for labels in ecgfounder_heads.TARGETS.values() for label in labels)
    assert {*ecgfounder_heads.TARGETS, *ecgfounder_heads.SEVERAL} == set(card("PKUDigitalHealth/ECGFounder").native)
    assert all(
        label in names for classes in ecgfounder_heads.SEVERAL.values() for of in classes.values() for label in of
    )
    asked = {"six": "code15", "six_clean": "code15", "nine": "cpsc2018", "super": "ptb_xl"}
    for target, classes in ecgfounder_heads.SEVERAL.items():
        assert tuple(classes) == catalog.task(f"{asked[target]}/{target}").classes, "in the order of the task"


@pytest.mark.parametrize(
    ("target", "label", "place"),
    [
        ("six", "MARKED SINUS BRADYCARDIA", [3]),
        ("six", "RBBB AND LEFT ANTERIOR FASCICULAR BLOCK", [1]),
        ("nine", "NORMAL ECG", [0]),
        ("nine", "OTHERWISE NORMAL ECG", []),
        ("nine", "PREMATURE VENTRICULAR AND FUSION COMPLEXES", [6]),
        ("nine", "ST NO LONGER DEPRESSED IN", []),
        ("nine", "INFERIOR INJURY PATTERN", [8]),
        ("super", "INFERIOR INJURY PATTERN", [2]),
        ("super", "RBBB AND LEFT ANTERIOR FASCICULAR BLOCK", [0]),
        ("super", "BIATRIAL ENLARGEMENT", [1]),
        ("super", "OTHERWISE NORMAL ECG", [3]),
        ("super", "T WAVE INVERSION NO LONGER EVIDENT IN", []),
        ("super", "PROLONGED QT", [4]),
    ],
)
def test_label_of_ecgfounder_makes_its_class_and_no_other(target, label, place):
    outputs = np.zeros((1, 150))
    outputs[0, ecgfounder_heads.labels().index(label)] = 0.7
    (found,) = ecgfounder_heads.probability(target, outputs)
    assert np.flatnonzero(found).tolist() == place and set(found) <= {0, 0.7}


@pytest.mark.slow
def test_heads_of_ecgfounder_on_stored_vectors(folders, encoders):
    name = "PKUDigitalHealth/ECGFounder"
    encoder = encoders(name)
    assert isinstance(encoder, NativeHeads)
    parts = torch.cat([encoder.transform(record(seed=seed)) for seed in range(3)])
    vectors = encoder.encode(parts).numpy()
    with torch.no_grad():
        wanted = torch.sigmoid(encoder.network.network(parts)).numpy()
    np.testing.assert_allclose(encoder.label_probabilities(vectors), wanted, atol=1e-5)
    af = encoder.predict_native("af", [vectors[:1], vectors[1:]])
    assert af.dtype == np.float64
    np.testing.assert_allclose(af, [wanted[0, 5], wanted[1:, 5].mean()], atol=1e-5)
    chosen = [index for index, label in enumerate(ecgfounder_heads.labels()) if label in ecgfounder_heads.TARGETS["cd"]]
    assert len(chosen) == 18
    np.testing.assert_allclose(encoder.predict_native("cd", [vectors[2:]]), wanted[2:, chosen].max(axis=1), atol=1e-5)
    # The head was trained on the mean of the tokens, so it would give invalid output for any other vector.
    assert not isinstance(load(name, folders(name), pooling="max"), NativeHeads)


KED = "control-spiderman/ECGFM-KED"


def test_file_without_ked_weights_is_refused(tmp_path, folders):
    """Check that a loader rejects other tensor names; otherwise, it would silently use a random network."""
    file = next(iter(card(KED).weights))
    content = torch.load(folders(KED) / file, weights_only=True)
    flat = {f"ecg_model.{name}": tensor for name, tensor in content["ecg_model"].items()}
    for wrong in ({**content, "ecg_model": {}}, {"model": content["model"]}, {**content, "ecg_model": None}, flat):
        torch.save(wrong, tmp_path / file)
        with pytest.raises(BadModel, match=r"no table of tensors under 'ecg_model'.*would be random"):
            load(KED, tmp_path)
    torch.save([content["ecg_model"]], tmp_path / file)
    with pytest.raises(BadModel, match="it contains list"):
        load(KED, tmp_path)


@pytest.mark.slow
def test_ked_as_safetensors_with_conflicting_names(tmp_path, folders, encoders):
    file = next(iter(card(KED).weights))
    content = torch.load(folders(KED) / file, weights_only=True)
    state = content["ecg_model"]
    save_file({f"ecg_model.{name}": tensor.clone() for name, tensor in state.items()}, tmp_path / "ked.safetensors")
    parts = encoders(KED).transform(record())
    assert torch.equal(load(KED, tmp_path / "ked.safetensors").encode(parts), encoders(KED).encode(parts))
    state["6.3.convpath.0.1.0.weight"] = state["6.3.convpath.0.1.0.weight"] + 1
    torch.save(content, tmp_path / file)
    with pytest.raises(BadModel, match=r"6\.3\.convpath\.0\.1\.0\.weight and 6\.3\.convs\.1\.0\.weight are one tensor"):
        load(KED, tmp_path)
    state.update({name: tensor for name, tensor in state.items() if "convpath" not in name})
    state["0.0.weight"][0] = torch.nan
    torch.save(content, tmp_path / file)
    with pytest.raises(BadModel, match="NaN or infinite"):
        load(KED, tmp_path)
