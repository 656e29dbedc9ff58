"""Generated recordings, kept on disk between models: drawing a cine takes longer than reading it."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from cardiobench.core.config import default_cache
from cardiobench.core.errors import UnwritableOutput
from cardiobench.core.io import write_atomic


def cached_bytes(name: str, generator: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes of a generated file, drawn the first time only.

    Args:
        name: of the file.
        generator: digest of everything that the bytes depend on.
        make: draws them.
    """
    path: Path = default_cache() / "phantom" / generator / name
    if path.is_file():
        return path.read_bytes()
    content = make()
    # A cache that cannot be written to costs time and changes nothing.
    with contextlib.suppress(UnwritableOutput):
        write_atomic(path, lambda partial: partial.write_bytes(content))
    return content
