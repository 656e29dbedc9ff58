"""NIfTI volumes with time as the third axis, as in echo releases."""

import gzip
import io
import logging
import math
import zlib

import numpy as np

from cardiobench.core.errors import one_line
from cardiobench.data.media.file import MediaFile
from cardiobench.data.media.limits import check_size, max_bytes
from cardiobench.data.media.optional import require
from cardiobench.data.media.types import Clip, FrameSampling

COMPONENT = "reader nifti"
VERSION = 1

HEADER_BYTES = 348
AXES = "Expected axes (x, y), (x, y, time) or (x, y, 1, time)."


def read_nifti(file: MediaFile, sampling: FrameSampling, key_frame: int) -> Clip:
    """Read the frames of a NIfTI recording, .nii or .nii.gz, with rows from top to bottom.

    Values are scaled to 0 to 255 by the minimum and maximum of the whole volume, so brightness does not flicker. NIfTI
    stores x first, so a frame is the transpose of `volume[:, :, t]`. The header has no reliable frame rate, so fps is
    None. With `nifti="paper"` in the sampling, each frame is scaled separately and x remains the rows, as in
    arXiv:2510.00520.

    Args:
        file: The recording.
        sampling: Choice of frames and their scaling.
        key_frame: Frame at which key-frame sampling starts.

    Raises:
        BadMedia: The file is cut short, has other axes, or its values are not finite or all equal.
    """
    volume = _volume(file)
    if volume.dtype.kind == "f" and not np.isfinite(volume).all():
        count = int((~np.isfinite(volume)).sum())
        raise file.bad(f"contains {count} values that are not finite", "Remove it from the dataset's table.")
    low, high = float(volume.min()), float(volume.max())
    if low == high:
        raise file.bad(f"is a blank image: every value is {low:g}", "Remove it from the dataset's table.")
    n_frames = volume.shape[2]
    wanted = sampling.indices(n_frames, key_frame)
    chosen = volume[..., wanted].transpose(2, 0, 1)
    if sampling.nifti == "paper":
        levels = np.stack([_own_range(frame) for frame in chosen])
    else:
        levels = np.rint((chosen.transpose(0, 2, 1).astype(np.float64) - low) * (255 / (high - low))).astype(np.uint8)
    return Clip(np.repeat(levels[..., None], 3, axis=-1), wanted, n_frames, None)


def read_nifti_labels(file: MediaFile) -> tuple[np.ndarray, tuple[float, float]]:
    """Read the stored labels of a segmentation, with rows from top to bottom.

    Returns:
        Labels, uint8 (T, H, W), and the height and width of a pixel in mm as stated in the header, unchecked.

    Raises:
        BadMedia: The file is cut short, has other axes, or its values are not whole numbers from 0 to 255.
    """
    volume, sides = _volume_and_sides(file)
    labels = volume.astype(np.uint8) if volume.dtype.kind != "f" or np.isfinite(volume).all() else None
    if labels is None or not np.array_equal(labels, volume):
        raise file.bad("holds values that are not labels (whole numbers from 0 to 255)", "Remove it from the release.")
    return labels.transpose(2, 1, 0), (sides[1], sides[0])


def nifti_picture_size(file: MediaFile) -> tuple[int, int]:
    """Return height and width of a recording's frames from its header."""
    head = file.head
    if head[:2] == b"\x1f\x8b":
        with file.open() as source, gzip.GzipFile(fileobj=source) as stream:
            try:
                head = stream.read(HEADER_BYTES)
            except (EOFError, OSError, zlib.error) as error:
                raise file.bad(f"cannot be decoded as NIfTI ({error})") from error
    if len(head) < HEADER_BYTES or head[4:8] == b"n+2\0":
        volume = _volume(file)
        return volume.shape[1], volume.shape[0]
    order = "<" if head[:4] == b"\x5c\x01\0\0" else ">"
    width, height = (int(side) for side in np.frombuffer(head, f"{order}i2", 2, 42))
    return height, width


def _volume(file: MediaFile) -> np.ndarray:
    """Return the scaled values (x, y, time)."""
    return _volume_and_sides(file)[0]


def _volume_and_sides(file: MediaFile) -> tuple[np.ndarray, tuple[float, float]]:
    """Return the scaled values (x, y, time), and the pixel size along x and y in mm."""
    nibabel = require("nibabel", "reading NIfTI")
    logging.getLogger("nibabel.global").setLevel(
        logging.CRITICAL
    )  # Messages of nibabel about repairs lack the file name.
    errors = (
        nibabel.filebasedimages.ImageFileError,
        nibabel.spatialimages.HeaderDataError,
        nibabel.wrapstruct.WrapStructError,
        EOFError,
        OSError,
        OverflowError,
        TypeError,
        ValueError,
        zlib.error,
    )
    try:
        content = file.read()
        if content[:2] == b"\x1f\x8b":
            content = _decompressed(file, content)
        image_class = nibabel.Nifti2Image if content[4:8] == b"n+2\0" else nibabel.Nifti1Image
        header = image_class.header_class.from_fileobj(io.BytesIO(content))
        scaled = header.get_slope_inter() not in ((None, None), (1.0, 0.0))
        count, itemsize = math.prod(header.get_data_shape()), header.get_data_dtype().itemsize
        check_size(file.name, count * max(itemsize, 8 if scaled else 0))
        needed = count * itemsize + int(header["vox_offset"])
        if needed > len(content):
            raise file.bad(f"is cut short: its header declares {needed} bytes, but it has {len(content)}")
        volume = np.asanyarray(image_class.from_bytes(content).dataobj)
        # Unchecked, because nibabel's check turns a length of 0 into 1 mm.
        sides = image_class.header_class.from_fileobj(io.BytesIO(content), check=False)["pixdim"][1:3]
    except errors as error:
        raise file.bad(f"cannot be decoded as NIfTI ({one_line(error)})") from error
    return _three_axes(file, volume), (float(sides[0]), float(sides[1]))


def _decompressed(file: MediaFile, content: bytes) -> bytes:
    """Return the content of a gzip file; refuse content above the size limit of a recording."""
    limit = max_bytes()
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        check_size(file.name, math.inf)
    return data


def _three_axes(file: MediaFile, volume: np.ndarray) -> np.ndarray:
    """Return the volume as (x, y, time), without axes of length 1; refuse other shapes."""
    shape = volume.shape
    if volume.dtype.kind not in "iuf":
        raise file.bad(f"stores values as {volume.dtype}, not as one number per pixel", "Convert it to grey values.")
    while volume.ndim > 3 and volume.shape[-1] == 1:
        volume = volume[..., 0]
    if volume.ndim == 4 and volume.shape[2] == 1:
        volume = volume[:, :, 0]
    if volume.ndim == 2:
        volume = volume[..., None]
    if volume.ndim != 3 or min(volume.shape[:2]) < 2 or volume.shape[2] < 1:
        raise file.bad(f"has the shape {shape}", AXES)
    return volume


def _own_range(frame: np.ndarray) -> np.ndarray:
    """Scale a frame (H, W) from its own minimum and maximum to uint8 0 to 255, rounded down; black if constant."""
    frame = frame.astype(np.float32)
    low, high = frame.min(), frame.max()
    return ((frame - low) / (high - low) * 255).astype(np.uint8) if high > low else np.zeros(frame.shape, np.uint8)
