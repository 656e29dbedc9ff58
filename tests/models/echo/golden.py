"""Reference weights, inputs and outputs of the published code, from the folder beside the checkout."""

import ast
import importlib.util
import re
from functools import cached_property
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

SALT = "A"


def module(folder: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"golden_{name}", folder / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Golden:
    """One golden file: `spec` (its JSON), `arrays`, weights and inputs made from its recipe."""

    def __init__(self, shared: Path, name: str):
        self.folder, self.name = shared / "golden" / "models", name
        self.fill, self.comparer = module(self.folder, "fill"), module(self.folder, "compare")
        self.spec, self.arrays = self.comparer.load(name, SALT, self.folder)

    @cached_property
    def weights(self) -> dict[str, torch.Tensor]:
        shapes = self.fill.shapes_from_json(self.folder / f"{self.name}.json")
        filled = self.fill.fill_state_dict(shapes, SALT)
        assert self.fill.checksum(filled) == self.spec["weights_crc32"]
        return {key: torch.from_numpy(value) for key, value in filled.items()}

    def input(self, shape, kind="normal", tag="input") -> np.ndarray:
        return self.fill.make_input(shape, SALT, kind, tag)

    def described(self, recipe: str) -> np.ndarray:
        """The array of a recipe such as "make_input((40,112,112,3), salt, 'frames', tag='clip0')"."""
        shape, kind, tag = re.match(r"make_input\((\(.*?\)), salt, '(\w+)', tag='(\w+)'\)", recipe).groups()
        return self.input(ast.literal_eval(shape), kind, tag)

    def filled(self, network: torch.nn.Module) -> torch.nn.Module:
        """The network with exactly the golden keys, its golden weights and, for fixed tables, what it has itself."""
        assert self.comparer.check_keys(self.name, network.state_dict(), SALT, self.folder) == ([], [], {})
        own = network.state_dict()
        kept = {key: own[key] for key in self.spec["kept_keys"] if key not in self.spec.get("tied_keys", ())}
        missing, unexpected = network.load_state_dict({**self.weights, **kept}, strict=False)
        assert set(missing) <= set(self.spec.get("tied_keys", ())) and not unexpected
        return network.eval()

    def check(self, outputs: dict[str, torch.Tensor]) -> None:
        """Every golden array of every output, within the stated tolerance."""
        report = self.comparer.compare(self.name, {k: v.numpy() for k, v in outputs.items()}, SALT, self.folder)
        assert report and all("max_abs" in line for line in report), report
        assert all(line["ok"] for line in report), report

    def check_facts(self, network: torch.nn.Module) -> None:
        """eps of every LayerNorm and the geometry of every convolution: what the outputs alone could hide."""
        facts, modules = self.spec["static_facts"], dict(network.named_modules())
        norms = {name: float(kind.split("eps ")[1]) for kind, names in facts["norm_layers"].items() for name in names}
        assert {n: m.eps for n, m in modules.items() if isinstance(m, torch.nn.LayerNorm)} == norms
        for name, kind, inner, out, kernel, stride, padding, groups, bias in facts["convolutions"]:
            conv = modules[name]
            assert type(conv).__name__ == kind
            assert (conv.in_channels, conv.out_channels, conv.groups) == (inner, out, groups), name
            assert (conv.kernel_size, conv.stride, conv.padding) == (tuple(kernel), tuple(stride), tuple(padding)), name
            assert (conv.bias is not None) == bias
