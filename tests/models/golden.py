"""Reference outputs of the published code for weights and inputs that are generated from names and shapes.

The files are in `tests/golden/models`; its README lists their sources and how the tensors are generated.
"""

import ast
import hashlib
import json
import re
import zlib
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).parent.parent / "golden" / "models"
SALT = "A"
KEPT = {"C": (0.0, 0.7), "D": (0.0, 1.0), "log_dt": (-4.6, 0.8)}  # Centre and scale of random state spaces.
NORMS = (torch.nn.LayerNorm, torch.nn.GroupNorm, torch.nn.BatchNorm1d)
TABLE_WORDS = ("token", "registers", "pos_embed", "masked_spec_embed")
TABLE_NAMES = ("pe", "vars", "embedding")


class Golden:
    """Golden file with `spec` (its JSON) and `arrays`, and the weights and inputs of its recipe."""

    def __init__(self, name: str):
        self.name = name
        self.spec = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        self.arrays = dict(np.load(FOLDER / f"{name}.npz"))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return a mapping from published name to shape for every tensor."""
        return {entry["key"]: tuple(entry["shape"]) for entry in self.spec["state_dict"]}

    @cached_property
    def weights(self) -> dict[str, torch.Tensor]:
        """Return every tensor of the recipe, without fixed tables and counters."""
        kept = self.spec.get("kept_keys", ())
        filled = {
            entry["key"]: fill(entry["key"], entry["shape"])
            for entry in self.spec["state_dict"]
            if entry["dtype"].startswith(("float", "bfloat")) and entry["key"] not in kept
        }
        total = 0
        for key in sorted(filled):
            total = zlib.crc32(key.encode(), total)
            total = zlib.crc32(np.ascontiguousarray(filled[key], dtype="<f4").tobytes(), total)
        assert total == self.spec["weights_crc32"], "this numpy draws other numbers than that of the golden run"
        return {key: torch.from_numpy(np.asarray(value)) for key, value in filled.items()}

    @property
    def counters(self) -> dict[str, torch.Tensor]:
        """Return the integer tensors, all zero."""
        return {e["key"]: torch.tensor(0) for e in self.spec["state_dict"] if e["dtype"] == "int64"}

    @property
    def kept(self) -> dict[str, torch.Tensor]:
        """Return the tensors of state spaces, which have a separate recipe; empty for other files."""
        # The recipe of tied tensors is in words.
        keys = self.spec["kept_keys"] if isinstance(self.spec.get("kept_recipe"), dict) else ()
        return {key: torch.from_numpy(np.ascontiguousarray(self._kept(key))) for key in keys}

    def _kept(self, key: str) -> np.ndarray:
        last, shape = key.rsplit(".", 1)[-1], self.shapes[key]
        if last in ("omega", "z"):
            return self.arrays[f"kept/{last}"]
        if last not in KEPT:
            return np.broadcast_to(self.spec["kept_recipe"][f"{last}_values"], shape).astype(np.float32)
        center, scale = map(np.float32, KEPT[last])
        return center + scale * random(f"{SALT}:{key}").standard_normal(shape, dtype=np.float32)

    def input(self, shape, kind="normal", tag="input") -> np.ndarray:
        return make_input(shape, kind, tag)

    def described(self, recipe: str) -> np.ndarray:
        """Return the array of a recipe such as "make_input((40,112,112,3), salt, 'frames', tag='clip0')"."""
        shape, kind, tag = re.match(r"make_input\((\(.*?\)), salt, '(\w+)', tag='(\w+)'\)", recipe).groups()
        return make_input(ast.literal_eval(shape), kind, tag)

    def filled(self, network: torch.nn.Module) -> torch.nn.Module:
        """Load the golden weights into a network with exactly the golden keys; fixed tables keep their values."""
        state = network.state_dict()
        assert {key: tuple(tensor.shape) for key, tensor in state.items()} == self.shapes
        kept = {key: state[key] for key in self.spec["kept_keys"] if key not in self.spec.get("tied_keys", ())}
        missing, unexpected = network.load_state_dict({**self.weights, **kept}, strict=False)
        assert set(missing) <= set(self.spec.get("tied_keys", ())) and not unexpected
        return network.eval()

    def check(self, outputs: dict[str, torch.Tensor]) -> None:
        """Compare every stored array (a whole output, a part or a reduction of it) within its tolerance."""
        tolerance = {output["name"]: output["atol"] for output in self.spec["outputs"]}
        stored = {key.removeprefix("out/"): value for key, value in self.arrays.items() if key.startswith("out/")}
        assert stored
        for key, wanted in stored.items():
            name, tail = re.match(r"(\w+)(.*)$", key).groups()
            got = part(outputs[name].double().numpy(), tail)
            np.testing.assert_allclose(got, wanted.astype(np.float64), rtol=0, atol=tolerance[name], err_msg=key)

    def check_facts(self, network: torch.nn.Module, own_name=lambda name: name) -> None:
        """Compare eps and groups of every norm and the geometry of every convolution, which outputs alone may not reveal."""
        facts = self.spec["static_facts"]
        norms = {
            own_name(name): re.sub(r"eps (\S+)", lambda eps: f"eps {float(eps[1]):g}", words)
            for words, names in facts["norm_layers"].items()
            for name in names
        }
        assert norm_facts(network) == norms
        assert convolution_facts(network) == {own_name(row[0]): tuple(row[2:]) for row in facts["convolutions"]}


def norm_facts(network: torch.nn.Module) -> dict[str, str]:
    """Return a mapping from name to class, eps and groups of every norm, named as in the golden files."""
    found = {}
    for name, module in network.named_modules():
        if isinstance(module, NORMS):
            kind = next(norm.__name__ for norm in NORMS if isinstance(module, norm))
            groups = f" groups {module.num_groups}" if isinstance(module, torch.nn.GroupNorm) else ""
            found[name] = f"{kind} eps {module.eps:g}{groups}"
    return found


def convolution_facts(network: torch.nn.Module) -> dict[str, tuple]:
    """Return a mapping from name to in, out, kernel, stride, padding, groups and bias of every convolution."""
    return {
        name: (
            module.in_channels,
            module.out_channels,
            list(module.kernel_size),
            list(module.stride),
            list(module.padding),
            module.groups,
            module.bias is not None,
        )
        for name, module in network.named_modules()
        if isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d))
    }


def key_hash(shapes: dict) -> str:
    """Return the first 16 digits of the SHA-256 over names and shapes of tensors."""
    lines = sorted(f"{name} {list(shape)}" for name, shape in shapes.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def part(array: np.ndarray, tail: str) -> np.ndarray:
    """Apply a tail such as '[:, ::4, :]', '[::16]', '.mean(-1)' or '.std(-1)'."""
    if not tail:
        return array
    reduction = re.fullmatch(r"\.(mean|std)\(-1\)", tail)
    if reduction:
        return getattr(array, reduction[1])(-1)
    index = []
    for piece in tail.strip("[]").split(","):
        numbers = [int(number) if number.strip() else None for number in piece.split(":")]
        index.append(slice(*numbers) if ":" in piece else numbers[0])
    return array[tuple(index)]


def random(text: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(text.encode()))


def fill(key: str, shape) -> np.ndarray:
    """Return a float32 tensor determined by its name and shape; the rules are in the README."""
    shape, single, last = tuple(shape), np.float32, key.rpartition(".")[2]
    z = np.asarray(random(f"{SALT}:{key}").standard_normal(shape, dtype=single), dtype=single)
    if last == "running_var":
        return single(1) + single(0.5) * np.abs(z)
    if last == "running_mean":
        return single(0.2) * z
    if last in ("layer_scale", "gamma", "ls"):
        return single(0.5) + single(0.1) * z
    if last in ("weight_g", "original0"):
        return single(2) + single(0.2) * z
    if "bias" in last:
        return single(0.1) * z
    if last == "weight" and len(shape) == 1:
        return single(1) + single(0.1) * z
    if any(word in last for word in TABLE_WORDS) or last in TABLE_NAMES:
        return single(0.5) * z
    if len(shape) >= 3:
        return z * single(1.4 / np.sqrt(float(np.prod(shape[1:]))))
    if len(shape) == 2:
        return z * single(1.0 / np.sqrt(float(shape[1])))
    return single(0.5) * z


def make_input(shape, kind: str, tag: str) -> np.ndarray:
    """Return an input array of a kind: normal, uniform, uint8, ids, frames or ecg; see the README."""
    rng = random(f"{SALT}:{tag}:{kind}")
    if kind in MAKERS:
        return MAKERS[kind](rng, shape)
    if kind == "normal":
        return rng.standard_normal(shape, dtype=np.float32)
    if kind == "uniform":
        return rng.random(shape, dtype=np.float32)
    if kind == "uint8":
        return rng.integers(0, 256, size=shape, dtype=np.uint8)
    raise ValueError(kind)


def _ids(rng, shape):
    ids = rng.integers(5, 1000, size=shape, dtype=np.int64)
    ids[..., 0], ids[..., -1] = 2, 3
    return ids


def _frames(rng, shape):
    count, height, width, channels = shape
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    noise, phase = rng.integers(0, 60, size=shape), rng.random(3) * 6.0
    out = np.zeros(shape)
    for time in range(count):
        cy = height * (0.5 + 0.2 * np.sin(0.4 * time + phase[0]))
        cx = width * (0.5 + 0.2 * np.cos(0.3 * time + phase[1]))
        blob = 150.0 * np.exp(-((y - cy) ** 2 / (0.02 * height * height) + (x - cx) ** 2 / (0.05 * width * width)))
        stripes = 25.0 * (1.0 + np.sin(x * 0.7 + y * 0.2 + phase[2]))
        for channel in range(channels):
            out[time, :, :, channel] = blob * (1.0 - 0.2 * channel) + stripes * (0.6 + 0.2 * channel)
    out = np.clip(np.rint(out + noise), 0, 255)
    border = max(1, height // 20)
    out[:, :border] = out[:, -border:] = 0
    return out.astype(np.uint8)


def _ecg(rng, shape):
    leads, samples = shape
    time = np.arange(samples) / 500.0
    period = 0.7 + 0.2 * rng.random()
    phase, height, noise = rng.random(leads), 0.8 + 0.4 * rng.random(leads), rng.standard_normal(shape)
    out = np.zeros(shape)
    for lead in range(leads):
        place = ((time / period + 0.02 * phase[lead]) % 1.0) * period
        beat = (
            1.0 * np.exp(-(((place - 0.25) / 0.012) ** 2))
            - 0.25 * np.exp(-(((place - 0.28) / 0.014) ** 2))
            + 0.15 * np.exp(-(((place - 0.10) / 0.030) ** 2))
            + 0.30 * np.exp(-(((place - 0.50) / 0.060) ** 2))
        )
        drift = 0.3 * np.sin(2 * np.pi * 0.25 * time + 6.0 * phase[lead])
        mains = 0.05 * np.sin(2 * np.pi * 50.0 * time + 6.0 * phase[lead])
        sign = -1.0 if lead == 3 else 1.0
        out[lead] = (0.5 + 0.1 * lead) * (sign * height[lead] * beat + drift + mains + 0.02 * noise[lead])
    return out


MAKERS = {"ids": _ids, "frames": _frames, "ecg": _ecg}
