"""Test user-written ECG models: the signal form set by file or flags is checked and gives the same result as by hand."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.embeddings.cost import CostMeter
from cardiobench.models.base import leads_of
from cardiobench.models.blocks.signal_settings import SignalSettings, signal_settings
from cardiobench.models.load import load_model
from cardiobench.models.stated import OPTION, Stated
from cardiobench.testing import check_model

CONFIGURATION = """
from transformers import PretrainedConfig
class OwnConfig(PretrainedConfig):
    model_type = "own_ecg"
    def __init__(self, leads=2, **rest):
        super().__init__(**rest)
        self.leads = leads
"""
MODELING = """
import torch
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from .configuration_own import OwnConfig
class OwnModel(PreTrainedModel):
    config_class = OwnConfig
    main_input_name = "signal"
    def __init__(self, config):
        super().__init__(config)
        self.layer = torch.nn.Linear(config.leads, 3)
        self.post_init()
    def forward(self, signal):
        return BaseModelOutput(last_hidden_state=self.layer(signal.transpose(1, 2)))
"""
SIGNAL = {"fs": 100, "seconds": 5, "leads": ["V1", "II"], "scale": 1000}
WEIGHTS = {"layer.weight": torch.arange(6.0).reshape(3, 2), "layer.bias": torch.ones(3)}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "configuration_own.py").write_text(CONFIGURATION)
    (folder / "modeling_own.py").write_text(MODELING)
    auto = {"AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    config = {"model_type": "own_ecg", "architectures": ["OwnModel"], "auto_map": auto, "leads": 2}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(WEIGHTS, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "cardiobench.json").write_text(json.dumps(SIGNAL))
    return folder


def test_signal_format_is_set_by_file_or_flags(folder):
    given = load_model(str(folder), trust_remote_code=True)
    assert leads_of(given.encoder) == ("V1", "II")
    signal = np.random.default_rng(0).normal(size=(1000, 12)).astype(np.float32)
    vector = given.encoder.encode(given.encoder.transform(Ecg(signal, 100)))[0]
    # Compute by hand: leads V1 and II in microvolts, the middle 5 s, through the layer, averaged over time.
    middle = torch.from_numpy(signal[250:750, [LEADS.index("V1"), LEADS.index("II")]] * 1000)
    expected = (middle @ WEIGHTS["layer.weight"].T + 1).mean(dim=0)
    torch.testing.assert_close(vector, expected, rtol=1e-4, atol=1e-3)
    check_model(str(folder), trust_remote_code=True)
    meter = CostMeter(given, torch.device("cpu"))
    meter.count(given.encoder.transform(Ecg(signal, 100)))
    assert meter.counted == {"parameters": 2 * 3 + 3, "flops": 2 * 500 * 2 * 3}, "one layer at each of 500 samples"

    (folder / "cardiobench.json").unlink()
    texts = [f"{key}={json.dumps(value)}" for key, value in SIGNAL.items()]
    flags = RunConfig(preprocessing=texts).preprocessing
    again = load_model(str(folder), trust_remote_code=True, preprocessing=flags)
    assert again.preprocessing == given.preprocessing and again.preprocessing["leads"] == ("V1", "II")
    assert given.setting == "" and again.setting.startswith("preprocessing-"), (
        "results of the two are stored separately"
    )
    with pytest.raises(
        BadModel, match=r"has no image processor.*fs, seconds, leads, scale, layout in cardiobench\.json"
    ):
        load_model(str(folder), trust_remote_code=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fs": -1}, r"own: fs=-1: Input should be greater than 0\. Correct --preprocessing\."),
        ({"leads": ["V9"]}, r"leads=\['V9'\]: Value error, no lead 'V9'"),
        ({"rate": 500}, r"--preprocessing has unknown keys \['rate'\]"),
        ({"seconds": "long"}, "seconds='long': "),
        ({"scale": 0}, r"scale=0: Input should be greater than 0, or Input should be 'standardise'\."),
    ],
)
def test_invalid_signal_formats_are_named(folder, change, message):
    with pytest.raises(BadModel, match=message):
        load_model(str(folder), trust_remote_code=True, preprocessing=change)


def test_registered_model_keeps_its_card():
    with pytest.raises(BadModel, match="has its preprocessing in its card"):
        load_model("cardiobench/ecg-morphology", preprocessing={"fs": 100})


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({"fs": 500}, (1, 12, 5000)),
        ({"fs": 100, "layout": "time_first"}, (1, 1000, 12)),
        ({"fs": 100, "seconds": 4, "length": "windows"}, (2, 12, 400)),
        ({"fs": 250, "seconds": 20, "leads": ("I",)}, (1, 1, 5000)),
    ],
)
def test_shapes(settings, shape):
    assert SignalSettings(**settings)(np.ones((5000, 12)), 500).shape == shape


def test_leads_may_be_text_with_commas():
    def stated(leads):
        return Stated({OPTION: {"fs": 100, "leads": leads}})

    settings = signal_settings(stated(leads="V1,II"), "lab/net")
    assert settings == signal_settings(stated(leads=["V1", "II"]), "lab/net") and settings.leads == ("V1", "II")
    with pytest.raises(BadModel, match="no lead 'V9'"):
        signal_settings(stated(leads="V1,V9"), "lab/net")


def test_standardised_leads_have_no_unit():
    signal = np.random.default_rng(1).normal(size=(5000, 12))
    make = SignalSettings(fs=500, scale="standardise")
    np.testing.assert_allclose(make(signal, 500), make(7 * signal, 500))
