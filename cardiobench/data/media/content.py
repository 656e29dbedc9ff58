"""Digest of the bytes from which a recording is decoded, taken while they are read."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import BinaryIO

import numpy as np

DIGEST_BYTES = 16
"""Bytes of the SHA-256 that are kept: 128 bits."""
BLOCK = 2**20
"""Bytes of a stream that are read at once."""


class Content:
    """SHA-256 of the bytes that readers note, each with its length.

    Attributes:
        noted: Whether any reader has noted bytes.
    """

    def __init__(self) -> None:
        """Start without bytes."""
        self._hash = hashlib.sha256()
        self.noted = False

    def add(self, data: bytes | memoryview) -> None:
        """Add bytes."""
        self.noted = True
        self._hash.update(len(data).to_bytes(8, "little"))
        self._hash.update(data)

    def add_stream(self, stream: BinaryIO, size: int) -> None:
        """Add a stream of known size, as `add` does, without holding it in memory."""
        self.noted = True
        self._hash.update(size.to_bytes(8, "little"))
        while block := stream.read(BLOCK):
            self._hash.update(block)

    def digest(self, beside: str = "") -> str:
        """Return the digest of the bytes and of a text, 32 hexadecimal digits; empty without any bytes."""
        if not self.noted:
            return ""
        whole = self._hash.copy()
        whole.update(beside.encode())
        return whole.digest()[:DIGEST_BYTES].hex()


_CURRENT: ContextVar[Content | None] = ContextVar("content of the recording that is being read", default=None)


@contextmanager
def digested() -> Iterator[Content]:
    """Collect the bytes that readers note in the body."""
    content = Content()
    token = _CURRENT.set(content)
    try:
        yield content
    finally:
        _CURRENT.reset(token)


def collected() -> Content | None:
    """Return the content of the recording that is being read; None if it is not collected."""
    return _CURRENT.get()


def note(data: bytes) -> bytes:
    """Add bytes of the recording that is being read to its digest, if it is collected, and return them."""
    if (content := _CURRENT.get()) is not None:
        content.add(data)
    return data


def note_array(array: np.ndarray, beside: str = "") -> np.ndarray:
    """Add an array as stored, with its type, shape and facts beside it in the file, and return it."""
    if (content := _CURRENT.get()) is not None:
        content.add(f"{array.dtype.str} {array.shape} {beside}".encode())
        content.add(np.ascontiguousarray(array).data.cast("B"))
    return array
