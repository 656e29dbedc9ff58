"""Comparison of a network with the outputs of its published code for generated weights and inputs."""

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cardiobench.models.weights import load_exactly
from tests.models.golden import Golden, key_hash


@dataclass(frozen=True)
class Case:
    """Network, its mapping of published names, and a function that reads its golden outputs."""

    build: Any
    outputs: Any
    mapping: Any = dict
    formulas: Any = dict  # Fixed tables, which are not among the golden weights.


def inputs(golden):
    """Return every input of a golden file; the recipe states its tag unless it is the default."""
    for one in golden.spec["inputs"]:
        tag = re.search(r"tag='(\w+)'", one["recipe"])
        yield torch.from_numpy(golden.input(one["shape"], tag=tag[1] if tag else "input"))


def bare(case):
    with torch.device("meta"):
        return case.build()


def check_description(case, name):
    """Compare names, shapes and constants of a network with those of the golden file."""
    golden = Golden(name)
    network = bare(case)
    published = {key: torch.zeros(()).expand(shape) for key, shape in golden.shapes.items()}
    own = case.mapping(published)
    shapes = {key: tensor.shape for key, tensor in network.state_dict().items()}
    assert shapes == {key: tensor.shape for key, tensor in own.items()}
    renamed = {id(tensor): key for key, tensor in own.items()}
    names = {key: renamed.get(id(tensor), key) for key, tensor in published.items()}
    golden.check_facts(network, lambda module: names.get(f"{module}.weight", module).removesuffix(".weight"))


def check_outputs(case, name):
    """Compare the outputs of a network with those of the golden file."""
    golden = Golden(name)
    network = bare(case)
    load_exactly(network, case.mapping({**golden.weights, **golden.counters, **golden.kept, **case.formulas()}), name)
    with torch.inference_mode():
        golden.check(case.outputs(network.eval(), *inputs(golden)))


def check_published(build, parameters, names):
    """Compare the number of parameters, and the hash of all names and shapes, with those of the published code."""
    with torch.device("meta"):
        network = build()
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    shapes = {key: tensor.shape for key, tensor in network.state_dict().items()}
    assert key_hash(shapes) == names


def check_token_shape(build, read, signal, tokens):
    """Check the shape of the tokens of a signal on the meta device."""
    with torch.device("meta"):
        network = build().eval().to("meta")
        got = read(network, torch.zeros(signal)).shape
    assert got == tokens


def unfilled(make):
    """Build a network without drawing initial weights, which would take longer than the test."""
    with torch.device("meta"):
        network = make()
    return network.to_empty(device="cpu")


def drawn(network: nn.Module, seed: int = 0) -> nn.Module:
    """Randomise every tensor, including tables and scales that start at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in network.parameters():
            wide = tensor.ndim > 1
            tensor.normal_(0 if wide else 0.5, 1 / tensor[0].numel() ** 0.5 if wide else 0.2, generator=generator)
    return network.eval()


def clips(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def check_size(make, tensors, numbers):
    """Check how many tensors and parameters a network has."""
    with torch.device("meta"):
        network = make()
    assert len(network.state_dict()) == tensors
    assert sum(tensor.numel() for tensor in network.parameters()) == numbers
