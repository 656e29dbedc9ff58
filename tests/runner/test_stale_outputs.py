"""Check user models for stale results: a run only reuses outputs that the model still gives."""

import sys
from io import StringIO

import pytest
import rich.console
import torch

import cardiobench
from cardiobench.cli.output import print_results
from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import BadModel
from cardiobench.data.media import Ecg
from cardiobench.data.twin import write_twin
from cardiobench.runner.run import run

TASK = "ptb_xl_sample/cd"


class Spread(cardiobench.BaseEncoder):
    """Encoder that returns standard deviations of the leads, mixed by `mix`."""

    name = "lab/spread"

    def __init__(self, mix=None):
        self.mix = mix

    def transform(self, recording: Ecg) -> torch.Tensor:
        return torch.from_numpy(recording.signal).float().std(dim=0, keepdim=True)

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        return parts if self.mix is None else self.mix(parts)


class Session:
    """Parameters that are invisible from outside, such as those of an ONNX session."""

    __slots__ = ()
    factors: dict = {}

    def __call__(self, parts):
        return parts * float(self.factors["file"].read_text())


@pytest.fixture
def evaluated(tmp_path):
    """Evaluate an encoder; return the summary of the run and its output."""

    def evaluate(*encoders, models=()):
        console, text = Console(), StringIO()
        console.out = console.err = rich.console.Console(file=text, width=300)
        folders = {"output_dir": tmp_path / "out", "cache_dir": tmp_path / "cache"}
        config = RunConfig(models=models, tasks=(TASK,), protocols=("knn",), workers=0, resamples=20, **folders)
        summary = run(config, console, encoders)
        print_results(console, summary.results, summary.is_earlier, place="report.md")
        return summary, text.getvalue()

    return evaluate


def linear(scale):
    layer = torch.nn.Linear(12, 8)
    with torch.no_grad():
        layer.weight.copy_(scale * torch.arange(96.0).reshape(8, 12) / 96)
        layer.bias.zero_()
    return layer


def key(summary):
    return summary.results[0].stamp["embeddings"]


@pytest.mark.slow
def test_equal_values_are_reused_and_others_encoded(evaluated):
    first, said = evaluated(Spread(linear(1.0)))
    assert "taken from an earlier run" not in said
    again, said = evaluated(Spread(linear(1.0)))
    assert again.is_earlier(again.results[0]) and key(again) == key(first)
    plan, results = said.split("results")
    assert "393, taken from an earlier run" in plan and "taken from an earlier run" in results
    assert again.to_json()["from_earlier_run"] == [0] and first.to_json()["from_earlier_run"] == []
    other, said = evaluated(Spread(linear(2.0)))
    assert key(other) != key(first) and "taken from" not in said
    assert first.results[0].model["revision"] != other.results[0].model["revision"]


@pytest.mark.slow
def test_changed_settings_start_a_new_store(evaluated, tmp_path):
    Session.factors["file"] = tmp_path / "factor.txt"
    Session.factors["file"].write_text("1.0")
    first, _ = evaluated(Spread(Session()))
    Session.factors["file"].write_text("3.0")
    other, said = evaluated(Spread(Session()))
    assert key(other) != key(first) and not other.earlier
    assert "! lab/spread no longer gives the embeddings in" in said and "All recordings are encoded again" in said
    again, said = evaluated(Spread(Session()))
    assert key(again) == key(other) and again.earlier and "no longer gives" not in said
    Session.factors["file"].write_text("1.0")
    back, said = evaluated(Spread(Session()))
    assert key(back) == key(first) and "no longer gives" not in said


@pytest.mark.slow
def test_unencodable_model_stops_no_others(evaluated):
    class Noisy(Spread):
        name = "lab/noisy"

    with pytest.raises(BadModel, match="encoded again"):
        evaluated(Noisy(lambda parts: parts + torch.randn_like(parts)))
    summary, _ = evaluated(Noisy(lambda parts: parts + torch.randn_like(parts)), Spread())
    ((name, _, what, reason),) = summary.failures
    assert (name, what) == ("lab/noisy", "model") and "encoded again" in reason
    assert [result.model["name"] for result in summary.results] == ["lab/spread"]


SOURCE = """
from my_stale_network import Net
from cardiobench import BaseEncoder
from cardiobench.data.media import Ecg
from cardiobench.data.twin import write_twin
import torch

class Mine(BaseEncoder):
    name = "lab/mine"

    def __init__(self):
        self.network = Net().eval()

    def transform(self, recording: Ecg):
        return torch.from_numpy(recording.signal).float().std(dim=0, keepdim=True)

    def encode(self, parts):
        return self.network(parts)
"""
NETWORK = """
import torch
from pathlib import Path

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.load(Path(__file__).with_name("weights.pt")))

    def forward(self, x):
        return self.scale * x
"""


@pytest.mark.slow
def test_changed_network_in_an_imported_file_and_a_changed_weights_file(evaluated, tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE)

    def of(network, weight):
        (tmp_path / "my_stale_network.py").write_text(network)
        torch.save(torch.tensor([weight]), tmp_path / "weights.pt")
        sys.modules.pop("my_stale_network", None)
        return evaluated(models=(f"{tmp_path / 'mine.py'}:Mine",))[0]

    first = of(NETWORK, 2.0)
    assert of(NETWORK.replace("scale * x", "scale * x  # a comment"), 2.0).earlier
    keys = [key(of(NETWORK.replace("self.scale * x", "self.scale * x * x"), 2.0)), key(of(NETWORK, 2.5))]
    assert len({key(first), *keys}) == 3
    sys.modules.pop("my_stale_network", None)


@pytest.mark.slow
def test_replaced_recordings_are_encoded_and_scored_again(tmp_path):
    """Swap files of the release, so that tables and labels are unchanged but scores belong to other signals."""
    write_twin("ptb_xl", tmp_path / "twin", patients=24)
    settings = {"tasks": ("ptb_xl/sex",), "protocols": ("knn",), "workers": 0, "resamples": 20}
    folders = {"data_dir": tmp_path / "twin", "output_dir": tmp_path / "out", "cache_dir": tmp_path / "cache"}

    def evaluate(**changed):
        config = RunConfig(**{**settings, **folders, **changed})
        (result,) = (summary := run(config, Console(False), (Spread(),))).results
        return summary.is_earlier(result), result.score.value, result.stamp["key"]

    before = evaluate()
    assert evaluate() == (True, *before[1:])
    signals = sorted(tmp_path.rglob("*_lr.dat"))
    contents = [path.read_bytes() for path in signals]
    for path, content in zip(signals, [*contents[7:], *contents[:7]], strict=True):
        path.write_bytes(content)
    earlier, value, again = evaluate()
    assert not earlier and again == before[2], "a key is the same on every machine"
    assert value == evaluate(output_dir=tmp_path / "fresh", cache_dir=tmp_path / "other")[1] != before[1]
