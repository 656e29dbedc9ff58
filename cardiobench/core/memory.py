"""Memory of this machine, and release of freed memory held by allocators."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

ASSUMED = 8 << 30
"""Bytes assumed if the system does not report its memory, as on Windows."""


def memory_limit(root: Path = Path("/")) -> int:
    """Return the bytes available to the processes on this machine: its memory, or the limit of the container or job.

    Args:
        root: Root of the file system with the Linux limits: `memory.max` (cgroups v2) or `memory.limit_in_bytes` (v1);
            a group is also limited by its parents.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else ASSUMED]
    with suppress(OSError):  # The file exists only on Linux.
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                mount, name = root / "sys/fs/cgroup", "memory.max"
            elif "memory" in controllers.split(","):
                mount, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            else:
                continue
            folder = mount / group.lstrip("/")
            for place in (folder, *folder.parents):
                with suppress(OSError):  # Containers see only their own groups.
                    limit = (place / name).read_text().strip()
                    limits += [int(limit)] if limit.isdigit() else []  # "max" means no limit.
    return min(limits)


def release_freed_memory() -> None:
    """Return freed memory to the operating system before a large allocation.

    Otherwise the allocators of Arrow and glibc keep it. After reading the tables of 350,000 recordings, this is up to a
    quarter of the size of their embeddings.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # Exists in glibc only.
        trim(0)


@contextmanager
def collect_at_end() -> Iterator[None]:
    """Run Python's garbage collector once at the end of the block, and not within it.

    For a block that creates many objects and keeps few, such as the drawing of a figure, it would otherwise run hundreds
    of times, each time over objects that are still in use.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
        gc.collect(0)  # All new objects are in the youngest generation.
