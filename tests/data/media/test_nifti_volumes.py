"""Test NIfTI volumes: axes, brightness and invalid files."""

import gzip

import nibabel
import numpy as np
import pytest

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import FrameSampling, read_clip


def nifti_bytes(volume: np.ndarray, slope: float | None = None, inter: float = 0.0, version: int = 1) -> bytes:
    image = (nibabel.Nifti1Image if version == 1 else nibabel.Nifti2Image)(volume, np.eye(4))
    if slope is not None:
        image.header.set_slope_inter(slope, inter)
    return image.to_bytes()


@pytest.fixture
def heart() -> np.ndarray:
    """Return a volume (x, y, time) of (30, 20, 4): a bright spot at the lower right, and frames of increasing brightness."""
    volume = np.zeros((30, 20, 4), np.uint8)
    for time in range(4):
        volume[25:28, 15:17, time] = 60 * (time + 1)
    volume[0, 0] = 15
    volume[29, 19, 3] = 255
    return volume


def test_rows_run_downwards(heart):
    clip = read_clip(nifti_bytes(heart))
    assert clip.frames.shape == (4, 20, 30, 3)
    assert clip.n_frames == 4
    assert clip.fps is None
    for time in range(4):
        for channel in range(3):
            np.testing.assert_array_equal(clip.frames[time, :, :, channel], heart[:, :, time].T)
    assert clip.frames[0, 15, 26, 0] == 60  # The bright spot is in row 15, column 26.


def test_brightness_is_scaled_per_volume(heart):
    volume = heart.astype(np.int16) * 10 - 500  # Values -500 to 2050 become 0 to 255.
    clip = read_clip(nifti_bytes(volume), FrameSampling(2), key_frame=1)
    np.testing.assert_array_equal(clip.indices, [1, 2])
    np.testing.assert_array_equal(clip.frames[..., 0], heart[:, :, 1:3].transpose(2, 1, 0))


def test_levels_are_rounded():
    volume = np.array([[0, 1], [2, 4]], np.float32)[..., None]
    # 1/4 of 255 is 63.75; 2/4 is 127.5, rounded to the even 128.
    np.testing.assert_array_equal(read_clip(nifti_bytes(volume)).frames[0, :, :, 0], [[0, 128], [64, 255]])


def test_scaling_of_the_header_is_applied():
    """Check that a negative slope inverts the brightness."""
    stored = np.array([[0, 10], [20, 40]], np.int16)[..., None]
    clip = read_clip(nifti_bytes(stored, slope=-2.0, inter=7.0))
    np.testing.assert_array_equal(clip.frames[0, :, :, 0], [[255, 128], [191, 0]])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("by_path", [True, False])
def test_versions_byte_orders_and_compression(heart, version, order, packed, by_path, tmp_path):
    image_class = nibabel.Nifti1Image if version == 1 else nibabel.Nifti2Image
    header = image_class.header_class(endianness=order)
    header.set_data_shape(heart.shape)
    header.set_data_dtype(np.int16)
    content = image_class(heart.astype(np.int16), np.eye(4), header).to_bytes()
    content = gzip.compress(content) if packed else content
    path = tmp_path / "patient0001_2CH.weird"
    path.write_bytes(content)
    clip = read_clip(path if by_path else content)
    np.testing.assert_array_equal(clip.frames[..., 0], heart.transpose(2, 1, 0))


@pytest.mark.parametrize("shape", [(30, 20, 1, 4), (30, 20, 4, 1), (30, 20, 1, 4, 1), (30, 20, 4, 1, 1)])
def test_padded_axes(heart, shape):
    clip = read_clip(nifti_bytes(heart.reshape(shape)))
    np.testing.assert_array_equal(clip.frames[..., 0], heart.transpose(2, 1, 0))


@pytest.mark.parametrize("shape", [(30, 20), (30, 20, 1), (30, 20, 1, 1)])
def test_still(heart, shape):
    clip = read_clip(nifti_bytes(heart[:, :, 3].reshape(shape)))
    assert clip.n_frames == 1
    np.testing.assert_array_equal(clip.frames[0, :, :, 0], heart[:, :, 3].T)


PUBLISHED = FrameSampling(None, nifti="paper")


def test_reading_of_the_published_benchmark_is_reproduced(heart):
    """Compare each frame separately: truncated to integers, with x along the rows."""
    clip = read_clip(nifti_bytes(heart), PUBLISHED)
    assert clip.frames.shape == (4, 30, 20, 3)
    first = heart[:, :, 0].astype(np.float32)
    np.testing.assert_array_equal(clip.frames[0, :, :, 0], np.floor(first / np.float32(60) * 255))
    assert clip.frames[0].max() == clip.frames[2].max() == 255
    dark = read_clip(
        nifti_bytes(np.dstack([np.full((5, 4), 9), np.arange(20).reshape(5, 4)]).astype(np.int16)), PUBLISHED
    )
    assert dark.frames[0].max() == 0


# ---- Unreadable files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        (np.zeros((8, 6, 3), np.int16), "is a blank image: every value is 0"),
        (np.full((8, 6, 3), 7.0, np.float32), "is a blank image: every value is 7"),
        (np.zeros((8, 6, 3, 4), np.int16), r"has the shape \(8, 6, 3, 4\). Expected axes"),
        (np.zeros((8, 6, 1, 4, 3), np.int16), "Expected axes"),
        (np.arange(8, dtype=np.int16), r"has the shape \(8,\)"),
        (np.zeros((1, 6, 3), np.int16), r"has the shape \(1, 6, 3\)"),
        (np.zeros((8, 6, 3), np.complex64), "stores values as complex64"),
        (np.zeros((8, 6, 3), [("R", "u1"), ("G", "u1"), ("B", "u1")]), "not as one number per pixel"),
    ],
)
def test_refused_with_the_reason(volume, message):
    with pytest.raises(BadMedia, match=message):
        read_clip(nifti_bytes(volume), name="patient0007")


def test_non_finite_values_are_refused():
    volume = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    volume[0, 0, 0], volume[1, 1, 1] = np.nan, np.inf
    with pytest.raises(BadMedia, match="contains 2 values that are not finite"):
        read_clip(nifti_bytes(volume))


def test_cut_short(heart, tmp_path):
    content = nifti_bytes(heart)
    path = tmp_path / "cut.nii"
    path.write_bytes(content[:-100])
    with pytest.raises(
        BadMedia, match=rf"cut\.nii is cut short: its header declares {352 + 2400} bytes, but it has 2652"
    ):
        read_clip(path)
    for kept in (5, 40, 100):
        packed = gzip.compress(content)
        path.write_bytes(packed[:kept])
        with pytest.raises(BadMedia, match=r"cut\.nii cannot be decoded as NIfTI"):
            read_clip(path)


def test_compressed_text_file_is_refused():
    with pytest.raises(BadMedia, match="notes cannot be decoded as NIfTI"):
        read_clip(gzip.compress(b"patient0001 training"), name="notes")


def test_unknown_nifti_reading_is_refused():
    with pytest.raises(ValueError, match="nifti='raw'"):
        FrameSampling(nifti="raw")
