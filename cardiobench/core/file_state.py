"""Whether a file is the one known: the single place that compares the states of files."""

import os
from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    """State of a file. An equal state is a hint that the content is unchanged; only a digest of the content proves it.

    A program can restore size and modification time, but not the time of the last change of the inode. A copy has another
    inode, so a different state does not mean that the content differs.

    Attributes:
        size: Bytes.
        modified: Time of the last modification of the content, nanoseconds.
        changed: Time of the last change of content, name or permissions, nanoseconds.
        inode: Number of the file in its file system.
    """

    size: int
    modified: int
    changed: int
    inode: int


def state_of(status: os.stat_result) -> FileState:
    """Return the state in the status of a file."""
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def file_state(path: str | Path) -> FileState:
    """Return the state of a file; raises `OSError` if there is none."""
    return state_of(os.stat(path))  # noqa: PTH116 - half the time of Path.stat, once a record


def state_or_none(path: Path) -> FileState | None:
    """Return the state of a file or folder; None if there is none."""
    try:
        return file_state(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
