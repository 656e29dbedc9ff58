"""Disk cache of generated recordings, because generating a cine takes longer than reading it."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

from cardiobench.core.config import default_cache
from cardiobench.core.errors import UnwritableOutput
from cardiobench.core.io import write_atomic

DIGEST_BYTES = 32
"""Length of the SHA-256 at the start of each cache file."""


def cached_bytes(name: str, generator: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes of a generated file; generate it if it is not cached or the cached file is damaged.

    Args:
        name: Name of the file.
        generator: Version of the generating code (`CardioBuilder.generator`).
        make: Function that generates the bytes.
    """
    path: Path = default_cache() / "phantom" / generator / name
    if path.is_file():
        digest, content = (kept := path.read_bytes())[:DIGEST_BYTES], kept[DIGEST_BYTES:]
        if hashlib.sha256(content).digest() == digest:
            return content
    content = make()
    # An unwritable cache only costs time.
    with contextlib.suppress(UnwritableOutput):
        write_atomic(path, lambda partial: partial.write_bytes(hashlib.sha256(content).digest() + content))
    return content
