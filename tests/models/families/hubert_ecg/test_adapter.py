"""Test sizes, settings and windows of HuBERT-ECG."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cardiobench.core.errors import BadModel
from cardiobench.models.detect import detect
from cardiobench.models.families.hubert_ecg import adapter as hubert_ecg
from cardiobench.models.files import given_files
from tests.models.encoders import load, record
from tests.models.families.hubert_ecg import checkpoint


def test_requested_variant_is_used(folders):
    name = "Edoardo-BS/hubert-ecg-small"
    first = load(name, folders(name), variant="first").transform(record(12))
    every = load(name, folders(name), variant="mean").transform(record(12))
    assert (len(first), len(every)) == (1, 2)
    assert torch.equal(first[0], every[0])


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
    with pytest.raises(BadModel, match="width 64; expected one of 512, 768, 960"):
        hubert_ecg.config({}, {"encoder.layer_norm.weight": torch.zeros(64)}, "x")
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(BadModel, match="missing"):
        load("Edoardo-BS/hubert-ecg-large", tmp_path)


def test_hubert_ecg_with_contradictory_settings(tmp_path):
    folder = checkpoint.hubert(tmp_path)
    (folder / "config.json").write_text(json.dumps({**checkpoint.TINY_HUBERT, "conv_kernel": [10, 3]}))
    with pytest.raises(BadModel, match=r"config\.json does not describe a network"):
        load("Edoardo-BS/hubert-ecg-small", folder)


def test_hubert_ecg_needs_no_remote_code(tmp_path):
    config = {"model_type": "hubert_ecg", "auto_map": {"AutoModel": "hubert_ecg.HuBERTECG"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert detect(given_files("mine", tmp_path)).rule == (
        "config.json has model_type 'hubert_ecg' -> the adapter of Edoardo-BS/hubert-ecg-base"
    )


def test_scales_use_present_leads():
    signal = np.zeros((5000, 12))
    wave = np.sin(np.arange(5000) / 20)
    signal[:, 0] = wave
    scaled = hubert_ecg.preprocessed(signal, 500, present=[0])
    assert not scaled[:, 1:].any() and np.allclose(hubert_ecg.preprocessed(signal, 500)[:, 1:], -1)
    middle = record().signal.astype(np.float64)
    parts = hubert_ecg.prepare(middle, 500, "mean", present=[1, 6]).reshape(-1, 12, 500)
    assert parts[:, [1, 6]].all() and not np.delete(parts, [1, 6], axis=1).any(), "nor where leads meet"
