"""Stand-ins for settings objects that some checkpoints store next to their tensors, so that none of their code runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.serialization import get_unsafe_globals_in_checkpoint

# Names in checkpoints of fairseq and its relatives: an omegaconf or argparse configuration and its types.
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
# Packages with classes of settings in files of PyTorch Lightning: Lightning itself, omegaconf, and the training code of arXiv:2509.25095.
PACKAGES = ("clinical_ts.", "lightning.", "lightning_fabric.", "omegaconf.", "pytorch_lightning.")


class Stub:
    """A stand-in for any class, which accepts and discards the state in the file."""

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
    """Let `torch.load(weights_only=True)` skip settings instead of refusing the whole file.

    Args:
        path: File to load.
        zipped: Whether the file is a zip archive, whose names can be listed before loading; names of `PACKAGES` are
            then also skipped.
    """
    listed = get_unsafe_globals_in_checkpoint(path) if zipped else []
    with torch.serialization.safe_globals([*_STUBS, *(_stub(name) for name in listed if name.startswith(PACKAGES))]):
        yield
