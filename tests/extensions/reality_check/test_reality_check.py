"""Test the condition `reality_check`: raw crops for models that were trained on them, as a separate result."""

import sys

import numpy as np
import pytest
import torch

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, MissingExtra, NotApplicable
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.extensions.reality_check import condition
from cardiobench.models.load import load_model
from cardiobench.runner.run import run
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks

CROPS = {
    "vuno/ST-MEM": (600, 4, "2.4 s at 250 Hz"),
    "AI4HealthUOL/ECG-CPC": (600, 4, "2.5 s at 240 Hz"),
    "PKUDigitalHealth/ECGFounder": (1250, 4, "2.5 s at 500 Hz"),
    "control-spiderman/ECGFM-KED": (5000, 1, "10 s at 500 Hz"),
}
CROPS = {name: crops for name, crops in CROPS.items() if name in CHECKPOINTS}


def needs(name):
    """Skip a test of a model whose family was deleted."""
    return pytest.mark.skipif(name not in CHECKPOINTS, reason="a family of models that was deleted here")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Return a factory of models with small random weights, and the folder of their files."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("checkpoint") / "files"
            folder.mkdir()
            with pytest.MonkeyPatch.context() as patch, smaller_networks():
                change_card(patch, name)
                files = CHECKPOINTS[name](folder)
                made[name] = load_model(name, weights=files), files
        return made[name]

    return make


def waves(fs: float, seconds: float = 10.0) -> Ecg:
    """Return sines of 3 Hz, 1 mV high in lead I and 0.1 mV more in each further lead, on a baseline of 2 mV."""
    time = np.arange(round(seconds * fs))[:, None] / fs
    height = 1 + 0.1 * np.arange(12)
    return Ecg((2 + height * np.sin(2 * np.pi * 3 * time)).astype(np.float32), fs)


@pytest.mark.slow
@pytest.mark.parametrize("name", CROPS)
def test_crops_are_raw(checkpoint, name):
    samples, count, fact = CROPS[name]
    usual, _ = checkpoint(name)
    model = condition.model(usual, "")
    parts = model.encoder.transform(waves(500)).numpy()
    assert parts.shape == (count, 12, samples)
    seconds = float(fact.split()[0])
    time = seconds * np.arange(count)[:, None] + np.arange(samples) / float(fact.split()[3])
    wanted = 2 + 1.3 * np.sin(2 * np.pi * 3 * time)
    np.testing.assert_allclose(parts[:, 3, 30:-30], wanted[:, 30:-30], atol=0.02)
    assert model.preprocessing["raw_crops"] == model.encoder.preprocessing["raw_crops"] == fact
    assert fact in model.warnings[-1]
    assert "raw_crops" not in usual.preprocessing and usual.encoder.transform(waves(500)).shape[-1] != samples
    assert torch.isfinite(model.encoder.encode(torch.from_numpy(parts))).all()


@needs("AI4HealthUOL/ECG-CPC")
@pytest.mark.parametrize(("fs", "seconds"), [(257, 10), (1000, 10), (100, 1.5)])
def test_crops_of_any_rate_and_length_have_one_shape(checkpoint, fs, seconds):
    model = condition.model(checkpoint("AI4HealthUOL/ECG-CPC")[0], "")
    parts = model.encoder.transform(waves(fs, seconds))
    assert parts.shape == (4 if seconds == 10 else 1, 12, 600)
    assert seconds == 10 or not parts[0, :, 360:].any(), "a short record is padded with zeros"


@needs("vuno/ST-MEM")
def test_fewer_leads_of_raw_crops(checkpoint):
    model, _ = checkpoint("vuno/ST-MEM")
    crops = model.encoder.with_leads(("II", "V6")).raw_crops(waves(500).signal, 500)
    whole = model.encoder.raw_crops(waves(500).signal, 500)
    np.testing.assert_array_equal(crops, whole[:, [LEADS.index("II"), LEADS.index("V6")]])


@needs("vuno/ST-MEM")
def test_missing_resampy_gives_one_message(checkpoint, monkeypatch):
    model, _ = checkpoint("vuno/ST-MEM")
    monkeypatch.setitem(sys.modules, "resampy", None)
    with pytest.raises(MissingExtra, match=r"pip install 'cardiobench\[resampy\]'"):
        condition.model(model, "")


def test_models_not_trained_on_raw_crops_are_not_applicable():
    with pytest.raises(NotApplicable, match="minirocket"):
        condition.model(load_model("cardiobench/minirocket"), "")
    with pytest.raises(BadConfig, match="takes no value"):
        condition.check(RunConfig(), "2")


@pytest.mark.slow
@needs("vuno/ST-MEM")
def test_raw_and_standard_inputs_are_compared(checkpoint, tmp_path, monkeypatch):
    name = "vuno/ST-MEM"
    _, files = checkpoint(name)
    change_card(monkeypatch, name)
    found = {}
    with smaller_networks():
        for asked in ((), ("reality_check",)):
            outcome = run(
                RunConfig(
                    models=(name,), weights=files, tasks=("phantom_ecg/cd",), protocols=("probe",), conditions=asked, limit=4,
                    output_dir=tmp_path / "results", cache_dir=tmp_path / "cache", batch_size=4, resamples=20, workers=0, jobs=1,
                )
            )  # fmt: skip
            assert not outcome.failures and not outcome.not_applicable
            (found[asked],) = outcome.results
    raw = found["reality_check",]
    assert raw.options["raw_crops"] == "2.4 s at 250 Hz" and "raw_crops" not in found[()].options
    assert raw.stamp["key"] != found[()].stamp["key"]
    assert len(list((tmp_path / "results").rglob("*cd*.json"))) >= 2
