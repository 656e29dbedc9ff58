"""Generated recordings, kept on disk between models: drawing a cine takes longer than reading it."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

from cardiobench.core.config import default_cache
from cardiobench.core.errors import UnwritableOutput
from cardiobench.core.io import write_atomic

DIGEST_BYTES = 32
"""Length of the SHA-256 that stands before the bytes in a file of the cache."""


def cached_bytes(name: str, generator: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes of a generated file, drawn the first time only, and again where the kept ones are damaged.

    Args:
        name: Name of the file.
        generator: Version of the code that draws them (`CardioBuilder.generator`).
        make: Draws them.
    """
    path: Path = default_cache() / "phantom" / generator / name
    if path.is_file():
        digest, content = (kept := path.read_bytes())[:DIGEST_BYTES], kept[DIGEST_BYTES:]
        if hashlib.sha256(content).digest() == digest:
            return content
    content = make()
    # A cache that cannot be written to costs time and changes nothing.
    with contextlib.suppress(UnwritableOutput):
        write_atomic(path, lambda partial: partial.write_bytes(hashlib.sha256(content).digest() + content))
    return content
