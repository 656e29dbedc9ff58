"""Stand-ins for the settings that some checkpoints keep as objects beside their tensors: none of their code runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.serialization import get_unsafe_globals_in_checkpoint

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
# Packages whose classes hold settings in the files of PyTorch Lightning: its own, omegaconf, that of ECG-CPC.
PACKAGES = ("clinical_ts.", "lightning.", "lightning_fabric.", "omegaconf.", "pytorch_lightning.")


class Stub:
    """A stand-in for any name: it accepts the state that the file holds and keeps none of it."""

    def __new__(cls, *arguments: object) -> "Stub":
        """Make an empty object from any arguments."""
        return super().__new__(cls)

    def __init__(self, *arguments: object):
        pass

    def __setstate__(self, state: object) -> None:
        """Discard the state."""

    def __setitem__(self, key: object, value: object) -> None:
        """Discard the item."""


def _stub(name: str) -> tuple[Callable[..., Any], str]:
    return type(name, (Stub,), {}), name


_STUBS = [_stub(name) for name in NAMES]


@contextmanager
def settings_as_stubs(path: Path, *, zipped: bool) -> Iterator[None]:
    """Let `torch.load(weights_only=True)` pass over settings instead of refusing the whole file.

    Args:
        path: File that is to be loaded.
        zipped: Whether it is a zip archive, whose names can be listed before anything is loaded; names of `PACKAGES` are then
            passed over, too.
    """
    listed = get_unsafe_globals_in_checkpoint(path) if zipped else []
    with torch.serialization.safe_globals([*_STUBS, *(_stub(name) for name in listed if name.startswith(PACKAGES))]):
        yield
