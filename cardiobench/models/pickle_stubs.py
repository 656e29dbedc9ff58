"""Stand-ins for the settings that some checkpoints keep as objects beside their tensors: none of their code runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

# What fairseq and its relatives keep: an omegaconf or argparse configuration, and the types that it names.
NAMES = (
    "argparse.Namespace",
    "builtins.bool",
    "builtins.dict",
    "builtins.float",
    "builtins.int",
    "builtins.list",
    "builtins.object",
    "builtins.str",
    "collections.defaultdict",
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
    "omegaconf.dictconfig.DictConfig",
    "omegaconf.listconfig.ListConfig",
    "omegaconf.nodes.AnyNode",
    "omegaconf.nodes.BooleanNode",
    "omegaconf.nodes.EnumNode",
    "omegaconf.nodes.FloatNode",
    "omegaconf.nodes.IntegerNode",
    "omegaconf.nodes.StringNode",
    "typing.Any",
)


class Stub:
    """A stand-in for any of `NAMES`: it accepts the state that the file holds and keeps none of it."""

    def __new__(cls, *arguments: object) -> "Stub":
        """Make an empty object from any arguments."""
        return super().__new__(cls)

    def __init__(self, *arguments: object):
        pass

    def __setstate__(self, state: object) -> None:
        """Discard the state."""

    def __setitem__(self, key: object, value: object) -> None:
        """Discard the item."""


_STUBS: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [(type(name, (Stub,), {}), name) for name in NAMES]


@contextmanager
def settings_as_stubs() -> Iterator[None]:
    """Let `torch.load(weights_only=True)` pass over settings instead of refusing the whole file."""
    with torch.serialization.safe_globals(_STUBS):
        yield
