"""JPEG streams reduced to what decoding needs, so that nothing else can be in them."""

import io
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from cardiobench.data.media import jpeg
from cardiobench.data.media.jpeg import DHT, DQT, DRI, SOS, Segment
from cardiobench.data.media.optional import require

JFIF = b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
"""Version 1.1, no unit, pixels as wide as high, no thumbnail."""
CUT = 4
"""Bytes without which the end of a scan must decode to other pixels: a reserve of a byte, and 24 bits of code."""
LAST_UNITS = 32
"""Coded units that 32 bits may fill: each has at least a bit."""

_RESTART = re.compile(rb"\xff[\xd0-\xd7]")


def rebuilt(parts: Sequence[Segment], ycc: bool) -> bytes | None:
    """Return a stream with the same pixels; None if bytes cannot be shown to be needed, as in progressive streams.

    Kept are the quantisation and Huffman tables that are used, the frame and scan headers, written anew with component
    ids 1 to 3, the restart interval, the coded data, and one marker of colours. Coded data must not go on behind the
    last unit: without its last bytes, other pixels are decoded.

    Args:
        parts: Segments of a stream with one or three components.
        ycc: Whether three components are YCbCr.

    Raises:
        ValueError: The stream is not one of a DCT with Huffman coding.
    """
    made = _reduced(parts, ycc)
    return None if made is None or _goes_on(made) else jpeg.written(made)


def _reduced(parts: Sequence[Segment], ycc: bool) -> list[Segment] | None:
    frame, scans = jpeg.frame_of(parts), [one for one in parts if one.marker == SOS]
    components = jpeg.components(frame.content)
    if frame.marker == 0xC2 or frame.content[0] != 8 or len(scans) != 1:
        return None
    header, scan, order = scans[0].content, scans[0].scan, {one[0]: number for number, one in enumerate(components, 1)}
    count = len(components)
    selectors = list(zip(header[1 : 1 + 2 * count : 2], header[2 : 2 + 2 * count : 2], strict=False))
    if len(header) != 4 + 2 * count or header[0] != count or header[-3:] != b"\0\x3f\0":
        return None
    if [order.get(name) for name, _ in selectors] != list(range(1, count + 1)):
        return None
    factors = [(one[1] >> 4, one[1] & 15) for one in components]
    if not all(1 <= factor <= 4 for pair in factors for factor in pair):
        return None
    quantisers = {one[2] for one in components}
    coders = {(kind, tables >> 4 if kind == 0 else tables & 15) for _, tables in selectors for kind in (0, 1)}
    made = [Segment(0xE0, JFIF)] if count == 3 and ycc else []
    made += [Segment(0xEE, jpeg.ADOBE + b"\0")] if count == 3 and not ycc else []
    for part in parts:
        if part.marker == DQT:
            made += [Segment(DQT, table) for number, table in _quantisers(part.content) if number in quantisers]
        elif part.marker == DHT:
            made += [Segment(DHT, table) for coder, table in _coders(part.content) if coder in coders]
        elif part.marker == DRI and len(part.content) == 2:
            made.append(part)
        elif part is frame:
            bodies = (bytes((number, *one[1:])) for number, one in enumerate(components, 1))
            made.append(Segment(part.marker, part.content[:6] + b"".join(bodies)))
        elif part is scans[0]:
            chosen = b"".join(bytes((number, tables)) for number, (_, tables) in enumerate(selectors, 1))
            made.append(Segment(SOS, bytes((count,)) + chosen + b"\0\x3f\0", scan))
        elif part.marker < 0xE0:
            return None
    return made


def _quantisers(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the quantisation tables of a segment (T.81 B.2.4.1)."""
    at = 0
    while at < len(content):
        size = 65 + 64 * (content[at] >> 4)
        table = content[at : at + size]
        if len(table) != size or size > 129:
            raise ValueError("a JPEG quantisation table is damaged")
        yield content[at] & 15, table
        at += size


def _coders(content: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield (class, number) and content of the Huffman tables of a segment (T.81 B.2.4.2)."""
    at = 0
    while at < len(content):
        count = sum(content[at + 1 : at + 17])
        table = content[at : at + 17 + count]
        kind, symbols = content[at] >> 4, table[17:]
        largest = 11 if kind == 0 else 10
        if len(table) != 17 + count or kind > 1 or len(set(symbols)) != count:
            raise ValueError("a JPEG Huffman table is damaged")
        if any(one & 15 > largest or (kind == 0 and one > largest) for one in symbols):
            raise ValueError("a JPEG Huffman table has symbols of another process")
        yield (kind, content[at] & 15), table
        at += 17 + count


def _goes_on(parts: Sequence[Segment]) -> bool:
    """Return whether coded data goes on behind the last unit of the image or of a restart interval."""
    frame, (scan,) = jpeg.frame_of(parts).content, (one.scan for one in parts if one.marker == SOS)
    step = max([int.from_bytes(one.content, "big") for one in parts if one.marker == DRI] or [0])
    factors = [(one[1] >> 4, one[1] & 15) for one in jpeg.components(frame)]
    width, height = (8 * max(one[axis] for one in factors) if len(factors) > 1 else 8 for axis in (0, 1))
    across, down = (
        math.ceil(int.from_bytes(frame[at : at + 2], "big") / size) for at, size in ((3, width), (1, height))
    )
    intervals, restarts = _RESTART.split(scan), _RESTART.findall(scan)
    step = step or across * down
    if len(intervals) != math.ceil(across * down / step):
        return True
    cut = b"".join(_without_end(one) + mark for one, mark in zip(intervals, [*restarts, b""], strict=True))
    whole = _decoded(parts)
    changed = (whole != _decoded([one._replace(scan=cut) if one.marker == SOS else one for one in parts])).any(axis=-1)
    ends = np.minimum(step * np.arange(1, len(intervals) + 1), across * down)
    for interval, end in zip(intervals, ends, strict=True):
        units = np.arange(max(end - min(step, LAST_UNITS), 0), end)
        # The border of a unit also depends on the chroma of its neighbours, which end another interval.
        tops, lefts = units // across * height + 1, units % across * width + 1
        inner = (
            changed[top : top + height - 2, left : left + width - 2] for top, left in zip(tops, lefts, strict=True)
        )
        if len(interval) > CUT and not any(map(np.any, inner)):
            return True
    return False


def _without_end(coded: bytes) -> bytes:
    kept = coded[:-CUT] if len(coded) > CUT else coded
    return kept[:-1] if kept.endswith(b"\xff") else kept


def _decoded(parts: Sequence[Segment]) -> np.ndarray:
    """Return the components of a stream without conversion. The array is uint8 (H, W, C)."""
    image_module = require("PIL.Image", "reading DICOM")
    stream = jpeg.with_transform(parts, 0)
    with image_module.open(io.BytesIO(stream), formats=("JPEG",)) as picture:
        return np.asarray(picture).reshape(picture.height, picture.width, -1)
