"""Safe and strict loading of weights: no code from a pickle, and no missing or unexpected keys."""

import hashlib
import pickle
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from cardiobench.core.errors import BadModel
from cardiobench.models.files import first_line
from cardiobench.models.pickle_stubs import settings_as_stubs

# Keys of the table of tensors in checkpoints that also contain optimiser and settings.
WRAPPERS = ("state_dict", "model", "weights", "encoder")
POINTER = b"version https://git-lfs"
# Prefixes that training wrappers add to every name.
PREFIXES = ("module.", "_orig_mod.")
# Errors of PyTorch and pickle for damaged files, besides pickle.UnpicklingError.
DAMAGED = (
    *(RuntimeError, EOFError, OSError, ValueError, zipfile.BadZipFile, struct.error),
    *(LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, MemoryError),
)


def read_weights(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    """Read tensors by name from a weights file or from all shards.

    A checkpoint that wraps them (`WRAPPERS`) or prefixes every name (`PREFIXES`) is unwrapped.

    Raises:
        BadModel: A file is truncated, not a weights file, or requires running code.
    """
    state: dict[str, torch.Tensor] = {}
    for path in paths:
        state.update(_read(path))
    if not state:
        raise BadModel(f"{paths[0]} contains no tensors. Copy the model again.")
    refuse_not_finite(state.items(), str(paths[0]))
    return _unprefixed(state)


def refuse_not_finite(tensors: Iterable[tuple[str, torch.Tensor]], what: str) -> None:
    """Raise `BadModel` with the first names for weights that contain NaN or infinity."""
    strange = [name for name, tensor in tensors if tensor.is_floating_point() and not _is_finite(tensor)]
    if strange:
        raise BadModel(
            f"{what} contains NaN or infinite numbers in {len(strange)} tensors: {', '.join(strange[:3])}. "
            f"The file is damaged: download it again."
        )


def _is_finite(tensor: torch.Tensor) -> bool:
    """Return whether all values are finite, using the extremes, which is twenty times faster."""
    if not tensor.numel():
        return True
    wide = tensor.float() if tensor.dtype.itemsize == 1 else tensor
    return all(bool(extreme.isfinite()) for extreme in torch.aminmax(wide))


def read_settings(path: Path, key: str) -> dict[str, Any] | None:
    """Return the mapping stored under a key of a checkpoint next to its tensors; None if there is none."""
    if path.suffix == ".safetensors":
        return None
    content = _unpickle(path, "meta")
    settings = content.get(key) if isinstance(content, dict) else None
    return settings if isinstance(settings, dict) else None


def read_part(path: Path, part: str) -> dict[str, torch.Tensor]:
    """Read the tensors of one of several networks in a file: its table, or names with the prefix `part.`.

    Raises:
        BadModel: The file cannot be read safely, or contains no tensors of the network, which would remain random.
    """
    if path.suffix == ".safetensors":
        with _safetensors(path):
            tables = {part: below(load_file(path), f"{part}.")}
    else:
        tables = _unpickle(path, "cpu")
    state = tables.get(part) if isinstance(tables, dict) else None
    if not isinstance(state, dict) or not state or not all(isinstance(one, torch.Tensor) for one in state.values()):
        found = ", ".join(list(map(str, tables))[:8]) if isinstance(tables, dict) else type(tables).__name__
        raise BadModel(
            f"{path} has no table of tensors under '{part}' (it contains {found}), so nothing would be loaded and the network "
            f"would be random. Give the file as its authors published it."
        )
    refuse_not_finite(state.items(), str(path))
    return dict(state)


def _unprefixed(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    state = dict(state)
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in state):
            state = below(state, prefix)
    return state


def below(state: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """Return the tensors whose names start with a prefix, with the prefix removed."""
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read tensor shapes by name from a weights file without the values; raises the errors of `read_weights`."""
    if path.suffix == ".safetensors":
        with _safetensors(path), safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    return {name: tuple(tensor.shape) for name, tensor in _unprefixed(_read(path, device="meta")).items()}


def refuse_unreadable(paths: Sequence[Path]) -> None:
    """Refuse damaged or dangerous files with the errors of `read_weights`, without keeping the tensors."""
    for path in paths:
        if path.suffix == ".safetensors":
            with _safetensors(path), safe_open(path, framework="pt"):
                pass  # Opening the file compares its length with its table of contents.
        else:
            _read(path)


def _beginning(path: Path) -> bytes:
    """Read the first bytes of a file; raise `BadModel` for a Git LFS pointer."""
    with path.open("rb") as file:
        start = file.read(len(POINTER))
    if start == POINTER:
        raise BadModel(f"{path} is a Git LFS pointer instead of the weights. Fetch them: git lfs pull, or hf download.")
    return start


@contextmanager
def _safetensors(path: Path) -> Iterator[None]:
    _beginning(path)
    try:
        yield
    except SafetensorError as error:
        raise BadModel(f"{path} is truncated or not safetensors ({error}). Copy or download it again.") from error


def _unpickle(path: Path, device: str) -> Any:
    """Read a PyTorch file; raise `BadModel` if it is damaged or could run code."""
    start = _beginning(path)
    try:
        with settings_as_stubs(path, zipped=start.startswith(b"PK")):
            return torch.load(path, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        if start[:2] not in (
            b"PK",
            b"\x80\x02",
        ):  # The file is neither a zip archive nor in the older format, and torch would interpret the text as a pickle.
            raise BadModel(f"{path} is truncated or not a PyTorch file. Copy or download it again.") from error
        named = re.search(r"GLOBAL (\S+)", str(error))
        raise BadModel(
            f"{path} contains more than tensors ({named[1] if named else first_line(error)}) and could run code when read. "
            f"Ask its author for safetensors."
        ) from error
    except DAMAGED as error:
        raise BadModel(
            f"{path} is truncated or not a PyTorch file ({first_line(error)}). Copy or download it again."
        ) from error


def _read(path: Path, device: str = "cpu") -> Mapping[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        with _safetensors(path):
            return load_file(path)
    content = _unpickle(path, device)
    for wrapper in WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(wrapper), dict):
            content = content[wrapper]
    if not isinstance(content, dict) or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise BadModel(f"{path} is not a table of tensors by name. Export the model's state_dict as safetensors.")
    return content


def weights_digest(network: torch.nn.Module) -> str:
    """Return the first 12 hex digits of the SHA-256 over all tensors of a network, in the order of their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def load_exactly(network: torch.nn.Module, state: Mapping[str, torch.Tensor], what: str) -> None:
    """Load weights into a network with exactly the same tensor names and shapes.

    A network created under `torch.device("meta")` gets the tensors themselves, without random initialisation.

    Raises:
        BadModel: Parameters are missing or unexpected, or shapes differ; the message has counts and first names.
    """
    state = with_tied(network, state)
    refuse_difference(difference(network, state), what)
    network.load_state_dict(state, strict=True, assign=any(tensor.is_meta for tensor in network.parameters()))


def refuse_larger(network: torch.nn.Module, weights: Sequence[Path], what: str) -> None:
    """Raise `BadModel` if a network, created without values, has more parameters than its weights files can contain.

    This detects excessive sizes in the settings before memory is allocated.
    """
    wanted = sum(tensor.numel() for tensor in network.parameters())
    held = sum(path.stat().st_size for path in weights)  # A number takes at least one byte.
    if wanted > max(held, 1):
        raise BadModel(
            f"the configuration of {what} describes a network of {wanted:,} numbers, but its weights have only {held:,} bytes. "
            f"Check that configuration and weights belong together."
        )


def with_tied(network: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the weights with all names of shared tensors, of which safetensors keep only one."""
    names: dict[int, list[str]] = {}
    for name, tensor in network.named_parameters(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
    complete = dict(state)
    for tied in names.values():
        known = next((name for name in tied if name in state), None)
        if known is not None:
            complete |= {name: state[known] for name in tied if name not in state}
    return complete


def difference(network: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, list[str]]:
    """Return the differences between weights and a network: names under `missing`, `unexpected` and `wrong shape`."""
    expected = network.state_dict()
    return {
        "missing": [name for name in expected if name not in state],
        "unexpected": [name for name in state if name not in expected],
        "wrong shape": [
            f"{name} (weights {tuple(state[name].shape)}, network {tuple(expected[name].shape)})"
            for name in expected
            if name in state and state[name].shape != expected[name].shape
        ],
    }


def refuse_difference(names: Mapping[str, Sequence[str]], what: str) -> None:
    """Raise `BadModel` if any list of names is not empty."""
    problems = [
        f"{len(keys)} {problem}: {', '.join(list(keys)[:3])}{', ...' if len(keys) > 3 else ''}"
        for problem, keys in names.items()
        if keys
    ]
    if problems:
        raise BadModel(
            f"the weights of {what} do not match its configuration ({'; '.join(problems)}). Nothing was loaded: "
            f"the missing part would be random. Check that configuration and weights belong together."
        )
