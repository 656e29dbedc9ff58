"""DICOM images and cines, in all colour spaces used for ultrasound."""

import io
import struct
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from cardiobench.data.media.dicom_regions import ultrasound_boxes
from cardiobench.data.media.file import MediaFile
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require, require_pydicom
from cardiobench.data.media.types import Clip, FrameSampling

COMPONENT = "reader dicom"
VERSION = 1

# Converted to RGB by pydicom (YBR_FULL) or by the codec itself (the JPEG 2000 transforms).
COLOUR = frozenset({"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT"})
GREY = frozenset({"MONOCHROME1", "MONOCHROME2"})

LONGEST_ELEMENT = 1 << 20  # Bytes. Longer header values are skipped, because none of them is needed for decoding.
JPEG_BASELINE = "1.2.840.10008.1.2.4.50"
_LIBJPEG = "pip install pylibjpeg pylibjpeg-libjpeg (GPL, so it is not a dependency of cardiobench)"
_LOSSLESS, _LS = (
    ("1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70"),
    ("1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81"),
)
JPEG_PACKAGES = {**dict.fromkeys(_LOSSLESS, _LIBJPEG), **dict.fromkeys(_LS, "pip install pyjpegls")}
"""Transfer syntax of JPEG lossless and JPEG-LS -> command that installs its decoder."""


def read_dicom(file: MediaFile, sampling: FrameSampling, key_frame: int) -> Clip:
    """Decode the requested frames of a DICOM file to RGB.

    Grey values are mapped to display levels by the VOI table or window of the file. Without one, 8-bit values are
    unchanged and deeper values are scaled by the minimum and maximum of the whole recording.

    Source: DICOM PS3.3 C.7.6.3 (pixels), C.11.1 and C.11.2 (modality and VOI transforms), C.7.6.5 (cine).

    Raises:
        BadMedia: The file is damaged, has no pixels, or uses an unsupported colour space or compression.
    """
    pydicom = require_pydicom()
    pixels = require("pydicom.pixels", "reading DICOM")
    try:
        with file.open() as stream:
            header = pydicom.dcmread(stream, stop_before_pixels=True, defer_size=LONGEST_ELEMENT)
            _check_decoder(file, header.file_meta.TransferSyntaxUID)
            if header.file_meta.TransferSyntaxUID.is_encapsulated:
                _check_fragments(file, stream)
        if "Rows" not in header or "PhotometricInterpretation" not in header:
            raise file.bad("is a DICOM file without an image", "Remove it from the dataset's table.")
        n_frames = int(header.get("NumberOfFrames") or 1)
        if not 1 <= n_frames <= file.size:
            raise file.bad(f"declares {n_frames} frames but has {file.size} bytes")
        wanted = sampling.indices(n_frames, key_frame)
        _check_size(file, header, n_frames, len(wanted))
        kind = header.PhotometricInterpretation
        if kind in COLOUR:
            frames = _eight_bit(file, _stored(file, header, wanted))
        elif kind == "PALETTE COLOR":
            frames = pixels.apply_color_lut(_stored(file, header, wanted), header)
            frames = (frames >> 8).astype(np.uint8) if frames.dtype == np.uint16 else frames
        elif kind in GREY:
            frames = np.repeat(_grey(file, header, wanted, n_frames)[..., None], 3, axis=-1)
        else:
            raise file.bad(f"has the unsupported colour space {kind}", "Convert it to RGB.")
        rate, regions = _frame_rate(header), ultrasound_boxes(header)
    except (
        pydicom.errors.InvalidDicomError,
        pydicom.errors.BytesLengthException,
        AttributeError,
        EOFError,
        KeyError,
        NotImplementedError,
        OSError,
        RuntimeError,
        struct.error,
        TypeError,
        ValueError,
    ) as error:
        raise file.bad(f"cannot be decoded as DICOM ({' '.join(str(error).split())})") from error
    return Clip(np.ascontiguousarray(frames), wanted, n_frames, rate, regions=regions)


def _check_size(file: MediaFile, header: Any, n_frames: int, wanted: int) -> None:
    """Refuse a recording whose decoded frames, float64 if grey, exceed the size limit."""
    pixels = int(header.Rows) * int(header.Columns)
    grey = header.PhotometricInterpretation in GREY
    frames = n_frames if grey and int(header.get("BitsStored") or 8) > 8 else wanted
    check_size(file.name, frames * pixels * (8 if grey else 3) * max(1, int(header.get("BitsAllocated") or 8) // 8))


def _check_decoder(file: MediaFile, syntax: Any) -> None:
    """Refuse a compression without an installed decoder, naming the package that has one."""
    pixels = require("pydicom.pixels", "reading DICOM")
    if not syntax.is_encapsulated:
        return
    try:
        decoder = pixels.get_decoder(syntax)
    except NotImplementedError:
        raise file.bad(
            f"is compressed as {syntax.name}, which no decoder supports", "Convert it to JPEG or RLE."
        ) from None
    if not decoder.is_available:
        package = JPEG_PACKAGES.get(str(syntax), "; ".join(decoder.missing_dependencies))
        raise file.bad(
            f"is compressed as {syntax.name}, but no decoder is installed",
            f"Install one: {package}.",
        )


def _lookup_table(file: MediaFile, header: Any, sequence: str) -> bool:
    """Return whether a header has a lookup table in a sequence; refuse an item without a table."""
    items = header.get(sequence)
    if not items:
        return False
    if any(items[0].get(name) is None for name in ("LUTDescriptor", "LUTData")):
        raise file.bad(
            f"has an item in {sequence} without a lookup table", "Export the recording again from its archive."
        )
    return True


def _check_fragments(file: MediaFile, stream: BinaryIO) -> None:
    """Refuse incomplete compressed pixels, because a truncated image decodes without an error and is grey at the end.

    Args:
        file: File named in messages.
        stream: Stream positioned at the pixel data element (PS3.5 A.4: explicit VR little endian, items up to a
            delimiter).
    """
    stream.seek(12, io.SEEK_CUR)  # Tag, VR and undefined length of the element.
    while item := stream.read(8):
        group, element, length = struct.unpack("<HHI", item)
        if (group, element) == (0xFFFE, 0xE0DD):
            return
        end = stream.seek(length, io.SEEK_CUR)
        if (group, element) != (0xFFFE, 0xE000) or end > file.size:
            raise file.bad(f"is cut short or damaged: a compressed image ends at byte {end}, the file at {file.size}")


def _stored(file: MediaFile, header: Any, indices: Iterable[int]) -> np.ndarray:
    """Return the decoded values of some frames, (T, H, W) or (T, H, W, 3), without decompressing others.

    A fixed decoder, which is always installed, is used, because decoders of lossy JPEG differ by a few levels.
    """
    pixels = require("pydicom.pixels", "reading DICOM")
    plugin = "pillow" if header.file_meta.TransferSyntaxUID == JPEG_BASELINE else ""
    with file.open() as stream:
        return np.stack(list(pixels.iter_pixels(stream, indices=map(int, indices), decoding_plugin=plugin)))


def _eight_bit(file: MediaFile, frames: np.ndarray) -> np.ndarray:
    if frames.dtype != np.uint8 or frames.ndim != 4:
        raise file.bad(
            f"stores colour as {frames.dtype} of shape {frames.shape[1:]}, not 3 x 8 bits", "Convert it to RGB."
        )
    return frames


def _grey(file: MediaFile, header: Any, wanted: np.ndarray, n_frames: int) -> np.ndarray:
    """Return the display levels 0 to 255, uint8 (T, H, W), of a grey-scale recording."""
    pixels = require("pydicom.pixels", "reading DICOM")
    bits, signed = int(header.BitsStored), bool(header.PixelRepresentation)
    modality, voi = (_lookup_table(file, header, f"{name}LUTSequence") for name in ("Modality", "VOI"))
    rescaled = (
        modality or float(header.get("RescaleSlope") or 1) != 1 or float(header.get("RescaleIntercept") or 0) != 0
    )
    windowed = "WindowCenter" in header and "WindowWidth" in header
    ranged = not (voi or windowed) and (bits > 8 or signed or rescaled)
    values = _stored(file, header, range(n_frames) if ranged else wanted)
    if rescaled:
        values = pixels.apply_modality_lut(values, header)
    if voi:
        depth = header.VOILUTSequence[0].LUTDescriptor[2]
        level = pixels.apply_voi(values, header) / (2**depth - 1)
    elif windowed:
        level = window(values, header)
    elif ranged:
        low, high = float(values.min()), float(values.max())
        if low == high:
            raise file.bad(f"is a blank image: every value is {low:g}", "Remove it from the dataset's table.")
        level = (values[wanted] - low) / (high - low)
    else:
        level = values / (2**bits - 1)
    if header.PhotometricInterpretation == "MONOCHROME1":
        level = 1 - level
    return np.rint(255 * level).astype(np.uint8)


def window(values: np.ndarray, header: Any) -> np.ndarray:
    """Return the brightness, 0 to 1, of values under the first window of a header (centre, width and function).

    Source: DICOM PS3.3 C.11.2.1.2 (LINEAR) and C.11.2.1.3 (LINEAR_EXACT, SIGMOID).

    Raises:
        ValueError: The width is invalid for the function, or the function is not in the standard.
    """
    center, width = (float(np.atleast_1d(header[tag].value)[0]) for tag in ("WindowCenter", "WindowWidth"))
    function = header.get("VOILUTFunction") or "LINEAR"
    if width <= 0 or (function == "LINEAR" and width < 1):
        raise ValueError(f"window width {width:g}")
    if function == "LINEAR" and width == 1:
        return (values > center - 0.5).astype(float)
    if function == "LINEAR":
        return np.clip((values - (center - 0.5)) / (width - 1) + 0.5, 0, 1)
    if function == "LINEAR_EXACT":
        return np.clip((values - center) / width + 0.5, 0, 1)
    if function == "SIGMOID":
        return 1 / (1 + np.exp(-4 * (values - center) / width))
    raise ValueError(f"window function {function}")


def _frame_rate(header: Any) -> float | None:
    """Return the frames per second from the time between frames, else from the recommended display rate."""
    if header.get("FrameTime"):
        return 1000 / float(header.FrameTime)
    if header.get("FrameTimeVector"):
        return 1000 / float(np.mean(header.FrameTimeVector[1:]))
    rate = header.get("CineRate") or header.get("RecommendedDisplayFrameRate")
    return float(rate) if rate else None
