"""A recording on disk or in memory whose format is not yet known."""

import io
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Self

from cardiobench.core.errors import BadMedia, one_line
from cardiobench.data.media.content import collected, note

Format = Literal["avi", "mp4", "gif", "dicom", "nifti", "png", "jpeg"]

HEAD = 352  # Enough bytes for all magic numbers; the last one, of NIfTI-1, is at byte 344.
IN_MEMORY = 2**26
"""Maximum size in bytes of a file that is read as a whole to digest it; a larger one is read twice."""
COPY_AGAIN = "Copy the file again from its source."


@dataclass(frozen=True)
class MediaFile:
    """Content of a recording, given as path or bytes.

    Attributes:
        content: Path of the file, or its bytes.
        name: Name of the recording in messages.
        size: Bytes.
        head: First bytes of the content.
    """

    content: Path | bytes
    name: str
    size: int
    head: bytes

    @classmethod
    def of(cls, source: Path | str | bytes, name: str = "") -> Self:
        """Open a file or bytes; raises `BadMedia` if there is nothing to read."""
        if isinstance(source, bytes | bytearray | memoryview):
            data = note(bytes(source))
            content: Path | bytes = data
            name, size, head = name or "recording given as bytes", len(data), data[:HEAD]
        else:
            content = path = Path(source)
            name = name or str(path)
            try:
                refuse_special(path)
                with path.open("rb") as stream:
                    size = path.stat().st_size
                    if (digested := collected()) and size <= IN_MEMORY:
                        content = note(stream.read())  # The digest is that of the bytes that are decoded.
                        size, head = len(content), content[:HEAD]
                    else:
                        head = stream.read(HEAD)
                        if digested:
                            stream.seek(0)
                            digested.add_stream(stream, size)
            except OSError as error:
                raise BadMedia(
                    f"{name} cannot be opened ({error.strerror}). Check the path in the dataset's table."
                ) from error
        if size == 0:
            raise BadMedia(f"{name} is empty (0 bytes). {COPY_AGAIN}")
        return cls(content, name, size, head)

    def open(self) -> BinaryIO:
        """Return the content as a seekable stream."""
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open("rb")

    def read(self) -> bytes:
        """Return the whole content."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()

    def bad(self, why: str, action: str = COPY_AGAIN) -> BadMedia:
        """Return an error for this file with its name, the problem and the next action."""
        return BadMedia(f"{self.name} {why}. {action}")


def unreadable(path: Path, kind: str, error: Exception) -> BadMedia:
    """Return an error for a file that a library cannot read as one of this kind, with the library's reason."""
    return BadMedia(f"{path} cannot be read as {kind} ({one_line(error)}). {COPY_AGAIN}")


def refuse_special(path: Path) -> None:
    """Refuse a pipe, a socket or a device, whose content may never end.

    Raises:
        BadMedia: The path is such a file.
        OSError: There is no such file.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise BadMedia(f"{path} is a pipe, a socket or a device, not a file. {COPY_AGAIN}")


def either_case(path: Path) -> Path:
    """Return the existing file with this name, with the suffix in lower or upper case.

    The path itself if neither exists.
    """
    variants = (path, path.with_suffix(path.suffix.upper()), path.with_suffix(path.suffix.lower()))
    return next((variant for variant in variants if variant.is_file()), path)


def sniff(file: MediaFile) -> Format:
    """Return the format of the content by its magic number, regardless of the file name.

    Raises:
        BadMedia: The format is not supported.
    """
    head = file.head
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "avi"
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide"):
        return "mp4"
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    if head[128:132] == b"DICM":
        return "dicom"
    if head[:2] == b"\x1f\x8b" or head[344:348] == b"n+1\0" or head[4:8] == b"n+2\0":
        return "nifti"
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return "png"
    if head[:3] == b"\xff\xd8\xff":
        return "jpeg"
    raise file.bad(
        f"is not an AVI, MP4, GIF, DICOM, NIfTI, PNG or JPEG file: it starts with {head[:12]!r}",
        "Convert it to one of these, or remove it from the dataset's table.",
    )
