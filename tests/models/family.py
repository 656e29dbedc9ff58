"""What tests of all models know about a family: its `checkpoint.py` defines `FAMILY`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch


def unchanged(patch: pytest.MonkeyPatch) -> None:
    """Leave the networks of a family as they are."""


@dataclass(frozen=True)
class Family:
    """Synthetic files of the models of a family.

    Attributes:
        checkpoints: Model -> function that writes its files into a folder and returns the argument of `--weights`.
        defaults: Model -> default pooling and variant, as used by its authors.
        shrink: Function that makes the networks of checkpoints and adapters smaller.
        tensors: Model -> golden file with the names of its tensors, and their prefix in a checkpoint.
        encoder_files: ECG model -> function that writes the file of its encoder into a folder, given the folder and a
            function that changes the tensors.
        parts: ECG model -> shape of a part.
        leads: ECG model -> leads that it uses; by default all.
        full_size: Model -> function that writes a checkpoint of full size, where `checkpoints` writes a smaller one.
        several_sizes: Models whose cards state no costs, because a checkpoint may have one of several sizes.
        on_meta: Model too large to be built for a test -> function that returns, on the meta device, the network that encodes
            a part, and the shape of a part.
        normed: Models whose vector is a norm of the pooled tokens, not the pooled tokens themselves.
        large: Whether a test of a full-size network takes seconds.
    """

    checkpoints: Mapping[str, Callable[[Path], Path]]
    defaults: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shrink: Callable[[pytest.MonkeyPatch], None] = unchanged
    tensors: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    encoder_files: Mapping[str, Callable[..., Path]] = field(default_factory=dict)
    parts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    leads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    full_size: Mapping[str, Callable[[Path], Path]] = field(default_factory=dict)
    several_sizes: tuple[str, ...] = ()
    on_meta: Mapping[str, Callable[[], tuple[torch.nn.Module, tuple[int, ...]]]] = field(default_factory=dict)
    normed: tuple[str, ...] = ()
    large: bool = False
