"""Synthetic checkpoints in the published format for every registered model with weights."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import pytest

from cardiobench.models import cards
from cardiobench.models.blocks import net1d, xresnet1d
from cardiobench.models.cards import card
from tests.models.family import Family
from tests.models.tiny import tiny_dinov3, tiny_open_clip, tiny_siglip

FAMILIES: dict[str, Family] = {
    file.parent.name: import_module(f"tests.models.families.{file.parent.name}.checkpoint").FAMILY
    for file in sorted((Path(__file__).parent / "families").glob("*/checkpoint.py"))
}
# Models that libraries load.
TINY = {
    "mkaichristensen/echo-clip": partial(tiny_open_clip, safe=False),
    "mkaichristensen/echo-clip-r": partial(tiny_open_clip, safe=False),
    "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224": partial(tiny_open_clip, text="bert", safe=False),
    "facebook/dinov3-vits16-pretrain-lvd1689m": tiny_dinov3,
    "facebook/dinov3-vitb16-pretrain-lvd1689m": tiny_dinov3,
    "facebook/dinov3-vitl16-pretrain-lvd1689m": tiny_dinov3,
    "google/siglip2-base-patch16-224": tiny_siglip,
    "google/siglip2-base-patch16-512": tiny_siglip,
    "google/medsiglip-448": tiny_siglip,
}
# Mapping from model to the function that writes its checkpoint into a folder and returns the argument of --weights.
CHECKPOINTS: dict[str, Callable[[Path], Path]] = {
    **TINY,
    **{name: write for family in FAMILIES.values() for name, write in family.checkpoints.items()},
}
# ECG model -> function (folder, change) that writes the file of its encoder.
ENCODER_FILES: dict[str, Callable[..., Path]] = {
    name: write for family in FAMILIES.values() for name, write in family.encoder_files.items()
}
# Default pooling and variant of every model with a choice, as used by its authors.
DEFAULTS = {
    "cardiobench/random-xresnet1d101": ("mean", ""),
    "facebook/dinov3-vitb16-pretrain-lvd1689m": ("cls", "full_frame"),
    "facebook/dinov3-vitl16-pretrain-lvd1689m": ("cls", "full_frame"),
    "facebook/dinov3-vits16-pretrain-lvd1689m": ("cls", "full_frame"),
    "google/medsiglip-448": ("", "full_frame"),
    "google/siglip2-base-patch16-224": ("", "full_frame"),
    "google/siglip2-base-patch16-512": ("", "full_frame"),
    "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224": ("", "full_frame"),
    "mkaichristensen/echo-clip": ("", "echo_clip"),
    "mkaichristensen/echo-clip-r": ("", "echo_clip"),
    **{name: chosen for family in FAMILIES.values() for name, chosen in family.defaults.items()},
}


@contextmanager
def smaller_networks() -> Iterator[None]:
    """Use small networks of the same kind for checkpoints and adapters.

    Full-size networks are loaded and run in tests/models/families and tests/models/blocks.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (net1d, xresnet1d):
            patch.setattr(module, "STAGES", tuple((width, 1) for width, _ in module.STAGES))
        for family in FAMILIES.values():
            family.shrink(patch)
        yield


def change_card(patch: pytest.MonkeyPatch, name: str, **facts) -> None:
    """Change fields of a model's card; by default remove the checksums, which are those of the real files."""
    changed = replace(card(name), **{"weights": dict.fromkeys(card(name).weights), **facts})
    table = MappingProxyType({**cards._cards(), name: changed})
    patch.setattr(cards, "_cards", lambda: table)
