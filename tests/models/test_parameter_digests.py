"""Check that a user's model is identified by all its parameter values and the code of its parts."""

import functools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cardiobench.models.custom import BaseEncoder, find_custom, identity, loaded
from cardiobench.models.held import held_by

ALIKE = torch.arange(6.0).reshape(2, 3)


def network(weight=ALIKE):
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.zero_()
    return layer


def closure(value):
    return lambda parts: value(parts)


class Slotted:
    __slots__ = ("net",)

    def __init__(self, net):
        self.net = net


class Unregistered(torch.nn.Module):
    """Model with layers in a plain list, which torch does not register."""

    def __init__(self, net):
        super().__init__()
        self.layers = [net]


class Buffered(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.register_buffer("hidden", net.weight.detach().clone(), persistent=False)


WRAPPED = {
    "attribute": lambda net: net,
    "list": lambda net: [0, [net]],
    "dictionary": lambda net: {"a": {"b": (net,)}},
    "set": lambda net: {net},
    "object": lambda net: SimpleNamespace(inner=SimpleNamespace(net=net)),
    "slots": Slotted,
    "partial": lambda net: functools.partial(print, net),
    "bound method": lambda net: net.forward,
    "method of a tensor": lambda net: net.weight.detach().mul,
    "closure": closure,
    "plain list of a module": Unregistered,
    "buffer that is not saved": Buffered,
    "sequence": lambda net: torch.nn.Sequential(torch.nn.ReLU(), net),
    "script": torch.jit.script,
    "tensor": lambda net: net.weight.detach(),
    "state": lambda net: net.state_dict(),
    "array": lambda net: net.weight.detach().numpy(),
    "bfloat16": lambda net: net.weight.detach().bfloat16(),
    "sparse": lambda net: net.weight.detach().to_sparse(),
    "transposed": lambda net: net.weight.detach().T,
    "conjugated": lambda net: net.weight.detach().to(torch.complex64).conj(),
    "object array": lambda net: np.array([net.weight.detach().numpy(), None], dtype=object),
    "quantised": lambda net: torch.quantize_per_tensor(net.weight.detach(), 0.1, 0, torch.qint8),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WRAPPED)
def test_changed_weights_are_detected_in_any_attribute(kind):
    def values(weight):
        return held_by(SimpleNamespace(given=WRAPPED[kind](network(weight)))).values

    changed = ALIKE.clone()
    changed[1, 2] += 0.5
    assert values(ALIKE) == values(ALIKE) != values(changed) != ""


def test_moved_or_cast_values_are_different():
    places = [{"a": ALIKE, "b": ALIKE + 1}, {"a": ALIKE + 1, "b": ALIKE}, {"a": ALIKE.T, "b": ALIKE + 1}]
    places.append({"a": ALIKE.view(torch.int32), "b": ALIKE + 1})
    assert len({held_by(one).values for one in places}) == 4
    assert held_by({"b": ALIKE + 1, "a": ALIKE}).values == held_by(places[0]).values


def test_counters_and_cached_outputs_are_ignored():
    with torch.inference_mode():
        output = network()(torch.ones(1, 3))
    plain, used = SimpleNamespace(net=network(), calls=0), SimpleNamespace(net=network(), calls=7, last=output)
    assert held_by(plain).values == held_by(used).values


def test_circles_and_layers_without_values():
    inner = SimpleNamespace(lazy=torch.nn.LazyLinear(2), meta=torch.ones(2, device="meta"))
    inner.outer = SimpleNamespace(inner=inner)
    assert held_by(inner).values


@pytest.mark.slow
def test_large_network_takes_no_time():
    import time

    net = torch.nn.Sequential(*(torch.nn.Linear(4000, 4000) for _ in range(19)))  # 304 million numbers.
    started = time.perf_counter()
    assert held_by(SimpleNamespace(net=net)).values
    assert time.perf_counter() - started < 5


SOURCE = """
import torch
import my_network
from cardiobench import BaseEncoder
from cardiobench.data.media import Ecg

SHARED = torch.ones(2)

def helper():
    return SHARED

class Mine(BaseEncoder):
    name = "lab/mine"

    def __init__(self):
        self.network = my_network.Net()

    def transform(self, recording: Ecg):
        return torch.from_numpy(recording.signal[:1].copy())

    def encode(self, parts):
        return parts + helper()[0]
"""
NETWORK = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.load(WEIGHTS))

    def forward(self, x):
        return 2 * x
"""


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    """Write the two files and the weights of a model, and return its identity."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def known(source=SOURCE, network=NETWORK, weight=1.0):
        torch.save(torch.tensor([weight]), tmp_path / "weights.pt")
        (tmp_path / "mine.py").write_text(source)
        (tmp_path / "my_network.py").write_text(network.replace("WEIGHTS", repr(str(tmp_path / "weights.pt"))))
        sys.modules.pop("my_network", None)
        one = find_custom(f"{tmp_path / 'mine.py'}:Mine")()
        return identity(one), one.revision

    yield known
    sys.modules.pop("my_network", None)


def test_comments_count_in_neither_file(encoder):
    assert encoder(SOURCE + "# a comment\n", NETWORK.replace("2 * x", "2 * x  # twice")) == encoder()


@pytest.mark.parametrize(
    "changed",
    [
        {"weight": 1.5},
        {"network": NETWORK.replace("2 * x", "3 * x")},
        {"source": SOURCE.replace("[:1]", "[1:2]")},
        {"source": SOURCE.replace("torch.ones(2)", "torch.zeros(2)")},
    ],
)
def test_changed_network_weight_or_global_counts(encoder, changed):
    (before, revision), (after, another) = encoder(), encoder(**changed)
    assert before != after and revision != another


class Counted(BaseEncoder):
    name = "lab/counted"
    computed = 0

    def transform(self, recording):
        return torch.zeros(1, 2)

    def encode(self, parts):
        return parts

    @property
    def revision(self):
        Counted.computed += 1
        return super().revision


def test_revision_is_computed_once_when_a_model_is_loaded():
    loaded(Counted(), "class Counted", "fp32", torch.device("cpu"))
    assert Counted.computed == 1
