"""Generate recordings, and decode them with third-party libraries for comparison."""

import struct
from pathlib import Path

import av
import cv2
import numpy as np


def moving_frames(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return smooth coloured noise that changes between frames, uint8 RGB (count, height, width, 3)."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, -(-height // 8), -(-width // 8), 3), dtype=np.uint8)
    return np.stack([cv2.resize(frame, (width, height), interpolation=cv2.INTER_CUBIC) for frame in coarse])


def write_video(
    path: Path,
    frames: np.ndarray,
    codec: str,
    pixels: str = "yuv420p",
    *,
    rotation: int = 0,
    movflags: str = "",
    **options,
) -> Path:
    """Encode frames at 25 frames/s with FFmpeg; the suffix chooses the container."""
    with av.open(str(path), "w", options={"movflags": movflags} if movflags else {}) as container:
        stream = container.add_stream(codec, rate=25, options={key: str(value) for key, value in options.items()})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pixels
        if rotation:
            stream.set_display_rotation(rotation)
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path


def mjpg_packets(frames: np.ndarray) -> list[bytes]:
    """Encode each frame as JPEG with OpenCV."""
    return [cv2.imencode(".jpg", frame[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes() for frame in frames]


def avi_of(
    packets: list[bytes], size: tuple[int, int], *, codec: bytes = b"MJPG", header_count=None, index=True
) -> bytes:
    """Return an AVI written chunk by chunk, so that a test can set a wrong header or omit the index."""
    height, width = size
    count = len(packets) if header_count is None else header_count

    def chunk(tag: bytes, data: bytes) -> bytes:
        return tag + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    main = struct.pack("<14I", 40_000, 0, 0, 0x10 if index else 0, count, 0, 1, 0, width, height, 0, 0, 0, 0)
    stream = b"vids" + codec + struct.pack("<IHHIIIIIIiI4H", 0, 0, 0, 0, 1, 25, 0, count, 0, -1, 0, 0, 0, width, height)
    picture = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, codec, width * height * 3, 0, 0, 0, 0)
    header = b"hdrl" + chunk(b"avih", main)
    header += chunk(b"LIST", b"strl" + chunk(b"strh", stream) + chunk(b"strf", picture))
    movie, table = b"movi", b""
    for packet in packets:
        table += b"00dc" + struct.pack("<3I", 0x10, len(movie), len(packet))
        movie += chunk(b"00dc", packet)
    body = b"AVI " + chunk(b"LIST", header) + chunk(b"LIST", movie) + (chunk(b"idx1", table) if index else b"")
    return chunk(b"RIFF", body)


def opencv_frames(path: Path) -> np.ndarray:
    """Decode all frames with OpenCV, in RGB order."""
    capture = cv2.VideoCapture(str(path))
    frames = []
    while True:
        more, frame = capture.read()
        if not more:
            return np.stack(frames)
        frames.append(frame[..., ::-1])
