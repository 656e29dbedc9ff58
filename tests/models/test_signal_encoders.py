"""Load every ECG family from a synthetic checkpoint, and reject every damaged one."""

import json

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.models.base import Encoder, leads_of
from cardiobench.models.cards import card
from tests.models.checkpoints import ENCODER_FILES, FAMILIES
from tests.models.encoders import load, record

LARGE = {name for family in FAMILIES.values() if family.large for name in family.checkpoints}
MODELS = [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in ENCODER_FILES]
USED = {name: leads for family in FAMILIES.values() for name, leads in family.leads.items()}
NORMED = {name for family in FAMILIES.values() for name in family.normed}
POOLED = [name for name in ENCODER_FILES if {"last", "max"} <= {*card(name).poolings} and name not in {*LARGE, *NORMED}]
PARTS = {name: shape for family in FAMILIES.values() for name, shape in family.parts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_from_checkpoint_to_vectors(encoders, name):
    encoder, model = encoders(name), card(name)
    assert isinstance(encoder, Encoder)
    assert (encoder.name, encoder.modalities, encoder.sampling) == (name, ("ecg",), None)
    assert leads_of(encoder) == USED.get(name, LEADS)
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
@pytest.mark.parametrize("name", POOLED)
def test_poolings(folders, encoders, name):
    parts = encoders(name).transform(record())[:1]
    with torch.no_grad():
        tokens = encoders(name).network(parts)[0]
    wanted = {"mean": tokens.mean(0), "last": tokens[-1], "max": tokens.max(0).values, "tokens": tokens}
    for pooling, vector in wanted.items():
        got = load(name, folders(name), pooling=pooling)
        torch.testing.assert_close(got.encode(parts)[0], vector)
        assert got.preprocessing["pooling"] == pooling


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


@pytest.mark.parametrize("name", ENCODER_FILES)
@pytest.mark.parametrize("change", [missing, unexpected, wrong_shape])
def test_mismatched_weights(tmp_path, name, change):
    folder = ENCODER_FILES[name](tmp_path, change)
    with pytest.raises(BadModel, match=f"1 {change.__name__.replace('_', ' ')}: .*Nothing was loaded"):
        load(name, folder)


@pytest.mark.parametrize("name", ENCODER_FILES)
def test_truncated_and_absent_files(tmp_path, folders, name):
    with pytest.raises(BadModel, match="has no weights"):
        load(name, tmp_path)
    for file in folders(name).iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content if file.suffix == ".json" else content[: len(content) // 2])
    with pytest.raises(BadModel, match="truncated"):
        load(name, tmp_path)


@pytest.mark.parametrize(
    "name", [name for name in ENCODER_FILES if not next(iter(card(name).weights)).endswith(".safetensors")]
)
def test_pickle_that_would_run_code(tmp_path, name):
    class Evil:
        def __reduce__(self):
            return print, ("code ran",)

    torch.save({"model": {}, "trap": Evil()}, tmp_path / next(iter(card(name).weights)))
    with pytest.raises(BadModel, match="could run code"):
        load(name, tmp_path)
