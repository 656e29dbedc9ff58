"""Segments of JPEG streams (ITU-T T.81 annex B), and the colours that a stream states."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SOI, EOI, SOS, DQT, DHT, DRI, DNL = 0xD8, 0xD9, 0xDA, 0xDB, 0xC4, 0xDD, 0xDC
APP0, APP14 = 0xE0, 0xEE
FRAMES = (0xC0, 0xC1, 0xC2)
"""Baseline, extended and progressive frames with Huffman coding: what libjpeg decodes."""
ADOBE = b"Adobe\0\x64\0\0\0\0"
"""Begin of an Adobe marker (TN 5116): version 100, no flags; the colour transform follows."""

_MARKER = re.compile(rb"\xff+([\x01-\xcf\xd8-\xfe])", re.DOTALL)  # In coded data, FF00 is a byte, FFD0 to FFD7 restart.


class Segment(NamedTuple):
    """A marker with its parameters, and the coded data after it.

    Attributes:
        marker: Second byte of the marker.
        content: Parameters without their length.
        scan: Coded data up to the next marker; empty except after SOS.
    """

    marker: int
    content: bytes
    scan: bytes = b""


def segments(stream: bytes) -> Iterator[Segment]:
    """Yield the segments between the start and the end of an image; bytes after the end are ignored.

    Raises:
        ValueError: The stream does not begin with SOI, a marker is missing, or it ends before EOI.
    """
    if stream[:2] != b"\xff\xd8":
        raise ValueError(f"a JPEG stream begins with {stream[:2]!r}; expected SOI (FFD8)")
    at = 2
    while True:
        while stream[at : at + 2] == b"\xff\xff":  # Fill bytes.
            at += 1
        if stream[at : at + 1] != b"\xff" or at + 1 >= len(stream):
            raise ValueError(f"a JPEG stream has no marker at byte {at} of {len(stream)}")
        marker = stream[at + 1]
        if marker == EOI:
            return
        length = int.from_bytes(stream[at + 2 : at + 4], "big")
        content = stream[at + 4 : at + 2 + length]
        if length < 2 or len(content) != length - 2:
            raise ValueError(f"a JPEG segment FF{marker:02X} of {length} bytes is cut short")
        at += 2 + length
        scan = b""
        if marker == SOS:
            end = _MARKER.search(stream, at)
            if end is None:
                raise ValueError("a JPEG stream ends before EOI (FFD9)")
            scan, at = stream[at : end.start()], end.start()
        yield Segment(marker, content, scan)


def components(frame: bytes) -> list[tuple[int, int, int]]:
    """Return id, sampling factors (horizontal * 16 + vertical) and quantisation table of each component of a frame header.

    Raises:
        ValueError: The length of the header is not that of its components.
    """
    if len(frame) < 6 or len(frame) != 6 + 3 * frame[5]:
        raise ValueError(f"a JPEG frame header has {len(frame)} bytes, not those of its components")
    return [(frame[at], frame[at + 1], frame[at + 2]) for at in range(6, len(frame), 3)]


def has_ycc(parts: Sequence[Segment]) -> bool | None:
    """Return whether three components are YCbCr (True) or RGB (False); None if the stream does not say.

    In this order: the transform in an Adobe marker, components called R, G and B, a JFIF marker, which allows YCbCr only,
    and subsampled chroma. Ids 1, 2 and 3 without a marker or subsampling are used for both.

    Raises:
        ValueError: There is no frame header, or it is invalid.
    """
    adobe = next((one.content for one in parts if one.marker == APP14 and one.content[:5] == b"Adobe"), b"")
    jfif = any(one.marker == APP0 and one.content[:5] == b"JFIF\0" for one in parts)
    ids, factors, _ = zip(*components(frame_of(parts).content), strict=True)
    if len(adobe) >= 12:
        return adobe[11] != 0
    if bytes(ids) in (b"RGB", b"rgb"):
        return False
    return True if jfif or len(set(factors)) > 1 else None


def frame_of(parts: Sequence[Segment]) -> Segment:
    """Return the frame header; raises `ValueError` if there is none, several, or one of another process."""
    found = [one for one in parts if 0xC0 <= one.marker <= 0xCF and one.marker not in (DHT, 0xC8, 0xCC)]
    if len(found) != 1 or found[0].marker not in FRAMES:
        kinds = ", ".join(f"FF{one.marker:02X}" for one in found) or "none"
        raise ValueError(f"a JPEG stream has the frame headers {kinds}; expected one of a DCT with Huffman coding")
    return found[0]


def written(parts: Sequence[Segment]) -> bytes:
    """Return the stream of some segments, with SOI and EOI."""
    body = b"".join(
        bytes((0xFF, one.marker)) + (len(one.content) + 2).to_bytes(2, "big") + one.content + one.scan for one in parts
    )
    return b"\xff\xd8" + body + b"\xff\xd9"


def with_transform(parts: Sequence[Segment], transform: int) -> bytes:
    """Return a stream with one marker of colours: transform 0 is none, 1 YCbCr (of three components)."""
    kept = [one for one in parts if one.marker < APP0]
    return written([Segment(APP14, ADOBE + bytes((transform,))), *kept])
