"""Compare PNG and JPEG images of every pixel type with OpenCV and hand-worked values."""

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import FrameSampling, read_clip
from tests.data.media.videos import moving_frames


def encoded(picture: Image.Image, form: str = "PNG", **options) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


@pytest.fixture
def frame() -> np.ndarray:
    return moving_frames(1, 30, 40)[0]


def test_png_and_jpeg_equal_opencv(frame):
    for content in (encoded(Image.fromarray(frame)), encoded(Image.fromarray(frame), "JPEG", quality=80)):
        clip = read_clip(content, FrameSampling(16), key_frame=9)
        expected = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
        assert clip.frames.shape == (1, 30, 40, 3)
        assert (clip.n_frames, clip.indices.tolist(), clip.fps) == (1, [0], None)
        np.testing.assert_array_equal(clip.frames[0], expected)


def test_png_is_lossless(frame):
    content = encoded(Image.fromarray(frame))
    np.testing.assert_array_equal(read_clip(content).frames[0], frame)


def test_grey_palette_and_black_and_white(frame):
    grey = frame[..., 0]
    for content in (encoded(Image.fromarray(grey)), encoded(Image.fromarray(grey), "JPEG")):
        pixels = read_clip(content).frames[0]
        assert (pixels == pixels[..., :1]).all()
    np.testing.assert_array_equal(read_clip(encoded(Image.fromarray(grey))).frames[0, :, :, 2], grey)
    palette = Image.fromarray((np.arange(1200) % 2).astype(np.uint8).reshape(30, 40), "P")
    palette.putpalette([10, 20, 30, 200, 100, 50])
    pixels = read_clip(encoded(palette)).frames[0]
    np.testing.assert_array_equal(pixels[0, :2], [[10, 20, 30], [200, 100, 50]])
    two = read_clip(encoded(Image.fromarray(grey > 100))).frames[0]
    np.testing.assert_array_equal(two[..., 0], np.where(grey > 100, 255, 0))


def test_sixteen_bit_keeps_the_high_byte_as_opencv_does():
    values = np.arange(1200, dtype=np.uint16).reshape(30, 40) * 54
    content = cv2.imencode(".png", values)[1].tobytes()
    expected = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    pixels = read_clip(content).frames[0]
    np.testing.assert_array_equal(pixels, expected)
    np.testing.assert_array_equal(pixels[..., 0], values >> 8)
    colour = np.dstack([values, values[::-1], values[:, ::-1]])
    content = cv2.imencode(".png", colour)[1].tobytes()
    np.testing.assert_array_equal(read_clip(content).frames[0], (colour >> 8)[..., ::-1])


def test_transparent_pixels_are_blended_with_black(frame):
    alpha = np.full((30, 40), 255, np.uint8)
    opaque = np.dstack([frame, alpha])
    np.testing.assert_array_equal(read_clip(encoded(Image.fromarray(opaque))).frames[0], frame)
    alpha[:10], alpha[10:20] = 0, 51  # 51/255 is 1/5.
    pixels = read_clip(encoded(Image.fromarray(np.dstack([frame, alpha])))).frames[0]
    assert (pixels[:10] == 0).all()
    np.testing.assert_array_equal(pixels[10:20], np.floor(frame[10:20] / 5 + 0.5))
    np.testing.assert_array_equal(pixels[20:], frame[20:])
    grey = Image.fromarray(np.dstack([frame[..., 0], alpha]), "LA")
    assert (read_clip(encoded(grey)).frames[0, :10] == 0).all()


def test_exif_rotation_is_applied(frame):
    exif = Image.Exif()
    exif[0x0112] = 6  # Frames that need a rotation of 90 degrees clockwise.
    content = encoded(Image.fromarray(frame), "JPEG", exif=exif)
    expected = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert expected.shape == (40, 30, 3)
    np.testing.assert_array_equal(read_clip(content).frames[0], expected)


# ---- Unreadable files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_cut_short(frame, form, share, tmp_path):
    content = encoded(Image.fromarray(frame), form)
    path = tmp_path / "1040s1_3.png"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(BadMedia, match=r"1040s1_3\.png cannot be decoded as an image"):
        read_clip(path)


def test_oversized_picture_is_refused():
    """Test a header of 60000 x 60000 pixels without image data."""

    def chunk(tag: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    content = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    with pytest.raises(BadMedia, match="bomb cannot be decoded as an image"):
        read_clip(content, name="bomb")
