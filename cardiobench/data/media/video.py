"""AVI, MP4 and GIF videos; only the requested frames are decoded (PyAV, one thread)."""

import struct
from collections.abc import Iterator, Set
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from cardiobench.data.media.file import Format, MediaFile
from cardiobench.data.media.limits import check_size, max_bytes
from cardiobench.data.media.optional import require
from cardiobench.data.media.types import Clip, FrameSampling

COMPONENT = "reader video"
VERSION = 1

MOST_FRAMES = 1_000_000  # Stop here, to bound the time for a file that declares too many.
# Codecs whose packets are independent images, so the packets in between need not be decoded.
INTRA_ONLY = frozenset({"mjpeg", "rawvideo"})


def read_video(file: MediaFile, form: Format, sampling: FrameSampling, key_frame: int) -> Clip:
    """Decode the requested frames of a video, bit-identical to those of a full decode.

    Frames are numbered in display order. `n_frames` is the number of stored images, or of displayed images if the
    decoder skips some before the last requested frame.

    Raises:
        BadMedia: The video is cut short, damaged, or has no frame.
    """
    av = require("av", "reading video")
    _check_end(file, form)
    n_frames = None
    try:
        while n_frames != 0:
            with _opened(file, form) as (container, stream):
                if n_frames is None:
                    n_frames = _listed(file, stream)
                if n_frames is None:
                    n_frames = sum(1 for packet in _packets(file, container, stream) if _holds_picture(packet))
                    continue  # Counting consumed the container.
                wanted = sampling.indices(n_frames, key_frame)
                check_size(file.name, 3 * stream.width * stream.height * len(wanted))
                frames, shown = _decode(file, container, stream, wanted, n_frames)
                if len(frames) == len(wanted):
                    rate = stream.average_rate
                    return Clip(np.stack(frames), wanted, n_frames, float(rate) if rate else None)
                # A packet without an image (a not-coded MPEG-4 frame) is only recognised after decoding it.
                n_frames = shown
    except av.error.FFmpegError as error:
        raise file.bad(f"cannot be decoded as {form.upper()} ({error.strerror})") from error
    raise file.bad("is a video without a single frame")


def _check_end(file: MediaFile, form: Format) -> None:
    """Refuse a file whose structure shows that frames or its end are missing (AVI sizes, GIF end mark)."""
    if form == "avi":
        declared = struct.unpack("<I", file.head[4:8])[0] + 8
        # One byte of grace, for writers that count the padding of the last chunk without writing it.
        if declared > file.size + 1:
            raise file.bad(f"is cut short: its header declares {declared} bytes, but it has {file.size}")
        # A full decode skips such frames, which would shorten the clip and shift its key frame.
        with file.open() as stream:
            sizes = list(islice(_chunk_sizes(stream), MOST_FRAMES))
        if empty := sizes.count(0):
            raise file.bad(f"is damaged: {empty} of its {len(sizes)} frames have no bytes")
    if form == "gif":
        with file.open() as stream:
            stream.seek(-min(file.size, 512), 2)
            if not stream.read().rstrip(b"\0").endswith(b";"):
                raise file.bad("is cut short: it has no end mark")


def _chunk_sizes(stream: BinaryIO) -> Iterator[int]:
    """Yield the number of bytes of every frame of an AVI, from the headers of its chunks."""
    position = 0
    while len(head := _read_at(stream, position, 12)) >= 8 and head[:4].isascii() and head[:4].strip(b"\0"):
        tag, size = head[:4], struct.unpack("<I", head[4:8])[0]
        if tag == b"RIFF" or (tag == b"LIST" and head[8:12] in (b"movi", b"rec ")):
            position += 12  # Offset of the first chunk in the list.
            continue
        if tag[2:] in (b"dc", b"db"):
            yield size
        position += 8 + size + size % 2


def _read_at(stream: BinaryIO, position: int, count: int) -> bytes:
    stream.seek(position)
    return stream.read(count)


@contextmanager
def _opened(file: MediaFile, form: Format) -> Iterator[tuple[Any, Any]]:
    """Yield the container and its first video stream; the format is given, so no other demuxer is tried."""
    av = require("av", "reading video")
    with file.open() as source, av.open(source, format=form, metadata_errors="replace") as container:
        if not container.streams.video:
            raise file.bad("has no video stream")
        stream = container.streams.video[0]
        if stream.codec_context is None:
            raise file.bad("has a video stream that no installed codec can decode", "Convert it to MJPG or H.264.")
        stream.thread_type = "NONE"
        # Images have their own headers, which may state a larger size than the container.
        stream.codec_context.options = {"max_pixels": str(min(max_bytes() // 3, 2**31 - 1))}
        yield container, stream


def _listed(file: MediaFile, stream: Any) -> int | None:
    """Return the number of images in the container's index.

    None if the index is empty or shorter than stated in the header.
    """
    index = stream.index_entries
    if not 0 < stream.frames <= len(index):
        return None
    end = max(entry.pos + entry.size for entry in index)
    if end > file.size:
        raise file.bad(f"is cut short: its index points to byte {end}, but it has {file.size} bytes")
    return sum(1 for entry in index if entry.size and not entry.is_discard)


def _packets(file: MediaFile, container: Any, stream: Any) -> Iterator[Any]:
    """Yield all packets in file order; the last one is empty and flushes the decoder."""
    for packet in container.demux(stream):
        if packet.is_corrupt:
            raise file.bad("is cut short or damaged: an image is incomplete")
        yield packet


def _holds_picture(packet: Any) -> bool:
    return packet.size > 0 and not packet.is_discard


def _pictures(
    file: MediaFile, container: Any, stream: Any, wanted: Set[int], n_frames: int
) -> Iterator[tuple[int, Any]]:
    """Yield number and image in display order: all images, or only the requested ones if images are independent."""
    alone = stream.codec_context.name in INTRA_ONLY
    read = shown = 0
    for packet in _packets(file, container, stream):
        if not alone:
            for picture in packet.decode():
                yield shown, picture
                shown += 1
        elif read in wanted and _holds_picture(packet):
            pictures = packet.decode()
            if len(pictures) != 1:
                raise file.bad(f"is damaged: frame {read} contains {len(pictures)} images")
            yield read, pictures[0]
        read += _holds_picture(packet)
    if read < n_frames:
        raise file.bad(f"is damaged: its index lists {n_frames} frames, but it has {read}")


def _decode(
    file: MediaFile, container: Any, stream: Any, wanted: np.ndarray, n_frames: int
) -> tuple[list[np.ndarray], int]:
    """Return the requested frames and the number of decoded frames (all frames if a requested one is missing)."""
    convert = require("av.video.reformatter", "reading video").VideoReformatter()
    waiting = set(wanted.tolist())
    frames: list[np.ndarray] = []
    passed = 0
    for number, picture in _pictures(file, container, stream, frozenset(waiting), n_frames):
        passed = number + 1
        # Later images depend on earlier ones, so an image repaired by the decoder corrupts those that follow.
        if picture.is_corrupt:
            raise file.bad(f"is damaged: frame {number} cannot be decoded completely")
        if number in waiting:
            waiting.remove(number)
            frames.append(_rgb(convert, picture))
            if frames[-1].shape != frames[0].shape:
                raise file.bad(f"changes its frame size from {frames[0].shape[:2]} to {frames[-1].shape[:2]}")
        if not waiting:
            break
    return frames, passed


def _rgb(convert: Any, picture: Any) -> np.ndarray:
    """Return a decoded image as uint8 RGB (H, W, 3), a view of its memory, rotated as stated in the recording.

    Chroma is interpolated bicubically, as in OpenCV. One converter is shared by all frames to save its setup.
    """
    plane = convert.reformat(picture, format="rgb24", interpolation="BICUBIC", threads=1).planes[0]
    height, width = picture.height, picture.width
    rows = np.frombuffer(plane, np.uint8).reshape(height, plane.line_size)
    pixels = rows[:, : 3 * width].reshape(height, width, 3)
    return np.rot90(pixels, round(picture.rotation / 90)) if picture.rotation else pixels
