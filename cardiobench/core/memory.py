"""Memory that was freed and is still held by an allocator for later use."""

import ctypes
import sys

import pyarrow as pa


def release_freed_memory() -> None:
    """Give memory that was freed back to the operating system, before much is needed at once.

    The allocators of Arrow and of glibc keep it otherwise: after the tables of 350,000 recordings were read, as much as
    a quarter of their embeddings.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # glibc only
        trim(0)
