"""Files of a raw folder, found by the names that its tables give them."""

import errno
import os
import stat
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cardiobench.core.file_state import FileState, state_of
from cardiobench.core.io import sha256_of_file
from cardiobench.data.media.frame_folder import frame_files

ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}


class SourceFile(NamedTuple):
    """A file of a recording.

    Attributes:
        path: Path below the raw folder.
        state: State of the file.
        frame: Name of the image in a folder of frames; empty for other files.
    """

    path: str
    state: FileState
    frame: str = ""


class FileIndex:
    """Files of a raw folder. Each directory is listed once, and names are matched regardless of case."""

    def __init__(self, raw: Path):
        self.raw = raw
        self._prefix = f"{raw}/"  # A string, because joining a path takes longer than the existence check.
        self._names = cache(self._list)

    def _list(self, directory: str) -> dict[str, str]:
        try:
            names = os.listdir(self.raw / directory)  # noqa: PTH208 - names alone, in a third of the time
        except OSError as error:
            if error.errno in ABSENT:
                return {}
            raise
        return {name.lower(): name for name in names} | {name: name for name in names}

    def find(self, relative: str) -> str | None:
        """Return the path of a file as spelled on disk; None if it does not exist."""
        directory, _, name = relative.rpartition("/")
        names = self._names(directory)
        spelled = names.get(name) or names.get(name.lower())
        return None if spelled is None else f"{directory}/{spelled}" if directory else spelled

    def stat(self, relative: str) -> os.stat_result | None:
        """Return size and times of a regular file found by `find`; None for anything else."""
        try:
            status = os.stat(self._prefix + relative)  # noqa: PTH116 - half the time of Path.stat, once per file
        except OSError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def sources(self, relative: str) -> list[SourceFile]:
        """Return the state of a file; for a folder of frames, that of each image.

        Empty for an empty file, and for anything else.
        """
        if (status := self.stat(relative)) is not None:
            return [SourceFile(relative, state_of(status))] if status.st_size else []
        folder = self.raw / relative
        names = [path.name for path in frame_files(folder)] if folder.is_dir() else []
        return [one._replace(frame=name) for name in names for one in self.sources(f"{relative}/{name}")]

    def content(self, source: SourceFile) -> str:
        """Return the SHA-256 of a file."""
        return sha256_of_file(self.raw / source.path)


def companions(relative: str) -> tuple[str, ...]:
    """Return the files of a recording; for WFDB this includes the header, which states leads, rate and gain."""
    return (relative, f"{relative[:-4]}.hea") if relative[-4:].lower() in (".dat", ".mat") else (relative,)
