"""Content of a user's object: the values of parameters, buffers and arrays, and the code of its components."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import xxhash

from cardiobench.core.code_digest import global_names, is_library, package_of, source_file
from cardiobench.core.versions import is_own, states_version

ATOMS = (str, bytes, int, float, complex, bool, type(None), Path, np.generic)
OPAQUE = ("asyncio", "concurrent", "logging", "multiprocessing", "threading")
"""Modules whose objects reference the whole process and have no relevant values."""
TABLES = ("pandas", "polars")
REGISTERED = ("_parameters", "_buffers", "_modules")
"""Attributes of a torch module whose content its methods list."""

Child = tuple[str, Any]
Component = type | FunctionType | ModuleType


@dataclass(frozen=True)
class Held:
    """Content of an object, reached through attributes, containers, closures and the globals that its methods name.

    Attributes:
        values: Digest of all tensors and arrays with their paths; "" if there are none. Numbers and texts are ignored,
            because an encoder may have a counter.
        parts: Classes, functions and modules of the object: the user's own, and components of this package.
    """

    values: str
    parts: tuple[Component, ...]


def held_by(encoder: Any, *others: Any) -> Held:
    """Return the content of an encoder and of related objects, such as the function that created it.

    Internal state of libraries, such as the session of an ONNX runtime, is not included.
    """
    walk = _Walk(encoder, others)
    walk.run()
    lines = sorted(f"{path}={digest}" for path, digest in walk.digests)
    values = xxhash.xxh3_128_hexdigest("\n".join(lines).encode("utf-8", "surrogatepass")) if lines else ""
    return Held(values, tuple(walk.parts))


class _Walk:
    """A traversal of everything reachable from an object within the user's own code."""

    def __init__(self, root: Any, others: Iterable[Any]):
        self.digests: list[tuple[str, str]] = []
        self.parts: dict[Component, None] = {}
        self.waiting: deque[Child] = deque([("", root), *((f"({number})", one) for number, one in enumerate(others))])
        self.seen: dict[int, Any] = {}  # Visited objects are kept alive, so that ids are not reused.
        file = None if is_own(type(root)) else source_file(type(root))
        self.home = None if file is None else package_of(file)
        self.local: dict[Component, bool] = {}

    def run(self) -> None:
        while self.waiting:
            path, value = self.waiting.popleft()
            if isinstance(value, ATOMS) or id(value) in self.seen:
                continue
            self.seen[id(value)] = value
            if (digest := _digest(value)) is not None:
                self.digests += [(path, digest)] if digest else []
                continue
            self._add_part(value if isinstance(value, Component) else type(value))
            self.waiting.extend((f"{path}{name}", child) for name, child in self._children(value))

    def _is_local(self, component: Component) -> bool:
        if component not in self.local:
            file = source_file(component)
            if file is None:
                found = not isinstance(component, ModuleType) and _was_typed_in(component.__module__)
            else:
                found = not is_library(file) or (self.home is not None and file.is_relative_to(self.home))
            self.local[component] = found
        return self.local[component]

    def _add_part(self, component: Component) -> None:
        if states_version(component) if is_own(component) else self._is_local(component):
            self.parts[component] = None

    def _children(self, value: Any) -> Iterable[Child]:
        """Return the parts of a value with their relative names."""
        if isinstance(value, ModuleType):
            return _items(vars(value)) if self._is_local(value) else ()
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, type):
            return self._of_class(value) if self._is_local(value) else ()
        if isinstance(value, Mapping):
            return _items(value)
        if isinstance(value, list | tuple | deque) or (isinstance(value, np.ndarray) and value.dtype.hasobject):
            return ((f"[{number}]", child) for number, child in enumerate(value))
        if isinstance(value, set | frozenset):
            return (("{}", child) for child in value)
        if isinstance(value, partial):
            return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
        if isinstance(value, MethodType | BuiltinFunctionType):
            return [(".__self__", value.__self__), (".__func__", getattr(value, "__func__", None))]
        return self._of_object(value)

    def _of_function(self, function: FunctionType) -> Iterator[Child]:
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                yield f".{name}", cell.cell_contents
            except ValueError:  # The closure cell is empty.
                continue
        yield from ((f".{number}", default) for number, default in enumerate(function.__defaults__ or ()))
        if self._is_local(function):
            names = global_names(function) & function.__globals__.keys()
            yield from ((f":{name}", function.__globals__[name]) for name in sorted(names))

    def _of_class(self, kind: type) -> Iterator[Child]:
        for name, member in vars(kind).items():
            if isinstance(member, property):
                yield from ((f".{name}", one) for one in (member.fget, member.fset) if one)
            elif not name.startswith("__") or isinstance(member, FunctionType):
                yield f".{name}", getattr(member, "__func__", member)

    def _of_object(self, value: Any) -> Iterator[Child]:
        yield from ((f"<{kind.__qualname__}>", kind) for kind in type(value).__mro__ if self._is_local(kind))
        torch, top = sys.modules.get("torch"), type(value).__module__.partition(".")[0]
        attributes = [] if top in OPAQUE else _attributes(value)
        if torch is not None and isinstance(value, torch.nn.Module):
            # Use methods, because a scripted module does not list everything in its attributes.
            yield from ((f".{name}", one) for name, one in value.named_parameters(recurse=False))
            yield from ((f".{name}", one) for name, one in value.named_buffers(recurse=False))
            yield from ((f".{name}", one) for name, one in value.named_children())
            if type(value)._save_to_state_dict is not torch.nn.Module._save_to_state_dict:  # State of quantised layers.
                yield ".state_dict()", value.state_dict()
            attributes = [(name, one) for name, one in attributes if name not in REGISTERED]
        elif top in TABLES and hasattr(value, "to_numpy"):  # The blocks of a data frame are internal.
            attributes = [(".to_numpy()", value.to_numpy())]
        yield from ((f".{name}", child) for name, child in attributes)


def _was_typed_in(module: str) -> bool:
    """Return whether a module is an interactive interpreter or a notebook."""
    found = sys.modules.get(module)
    return found is not None and module not in sys.builtin_module_names and not hasattr(found, "__file__")


def _items(mapping: Mapping[Any, Any]) -> Iterator[Child]:
    for number, (key, child) in enumerate(list(mapping.items())):
        yield f"[{key!r}]" if isinstance(key, ATOMS) else f"[{number}]", child


def _attributes(value: Any) -> list[Child]:
    """Return the attributes of an object, including those in slots."""
    slots = (name for kind in type(value).__mro__ for name in _texts(vars(kind).get("__slots__", ())))
    found = {name: getattr(value, name, None) for name in slots if not name.startswith("__")}
    return list({**found, **getattr(value, "__dict__", {})}.items())


def _texts(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _digest(value: Any) -> str | None:
    """Return the digest of a tensor or an array; None for anything else."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _bytes_digest(value.dtype, value.shape, [np.ascontiguousarray(value).reshape(-1).view(np.uint8)])
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if torch.nn.parameter.is_lazy(value):
        return "not initialised"
    if value.is_inference():  # A stored output of the encoder, such as an activation from a hook.
        return ""
    return _tensor_digest(value.detach())


def _tensor_digest(tensor: Any) -> str:
    """Return the digest of a tensor of any layout; for a tensor without values that of its shape."""
    import torch

    if tensor.is_nested:
        return " ".join(map(_tensor_digest, tensor.unbind()))
    kind, shape = str(tensor.dtype), tuple(tensor.shape)
    if tensor.is_meta:
        return f"{kind} {shape}"
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        parts = [tensor.indices(), tensor.values()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    elif tensor.is_quantized:
        parts = [tensor.int_repr(), tensor.dequantize()]
    elif hasattr(tensor, "__tensor_flatten__"):
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        return _bytes_digest(kind, shape, [_tensor_digest(part).encode() for part in parts])
    else:
        parts = [tensor.resolve_conj().resolve_neg()]
    return _bytes_digest(kind, shape, [_tensor_bytes(part) for part in parts])


def _tensor_bytes(tensor: Any) -> np.ndarray:
    import torch

    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _bytes_digest(dtype: object, shape: object, parts: Iterable[Any]) -> str:
    total = xxhash.xxh3_128(f"{dtype} {shape}".encode())
    for part in parts:
        total.update(part)
    return total.hexdigest()
