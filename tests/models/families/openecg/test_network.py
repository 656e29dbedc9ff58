"""Compare the openecg codec with the network and the weights of the package."""

import warnings
from importlib.metadata import distribution

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.data import open_dataset
from cardiobench.models import files
from cardiobench.models.cards import card
from cardiobench.models.families.openecg import adapter, network
from cardiobench.models.load import load_model
from cardiobench.models.weights import load_exactly, read_part
from tests.models.checkpoints import change_card
from tests.models.families.openecg.checkpoint import NAME, UNTRAINED, codec


@pytest.fixture(scope="module")
def package():
    """Return the network of the package with its weights, and ours with the same weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nn.TransformerEncoder announces that it does not nest tensors.
        import openecg

        theirs = openecg.load_codec()
    path = next(
        distribution("openecg").locate_file(one) for one in distribution("openecg").files if one.name == "codec_v6.pt"
    )
    ours = network.OpenEcgCodec()
    load_exactly(ours, network.published_keys(read_part(path, "model_state")), NAME)
    return theirs, ours.eval()


def differences(package, records):
    """Return the largest differences of both networks: their input, and the logits of the heads for leads I, II, V1, V5."""
    from openecg.dsp import rank_normalize

    from cardiobench.data.media.resample import resample

    theirs, ours = package
    source, worst = open_dataset("ptb_xl_sample"), np.zeros(2)
    for number in records:
        ecg = source.recording(number)
        at_500 = resample(ecg.signal.astype(np.float64), ecg.fs, 500)[:, [0, 1, 6, 10]]
        wanted = np.stack([rank_normalize(lead.astype(np.float32)) for lead in at_500.T])
        got = adapter.prepare(ecg.signal.astype(np.float64), ecg.fs)[0].astype(np.float32)
        with torch.inference_mode():
            heads = zip(
                ours(torch.from_numpy(got)), theirs(torch.from_numpy(wanted), torch.zeros(4).long()), strict=True
            )
            logits = max(float((one - other).abs().max()) for one, other in heads)
        worst = np.maximum(worst, [np.abs(got - wanted).max(), logits])
    return worst


def test_network_equals_that_of_the_package(package):
    signal, logits = differences(package, [0])
    assert signal == 0 and logits < 1e-4


@pytest.mark.slow
def test_network_equals_that_of_the_package_on_50_ecgs(package):
    signal, logits = differences(package, range(0, 350, 7))
    assert signal == 0 and logits < 1e-4


def test_installed_package_is_loaded_without_being_imported(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openecg", None)
    model = load_model(NAME)
    assert model.weight_files == dict(card(NAME).weights) and model.encoder.dim == 512


def test_table_of_positions_is_that_of_the_checkpoint(package):
    torch.testing.assert_close(network.positions(), package[0].pos_enc, rtol=0, atol=1e-4)


def test_vectors_of_leads_stand_side_by_side(package):
    signal = torch.rand(2, 4, 5000, generator=torch.Generator().manual_seed(0)) * 2 - 1
    with torch.inference_mode():
        tokens = package[1].side_by_side(signal)
        assert tokens.shape == (2, 500, 512)
        torch.testing.assert_close(tokens[1, :, 256:384], package[1].tokens(signal[1, 2:3])[0], rtol=0, atol=1e-5)


def test_other_weights_of_the_package_are_refused(monkeypatch, tmp_path):
    """Install another version, whose weights differ."""

    class Installed:
        name, version = "openecg", "0.12.0"
        files = (tmp_path / "models" / "codec_v6.pt",)

        def locate_file(self, file):
            return file

    (tmp_path / "models").mkdir()
    codec(tmp_path / "models")
    monkeypatch.setattr(files, "distribution", lambda name: Installed())
    with pytest.raises(BadModel) as caught:
        load_model(NAME)
    said = str(caught.value)
    assert card(NAME).weights["codec_v6.pt"] in said and files.sha256_of_file(Installed.files[0]) in said
    assert "Version 0.12.0 of the package is installed: pip install 'openecg==0.11.0'" in said
    change_card(monkeypatch, NAME)
    assert load_model(NAME).encoder.dim == 512, "another version with the same weights is the same model"
    Installed.files = ()
    with pytest.raises(BadModel, match=r"the installed openecg 0\.12\.0 does not contain codec_v6\.pt"):
        load_model(NAME)


def test_missing_package_is_named_with_its_extra(monkeypatch):
    def none(name):
        raise files.PackageNotFoundError(name)

    monkeypatch.setattr(files, "distribution", none)
    with pytest.raises(MissingExtra, match=r"needs the package 'openecg==0\.11\.0'.*cardiobench\[pretrained\]"):
        load_model(NAME)


def test_untrained_network_has_three_seeds():
    made = [load_model(UNTRAINED, variant=seed) for seed in card(UNTRAINED).variants]
    assert len({model.encoder.revision for model in made}) == 3
    again = load_model(UNTRAINED).encoder
    assert again.revision == made[0].encoder.revision
    names = {name: tuple(one.shape) for name, one in again.network.network.state_dict().items()}
    assert names == {name: tuple(one.shape) for name, one in network.OpenEcgCodec().state_dict().items()}
    with FlopCounterMode(display=False) as flops:
        again.encode(torch.zeros(1, 4, 5000))
    assert flops.get_total_flops() == card(UNTRAINED).flops == card(NAME).flops
