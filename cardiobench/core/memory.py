"""Memory of this machine, and memory that was freed and is still held by an allocator for later use."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa


def memory_limit(root: Path = Path("/")) -> int:
    """Return the bytes that the processes here may hold: the machine's memory, or the limit of the container or job.

    Args:
        root: Root of the file system in which Linux states its limits: `memory.max` of version 2 of control groups,
            `memory.limit_in_bytes` of version 1; a group is also bounded by those above it.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError):  # Not Linux.
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
                with suppress(OSError):  # A container sees its own groups only.
                    limit = (place / name).read_text().strip()
                    limits += [int(limit)] if limit.isdigit() else []  # Otherwise "max".
    return min(limits)


def release_freed_memory() -> None:
    """Give memory that was freed back to the operating system, before much is needed at once.

    The allocators of Arrow and of glibc keep it otherwise: after the tables of 350,000 recordings were read, as much as
    a quarter of their embeddings.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # Exists in glibc only.
        trim(0)
