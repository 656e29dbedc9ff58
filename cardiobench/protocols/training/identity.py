"""Key and checksum inside files of weights, so that a damaged or exchanged file is not used."""

import hashlib
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import torch

KEY, CHECKSUM = "key", "checksum"


def key_of(checkpoint: Path) -> str:
    """Return the key of a checkpoint: the digest of its settings and recordings, and its device, seed and rate."""
    return "/".join(checkpoint.parts[-2:])


def checksum_of(content: Any) -> str:
    """Return the SHA-256 of tensors, numbers and texts in nested mappings and sequences."""
    digest = hashlib.sha256()
    _update(digest, content)
    return digest.hexdigest()


def _update(digest: "hashlib._Hash", content: Any) -> None:
    if isinstance(content, torch.Tensor):
        digest.update(f"{content.dtype} {tuple(content.shape)};".encode())
        digest.update(content.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    elif isinstance(content, Mapping):
        digest.update(f"{len(content)} entries;".encode())
        for name, value in content.items():
            digest.update(f"{name!r}:".encode())
            _update(digest, value)
    elif isinstance(content, Sequence) and not isinstance(content, str):
        digest.update(f"{len(content)} items;".encode())
        for value in content:
            _update(digest, value)
    else:
        number = isinstance(content, Real) and not isinstance(content, bool)
        digest.update(f"{float(content) if number else content!r};".encode())


def check_identity(content: dict[str, Any], key: str) -> None:
    """Remove key and checksum from the content of a file, and compare them.

    Raises:
        ValueError: The file was written under another key, or was changed afterwards.
    """
    found, stated = content.pop(KEY, ""), content.pop(CHECKSUM, "")
    if found != key:
        raise ValueError(f"its key is {found or 'missing'}; expected {key}")
    check_checksum(content, stated)


def check_checksum(content: Any, stated: str) -> None:
    """Compare the checksum of a content with the stated one.

    Raises:
        ValueError: They differ.
    """
    if (checksum := checksum_of(content)) != stated:
        raise ValueError(f"its content has the checksum {checksum[:12]}, but {stated[:12] or 'none'} is stated")


def check_finite(weights: Mapping[str, torch.Tensor]) -> None:
    """Refuse weights with NaN or infinity.

    Raises:
        ValueError: There are such weights; the message names the first tensor.
    """
    for name, values in weights.items():
        if values.is_floating_point() and not values.isfinite().all():
            raise ValueError(f"its weights {name} are not finite")
