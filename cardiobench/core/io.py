"""Files: atomic writing, digests, JSON."""

import errno
import fnmatch
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadData, DiskFull, UnwritableOutput

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_NAME_BYTES = 120  # Characters of the target's name repeated in a temporary name: file systems allow 255 bytes.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
MOST_JSON = 100_000_000
"""Maximum number of characters or bytes of a JSON text; lists of recordings are the longest."""
MOST_NESTING = 32
"""Maximum number of nested objects and lists of a JSON text."""
_PLAIN_NAME = re.compile(r"\w[\w-]{0,79}", re.ASCII)
_DIGEST = 16
_TEMPORARY = re.compile(r"\..+\.(\w+)-(\d+)-\w+\.tmp")  # Cleaned up by temporary_path.


def write_atomic(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Write a file under a temporary name and rename it, so that readers never see a partial file.

    Args:
        path: The file; its folder is created if needed.
        write: Function that writes the content to the temporary path.

    Returns:
        The path.

    Raises:
        DiskFull: No space is left.
        UnwritableOutput: The folder or file cannot be written for another reason.
    """
    path = Path(path)
    if "\0" in str(path) or not path.name or path.is_dir():
        raise UnwritableOutput(f"{str(path)!r} is a folder or not a valid file name. Choose another name.")
    partial = temporary_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(partial)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unwritable(str(path), error) from error
    return path


def unwritable(what: str, error: OSError) -> UnwritableOutput:
    """Return the error for a file or folder that cannot be written: `DiskFull` if no space is left."""
    if isinstance(error, (FileExistsError, NotADirectoryError)) and error.filename:
        if blocked := no_folder(os.fsdecode(error.filename)):
            return blocked
    kind = DiskFull if error.errno in _FULL else UnwritableOutput
    reason = f"{what} cannot be written: {error.strerror or error}."
    return kind(reason, "Free space or change permissions, or choose another folder.")


def no_folder(path: str | Path) -> UnwritableOutput | None:
    """Return the error for a path that cannot be a folder, because it or a folder above is a file; None if it can be one."""
    place = Path(path)
    blocking = next((one for one in (place, *place.parents) if one.is_file()), None)
    if blocking is None:
        return None
    return UnwritableOutput(f"{blocking} is a file, not a folder.", "Choose another folder.")


def check_room(folder: Path, needed: int, written: int = 0) -> None:
    """Refuse to write to a full disk, where a library would end the process without a message.

    Args:
        folder: Existing folder.
        needed: Bytes to be written.
        written: Bytes that the same file already has, which count toward the largest size of a file for this process.

    Raises:
        OSError: The disk or the file has less room.
    """
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if resource is not None and 0 <= resource.getrlimit(resource.RLIMIT_FSIZE)[0] < needed + written:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def own_folder(folder: Path) -> Path:
    """Create a folder, and refuse a link: a folder of others could lead what is written there to any other place.

    Raises:
        UnwritableOutput: The path is a link.
    """
    if folder.is_symlink():
        raise UnwritableOutput(f"{folder} is a link to another place. Remove it, or choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Create an empty folder under a temporary name next to `path`, and remove it with its content at the end."""
    folder = temporary_path(path)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def temporary_path(path: Path) -> Path:
    """Return a hidden name next to `path` that is unique across processes and machines: host, process id and a random part."""
    shown = os.fsdecode(os.fsencode(path.name)[:_NAME_BYTES])
    return path.with_name(f".{shown}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.tmp")


def remove_orphans(folder: Path) -> list[Path]:
    """Remove temporary files and folders left by killed processes of this machine.

    Files of running processes and of other machines stay. Files that cannot be removed, or that another run removes at
    the same time, are skipped.
    """
    orphans = []
    # Unlike Path.rglob, this skips folders that disappear during the walk.
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if (match := _TEMPORARY.fullmatch(name)) and match[1] == _host() and not _runs(int(match[2])):
                orphans.append(Path(root, name))
        folders[:] = [name for name in folders if not _TEMPORARY.fullmatch(name)]
    for path in orphans:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
    return orphans


def files_below(folder: Path, pattern: str) -> list[Path]:
    """Return the files below a folder whose name matches a pattern, sorted; folders that disappear during the walk are skipped."""
    found = [
        Path(root, name)
        for root, folders, files in os.walk(folder)
        for name in fnmatch.filter([*files, *folders], pattern)
    ]
    return sorted(found)


def _host() -> str:
    return "".join(c for c in socket.gethostname() if c.isascii() and c.isalnum())[:32] or "host"


def _runs(process: int) -> bool:
    if os.name == "nt":  # On Windows signal 0 interrupts the process instead of testing whether it exists.
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # Process ids have at most as many digits as a C int.
        return False
    except PermissionError:
        return True
    return True


def file_part(name: str) -> str:
    """Return a part of a file name for a text, which may be of others: plain names as they are, others with a digest."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return with_digest(name)


def with_digest(name: str) -> str:
    """Return the letters and digits of a name with a digest of it, which is unique and safe in files and addresses."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:40]
    return f"{readable}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:_DIGEST]}"


def write_text(text: str, path: str | Path, errors: str = "strict") -> Path:
    """Write a text file as UTF-8, atomically; `errors="replace"` allows file names that are not UTF-8."""
    return write_atomic(path, lambda partial: partial.write_bytes(text.encode("utf-8", errors)))


def write_json(value: Any, path: str | Path) -> Path:
    """Write readable JSON, atomically; numbers that are not finite raise `ValueError`."""
    return write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def read_file(path: Path, longest: int) -> bytes:
    """Return the content of a file, which may be of others.

    Raises:
        BadData: It is not a regular file, cannot be read, or has more than `longest` bytes.
    """
    try:
        if not path.is_file():  # Reading a pipe would block.
            raise BadData(f"{path} is not a regular file. Remove it from the folder.")
        if (size := path.stat().st_size) > longest:
            raise BadData(f"{path} has {size:,} bytes, but at most {longest:,} are allowed. Remove it from the folder.")
        return path.read_bytes()
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror or error}.") from error


def parse_json(text: str | bytes, longest: int = MOST_JSON) -> dict[str, Any]:
    """Return the object in a JSON text, which may be of others.

    Args:
        text: JSON.
        longest: Maximum number of characters or bytes.

    Raises:
        BadData: The text is not JSON, is too long, is nested too deeply, has a key twice, or is not an object.
    """
    if len(text) > longest:
        raise BadData(f"its JSON has {len(text):,} characters, but at most {longest:,} are allowed")
    try:
        content = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadData(f"incomplete or damaged JSON ({error}). Delete it and run again") from error
    if not isinstance(content, dict):
        raise BadData(f"it contains a {type(content).__name__}; expected an object")
    if (depth := _depth(content)) > MOST_NESTING:
        raise BadData(f"its JSON is nested {depth} levels deep, but at most {MOST_NESTING} are allowed")
    return content


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries of an object; a repeated key would hide an entry from some readers."""
    content = dict(pairs)
    if len(content) < len(pairs):
        repeated = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"the key {repeated[:60]!r} occurs twice")
    return content


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _depth(value: Any) -> int:
    """Return the number of nested objects and lists."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, (dict, list))]:
        depth += 1
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return depth


def sha256_of_file(path: str | Path, longest: int | None = None) -> str:
    """Return the SHA-256 of a file's content, 64 hexadecimal digits.

    Raises:
        BadData: The file has more than `longest` bytes, as an untrusted file can without using any disk.
    """
    if longest is not None and (size := Path(path).stat().st_size) > longest:
        raise BadData(f"{path} has {size:,} bytes, but at most {longest:,} are allowed. Remove it from the folder.")
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_json(value: Any) -> str:
    """Return the SHA-256 of a value's JSON with sorted keys, 64 hexadecimal digits; unknown types are converted to text."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def to_plain(value: Any) -> Any:
    """Return a value as JSON types: dataclasses as dictionaries, NaN and infinities as None, NumPy scalars as numbers, paths as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
