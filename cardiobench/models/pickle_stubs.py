"""Settings that some checkpoints keep beside their tensors as objects, read as empty shells: no code of theirs runs."""

from collections.abc import Iterator
from contextlib import contextmanager

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


class Shell:
    """Stands for any of `NAMES`: takes what the file gives it and keeps nothing."""

    def __new__(cls, *given: object) -> "Shell":
        """An empty object, whatever it is made from."""
        return super().__new__(cls)

    def __init__(self, *given: object):
        pass

    def __setstate__(self, state: object) -> None:
        """Forget the state."""

    def __setitem__(self, key: object, value: object) -> None:
        """Forget the item."""


_SHELLS = [(type(name, (Shell,), {}), name) for name in NAMES]


@contextmanager
def settings_as_shells() -> Iterator[None]:
    """Let `torch.load(weights_only=True)` pass over settings instead of refusing the whole file."""
    with torch.serialization.safe_globals(_SHELLS):
        yield
