"""Test sizes, the register and leads of the ECG-JEPA of Weimann."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadModel
from cardiobench.models.families.ecg_jepa_weimann import adapter as ecg_jepa_weimann
from tests.models.encoders import load, record
from tests.models.families.ecg_jepa_weimann import checkpoint


def test_register_of_weimann_is_its_cls_token(folders):
    name = "kweimann/ECG-JEPA"
    encoder = load(name, folders(name), pooling="cls")
    parts = encoder.transform(record())
    with torch.no_grad():
        register = encoder.network.network.with_register(parts)[:, 0]
    assert torch.equal(encoder.encode(parts), register)


@pytest.mark.parametrize("name", ["S", pytest.param("B", marks=pytest.mark.slow)])
def test_size_of_weimann_by_its_weights(tmp_path, name):
    folder = checkpoint.jepa_weimann(tmp_path, size=name)
    assert load("kweimann/ECG-JEPA", folder).dim == {"S": 384, "B": 768}[name]


def test_unpublished_size_of_weimann_is_refused(tmp_path):
    torch.save({"model": {"target_encoder.norm.weight": torch.ones(100)}}, tmp_path / "ecg_jepa_weimann.pt")
    with pytest.raises(BadModel, match="the embedding width is 100; expected one of 192, 384, 768"):
        load("kweimann/ECG-JEPA", tmp_path)


def test_scales_use_present_leads():
    signal = np.zeros((5000, 12))
    wave = np.sin(np.arange(5000) / 20)
    signal[:, 0] = wave
    fixed = ecg_jepa_weimann.prepare(signal, 500, "ptb_xl", present=[0])[0]
    assert not fixed[1:].any() and ecg_jepa_weimann.prepare(signal, 500, "ptb_xl")[0, 1:].any()
