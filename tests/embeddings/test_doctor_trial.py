"""Check that doctor reports every usual mistake in user models, and nothing for a correct model."""

import json

import pytest
import torch

from cardiobench.cli.main import main
from cardiobench.models.custom import BaseEncoder, networks_of

LAB = """
import torch
from cardiobench import BaseEncoder
from cardiobench.data.media import Clip, Ecg


class Mine(BaseEncoder):
    name = "lab/mine"

    def __init__(self):
        torch.manual_seed(0)
        parts = torch.nn.Conv1d(12, 8, 9), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.AdaptiveAvgPool1d(1)
        self.network = torch.nn.Sequential(*parts, torch.nn.Flatten())

    def transform(self, recording: Ecg):
        return torch.from_numpy(recording.signal[:2500].T.copy())[None]

    def encode(self, parts):
        return self.network(parts)


class Training(Mine):
    def to(self, device):
        return self


class TimeFirst(Mine):
    def transform(self, recording: Ecg):
        return torch.from_numpy(recording.signal)


class AsLong(Mine):
    count = 0

    def transform(self, recording: Ecg):
        AsLong.count += 1
        return super().transform(recording)[..., : 2500 - AsLong.count]


class Half(Mine):
    def encode(self, parts):
        return self.network(parts).half()


class Infinite(Mine):
    def encode(self, parts):
        return self.network(parts) / 0


class OtherLeads(Mine):
    def encode(self, parts):
        return self.network(parts[:, :3])


class Random(Mine):
    def encode(self, parts):
        return torch.rand(len(parts), 4)


class Echo(BaseEncoder):
    name = "lab/echo"

    def transform(self, recording: Clip):
        return torch.from_numpy(recording.frames).float().mean((1, 2))

    def encode(self, parts):
        return parts
"""


@pytest.fixture
def doctor(tmp_path, capsys):
    (tmp_path / "lab.py").write_text(LAB)

    def run(kind, *more):
        code = main(["doctor", "--model", f"{tmp_path / 'lab.py'}:{kind}", "--json", *more])
        return code, {one["what"]: one for one in json.loads(capsys.readouterr().out)["trial"]}

    return run


def test_valid_model_has_no_findings(doctor):
    code, lines = doctor("Mine")
    assert code == 0 and all(one["good"] for one in lines.values())
    assert lines["ecg: recording"]["found"] == "signal (5000, 12) float32 at 500 Hz"
    assert lines["ecg: transform"]["found"] == "(1, 12, 2500) float32"
    assert lines["ecg: encode"]["found"] == "(1, 8) float32"
    assert lines["mode of the network"]["found"] == "evaluation"
    # A convolution of 12 leads, 8 filters and 9 samples at 2492 positions, with one multiplication and one addition each.
    assert lines["ecg: work"]["found"] == f"888 parameters, {2 * 12 * 8 * 9 * 2492 / 1e6:.2f} MFLOPs per recording"
    assert lines["ecg: time per recording"]["found"].endswith("to encode on cpu")


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        ("Training", {"mode of the network", "ecg: the same again"}, "training mode"),
        ("TimeFirst", {"ecg: stopped"}, "signal.T[None]"),
        ("AsLong", {"ecg: transform of another recording"}, "(P, 12, 24"),
        ("Half", {"ecg: encode"}, "float16"),
        ("Infinite", {"ecg: values"}, "NaN or infinite"),
        ("OtherLeads", {"ecg: stopped"}, "to have 12 channels"),
        ("Random", {"ecg: the same again"}, "encoded again"),
    ],
)
def test_each_mistake_is_marked(doctor, kind, wrong, said):
    code, lines = doctor(kind)
    marked = {what for what, one in lines.items() if not one["good"]}
    assert code == 1 and wrong <= marked, marked
    assert any(said in one["found"] for what, one in lines.items() if what in wrong)


def test_echo_and_quick(doctor, tmp_path):
    code, lines = doctor("Echo")
    assert code == 0 and lines["echo: recording"]["found"].endswith("3) uint8")
    assert lines["network"]["found"] == "no torch network is held in an attribute"
    assert doctor("Mine", "--quick") == (0, {})


def test_networks_of_an_encoder_are_moved_and_evaluated():
    class Several(BaseEncoder):
        name = "lab/several"

        def __init__(self):
            self.one, self.others = torch.nn.Dropout(), [torch.nn.Dropout(), 3]
            self.named, self.none = {"x": torch.nn.Linear(2, 2)}, None

        def transform(self, recording):
            """Return nothing."""

        def encode(self, parts):
            """Return nothing."""

    encoder = Several()
    assert len(networks_of(encoder)) == 3 and all(one.training for one in networks_of(encoder))
    assert encoder.to(torch.device("meta")) is encoder
    assert not any(one.training for one in networks_of(encoder))
    assert encoder.named["x"].weight.device.type == "meta"
