"""The protocols, by name; the first ones are run unless others are asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

from cardiobench.registry import unknown_name

if TYPE_CHECKING:
    from cardiobench.protocols.base import EvalProtocol

_CLASSES = {
    "zero_shot": "cardiobench.protocols.zero_shot:ZeroShot",
    "probe": "cardiobench.protocols.probe:LinearProbe",
    "knn": "cardiobench.protocols.knn:NearestNeighbours",
}


def list_protocols() -> tuple[str, ...]:
    """Names of all protocols, in the order in which they are run."""
    return tuple(_CLASSES)


def protocol(name: str, **options) -> "EvalProtocol":
    """The protocol of that name; options are its dataclass fields. `UnknownName` with the nearest name otherwise."""
    if name not in _CLASSES:
        raise unknown_name("protocol", name, _CLASSES)
    module, _, kind = _CLASSES[name].partition(":")
    return getattr(import_module(module), kind)(**options)
