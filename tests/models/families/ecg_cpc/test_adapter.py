"""Check that the settings in the Lightning file of ECG-CPC are skipped and that none of their code runs."""

import sys
import zipfile

import pytest
import torch

from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.models.families.ecg_cpc import network as ecg_cpc
from cardiobench.models.weights import read_weights
from tests.models import drawn
from tests.models.encoders import load
from tests.models.families.ecg_cpc import checkpoint

NAME = "AI4HealthUOL/ECG-CPC"


@pytest.fixture
def shallow(monkeypatch):
    monkeypatch.setattr(ecg_cpc, "LAYERS", 1)


@pytest.mark.slow
def test_settings_in_the_checkpoint_are_skipped(tmp_path, shallow):
    (file,) = checkpoint.ecg_cpc(tmp_path).iterdir()
    content = zipfile.ZipFile(file).read("last_11597276/data.pkl")
    assert b"RNNEncoderConfig" in content and b"omegaconf" in content
    with pytest.raises(Exception, match=r"GLOBAL (clinical_ts|omegaconf)"):
        torch.load(file, weights_only=True)
    assert load(NAME, tmp_path).dim == 512
    assert "clinical_ts" not in sys.modules


def trap(folder, name, kind):
    """Write a weights file that calls a function when a plain unpickler reads it."""

    class Trap:
        def __reduce__(self):
            return run, ("code",)

    with drawn.pretended_classes() as dress:
        run = dress(name, kind)
        torch.save({"state_dict": {"weight": torch.ones(1)}, "trap": Trap()}, folder / "weights.ckpt")
    return folder / "weights.ckpt"


def test_no_class_named_in_settings_is_called(tmp_path):
    calls = []
    kind = type("run", (), {"__new__": lambda *given: calls.append(given)})
    path = trap(tmp_path, "clinical_ts.tools.run", kind)
    with drawn.pretended_classes() as dress:
        dress("clinical_ts.tools.run", kind)
        torch.load(path, weights_only=False)
        assert len(calls) == 1, "a plain unpickler calls it"
        assert set(read_weights([path])) == {"weight"}
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["clinical_tsx.run", "lightningx.run", "tools.clinical_ts.run"])
def test_names_of_other_packages_are_refused(tmp_path, name):
    with pytest.raises(BadModel, match="could run code"):
        read_weights([trap(tmp_path, name, type("run", (), {}))])


def test_missing_resampy_gives_one_message(tmp_path, shallow, monkeypatch):
    folder = checkpoint.ecg_cpc(tmp_path)
    monkeypatch.setitem(sys.modules, "resampy", None)
    with pytest.raises(MissingExtra, match=r"'resampy'. Install it with: pip install 'cardiobench\[resampy\]'$"):
        load(NAME, folder)


@pytest.mark.slow
def test_stored_kernel_lasts_ten_seconds(tmp_path, shallow):
    """Check that tokens of a prefix are a prefix of the tokens: the layers are causal, and the kernel is reused."""
    encoder = load(NAME, checkpoint.ecg_cpc(tmp_path))
    signal = torch.randn(1, 12, 2400, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole, start = encoder.network(signal), encoder.network(signal[..., :600])
    assert (whole.shape, start.shape) == ((1, 1200, 512), (1, 300, 512))
    torch.testing.assert_close(start[:, :299], whole[:, :299], rtol=0, atol=1e-4)
