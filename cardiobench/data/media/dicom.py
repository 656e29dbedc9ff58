"""DICOM images and cines, in all colour spaces used for ultrasound."""

import io
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from cardiobench.core.errors import counted, one_line
from cardiobench.data.media import jpeg
from cardiobench.data.media.dicom_regions import kind_of, ultrasound_boxes
from cardiobench.data.media.file import MediaFile
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import dicom_errors, require, require_pydicom
from cardiobench.data.media.types import Clip, FrameSampling

COMPONENT = "reader dicom"
VERSION = 3

COLOUR = frozenset({"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT"})
YCC = frozenset({"YBR_FULL", "YBR_FULL_422"})  # The codec itself converts from the other two, those of JPEG 2000.
GREY = frozenset({"MONOCHROME1", "MONOCHROME2"})

LONGEST_ELEMENT = 1 << 20  # Bytes. Longer header values are skipped, because none of them is needed for decoding.
JPEG = ("1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51")
JPEG_2000 = ("1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91")
_COD = 0xFF52  # Marker of the coding style of a JPEG 2000 codestream (ITU-T T.800 A.6.1).
_IMAGE = re.compile(rb"\xff\xd8\xff|\xff\x4f\xff\x51|\0{3}\x0cjP  |[\x01-\x0f]\0{3}\x40\0{3}")
"""First bytes of JPEG and JPEG-LS, of a JPEG 2000 codestream and its file format, and of RLE (PS3.5 G.5)."""
_LIBJPEG = "pip install pylibjpeg pylibjpeg-libjpeg (GPL, so it is not a dependency of cardiobench)"
_LOSSLESS, _LS = (
    ("1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70"),
    ("1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81"),
)
JPEG_PACKAGES = {**dict.fromkeys(_LOSSLESS, _LIBJPEG), **dict.fromkeys(_LS, "pip install pyjpegls")}
"""Transfer syntax of JPEG lossless and JPEG-LS -> command that installs its decoder."""


@dataclass(frozen=True)
class DicomPixels:
    """The pixel data of a file.

    Attributes:
        file: File to read.
        header: Its elements before the pixels.
        start: Byte of the offset table of compressed pixels; None if they are not compressed.
        n_frames: Number of frames.
    """

    file: MediaFile
    header: Any
    start: int | None
    n_frames: int

    @property
    def syntax(self) -> str:
        """Transfer syntax."""
        return str(self.header.file_meta.TransferSyntaxUID)

    @property
    def is_jpeg(self) -> bool:
        """Whether the frames are JPEG of 8 bits, the only depth that Pillow decodes."""
        return self.syntax in JPEG and int(self.header.BitsAllocated) == 8

    def streams(self, indices: Iterable[int]) -> Iterator[bytes]:
        """Yield compressed frames without reading others."""
        get_frame = require("pydicom.encaps", "reading DICOM").get_frame
        tables = [self.header.get(name) for name in ("ExtendedOffsetTable", "ExtendedOffsetTableLengths")]
        offsets = None if None in tables else tuple(tables)
        with self.file.open() as stream:
            for index in indices:
                stream.seek(self.start or 0)
                yield get_frame(stream, int(index), extended_offsets=offsets, number_of_frames=self.n_frames)

    def stored(self, indices: Iterable[int], *, raw: bool = False) -> np.ndarray:
        """Return decoded values, (T, H, W) or (T, H, W, 3), without decompressing other frames.

        Args:
            indices: Numbers of the frames.
            raw: Whether YCbCr stays YCbCr.
        """
        pixels = require("pydicom.pixels", "reading DICOM")
        if self.is_jpeg:
            return np.stack([self._jpeg(stream)[0] for stream in self.streams(indices)])
        with self.file.open() as stream:
            return np.stack(list(pixels.iter_pixels(stream, indices=map(int, indices), raw=raw)))

    def rgb(self, indices: np.ndarray) -> np.ndarray:
        """Return colour frames as RGB. The array is uint8 (T, H, W, 3).

        Where a compressed stream states its colours and the header others, the stream is right: headers are rewritten,
        and the conversion of the decoder depends on the stream.
        """
        if self.is_jpeg:
            frames = [_from_ycc(*self._jpeg(stream)) for stream in self.streams(indices)]
            return np.stack(frames)
        if self.syntax in JPEG_2000 and self.header.PhotometricInterpretation in YCC:
            ycc = [not _has_transform(stream) for stream in self.streams(indices)]
            stored = _eight_bit(self.file, self.stored(indices, raw=True))
            return np.stack([_from_ycc(frame, kept) for frame, kept in zip(stored, ycc, strict=True)])
        return _eight_bit(self.file, self.stored(indices))

    def has_ycc(self, parts: Sequence[jpeg.Segment]) -> bool:
        """Return whether the components of a JPEG are YCbCr: by the stream, by the header if the stream does not say."""
        stated = jpeg.has_ycc(parts)
        return self.header.PhotometricInterpretation in YCC if stated is None else stated

    def _jpeg(self, stream: bytes) -> tuple[np.ndarray, bool]:
        """Return the components of a JPEG frame as stored, uint8 (H, W) or (H, W, 3), and whether they are YCbCr.

        Decoders of lossy JPEG differ by a few levels, so Pillow is used, which is always installed.

        Raises:
            BadMedia: Size or number of components are not those of the header.
            ValueError: The stream is damaged.
        """
        image_module = require("PIL.Image", "reading DICOM")
        parts = list(jpeg.segments(stream))
        self.check_size(parts)
        colour = len(jpeg.components(jpeg.frame_of(parts).content)) == 3
        # A marker without a transform keeps libjpeg from converting by rules of its own.
        raw = jpeg.with_transform(parts, 0) if colour else stream
        with image_module.open(io.BytesIO(raw), formats=("JPEG",)) as picture:
            frame = np.asarray(picture)
        if not colour and int(self.header.SamplesPerPixel) == 3:
            frame = np.repeat(frame[..., None], 3, axis=-1)
        return frame, colour and self.has_ycc(parts)

    def check_size(self, parts: Sequence[jpeg.Segment]) -> None:
        """Refuse a JPEG whose size or number of components is not that of the header; grey ones are colours too.

        Raises:
            BadMedia: They differ.
        """
        frame = jpeg.frame_of(parts).content
        size = int.from_bytes(frame[1:3], "big"), int.from_bytes(frame[3:5], "big")
        count, samples = len(jpeg.components(frame)), int(self.header.SamplesPerPixel)
        if count not in (1, samples):
            raise self.file.bad(
                f"declares {samples} samples per pixel as {self.header.PhotometricInterpretation}, but its JPEG has {count}",
                "Export the recording again from its archive.",
            )
        if size != (self.header.Rows, self.header.Columns):
            raise self.file.bad(
                f"declares {self.header.Rows} x {self.header.Columns} pixels, but its JPEG has {size[0]} x {size[1]}",
                "Export the recording again from its archive.",
            )


def _from_ycc(frame: np.ndarray, ycc: bool) -> np.ndarray:
    """Convert a frame, (H, W, 3), to RGB if it is YCbCr (PS3.3 C.7.6.3.1.2)."""
    pixels = require("pydicom.pixels", "reading DICOM")
    return pixels.convert_color_space(frame, "YBR_FULL", "RGB") if ycc else frame


def _has_transform(stream: bytes) -> bool:
    """Return whether a JPEG 2000 codestream converts its components, so that its decoder returns RGB."""
    at = max(stream.find(b"\xff\x4f\xff\x51"), 0) + 2  # A JP2 file has boxes before the codestream.
    while at + 4 <= len(stream):
        marker, length = struct.unpack_from(">HH", stream, at)
        if marker == _COD:
            return stream[at + 8] != 0
        at += 2 + length
    raise ValueError("a JPEG 2000 codestream does not state its coding style")


def read_dicom(file: MediaFile, sampling: FrameSampling, key_frame: int) -> Clip:
    """Decode the requested frames of a DICOM file to RGB.

    Grey values are mapped to display levels by the VOI table or window of the file. Without one, 8-bit values are
    unchanged and deeper values are scaled by the minimum and maximum of the whole recording.

    Source: DICOM PS3.3 C.7.6.3 (pixels), C.11.1 and C.11.2 (modality and VOI transforms), C.7.6.5 (cine).

    Raises:
        BadMedia: The file is damaged, has no pixels, or uses an unsupported colour space or compression.
    """
    try:
        pixels = open_pixels(file)
        wanted = sampling.indices(pixels.n_frames, key_frame)
        _check_size(file, pixels.header, pixels.n_frames, len(wanted))
        frames = display_frames(pixels, wanted)
        rate, regions, kind = _frame_rate(pixels.header), ultrasound_boxes(pixels.header), kind_of(pixels.header)
    except dicom_errors() as error:
        raise file.bad(f"cannot be decoded as DICOM ({one_line(error)})") from error
    return Clip(np.ascontiguousarray(frames), wanted, pixels.n_frames, rate, regions=regions, kind=kind)


def open_pixels(file: MediaFile) -> DicomPixels:
    """Return the pixel data of a file after checks of the header.

    Raises:
        BadMedia: There is no image, no decoder, or a header that contradicts itself.
    """
    pydicom = require_pydicom()
    start = None
    with file.open() as stream:
        header = pydicom.dcmread(stream, stop_before_pixels=True, defer_size=LONGEST_ELEMENT)
        _check_decoder(file, header.file_meta.TransferSyntaxUID)
        syntax = header.file_meta.TransferSyntaxUID
        if syntax.is_encapsulated:
            start, stored = _check_fragments(file, stream)
        else:
            stored = _stored_bytes(stream, syntax)
    if "Rows" not in header or "PhotometricInterpretation" not in header:
        raise file.bad("is a DICOM file without an image", "Remove it from the dataset's table.")
    n_frames = int(header.get("NumberOfFrames") or 1)
    if not 1 <= n_frames <= file.size:
        raise file.bad(f"declares {n_frames} frames but has {file.size} bytes")
    kind, samples = header.PhotometricInterpretation, int(header.SamplesPerPixel)
    if kind not in COLOUR | GREY | {"PALETTE COLOR"}:
        raise file.bad(f"has the unsupported colour space {kind}", "Convert it to RGB.")
    if samples != (3 if kind in COLOUR else 1):
        raise file.bad(
            f"declares {kind} with {samples} samples per pixel; expected {3 if kind in COLOUR else 1}",
            "Export the recording again from its archive.",
        )
    if syntax.is_encapsulated:
        _check_frames(file, n_frames, stored)
    else:
        _check_uncompressed(file, header, n_frames, stored)
    return DicomPixels(file, header, start, n_frames)


def _stored_bytes(stream: BinaryIO, syntax: Any) -> int:
    """Return the number of bytes of uncompressed pixels, given the stream positioned at their element (PS3.5 7.1)."""
    order = "<" if syntax.is_little_endian else ">"
    element = stream.read(12)
    if len(element) < 12:
        return 0
    if syntax.is_implicit_VR:
        return int(struct.unpack_from(f"{order}I", element, 4)[0])
    return int(struct.unpack_from(f"{order}I", element, 8)[0])


def _check_frames(file: MediaFile, declared: int, stored: int) -> None:
    """Refuse a recording of more frames than its header declares, of which the others would not be read.

    Raises:
        BadMedia: There are more.
    """
    if stored > declared:
        raise file.bad(
            f"declares {counted(declared, 'frame')}, but has {stored}", "Export the recording again from its archive."
        )


def _check_uncompressed(file: MediaFile, header: Any, n_frames: int, stored: int) -> None:
    """Refuse uncompressed pixels that do not have the size or layout that the header declares.

    Raises:
        BadMedia: They do not.
    """
    kind, bits = header.PhotometricInterpretation, int(header.get("BitsAllocated") or 8)
    frame = int(header.Rows) * int(header.Columns) * int(header.SamplesPerPixel) * bits // 8
    if kind == "YBR_FULL_422":
        if stored >= n_frames * frame or int(header.get("PlanarConfiguration") or 0):
            raise file.bad(
                "declares YBR_FULL_422, of which two pixels share their chroma, but its pixels are stored as another colour space",
                "Export the recording again from its archive.",
            )
        frame = frame * 2 // 3
    _check_frames(file, n_frames, stored // max(frame, 1))
    if bits > 8 and int(header.get("HighBit") or 0) != int(header.BitsStored) - 1:
        raise file.bad(
            f"declares {header.BitsStored} bits up to bit {header.get('HighBit')}; expected {int(header.BitsStored) - 1}",
            "Export the recording again from its archive.",
        )


def display_frames(pixels: DicomPixels, wanted: np.ndarray) -> np.ndarray:
    """Return frames as RGB. The array is uint8 (T, H, W, 3)."""
    kind = pixels.header.PhotometricInterpretation
    if kind in COLOUR:
        return pixels.rgb(wanted)
    if kind in GREY:
        return np.repeat(_grey(pixels, wanted)[..., None], 3, axis=-1)
    apply_color_lut = require("pydicom.pixels", "reading DICOM").apply_color_lut
    frames = apply_color_lut(pixels.stored(wanted), pixels.header)
    deep = frames.dtype == np.uint16 and _is_deep(pixels.header)
    return (frames >> 8 if deep else frames).astype(np.uint8)


def _is_deep(header: Any) -> bool:
    """Return whether a palette of 16 bits uses more than 8, unlike those of vendors that declare 16 for levels up to 255."""
    tables = [header.get(f"{colour}PaletteColorLookupTableData") for colour in ("Red", "Green", "Blue")]
    return any(table is None or np.frombuffer(table, "<u2").max(initial=0) > 255 for table in tables)


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


def has_lookup_table(file: MediaFile, header: Any, sequence: str) -> bool:
    """Return whether a header has a lookup table in a sequence; refuse an item without a table."""
    items = header.get(sequence)
    if not items:
        return False
    if any(items[0].get(name) is None for name in ("LUTDescriptor", "LUTData")):
        raise file.bad(
            f"has an item in {sequence} without a lookup table", "Export the recording again from its archive."
        )
    return True


def _check_fragments(file: MediaFile, stream: BinaryIO) -> tuple[int, int]:
    """Return the byte of the offset table of compressed pixels, and the number of frames.

    A frame may have several fragments, of which the first one begins like an image.

    Incomplete pixels are refused, because a truncated image decodes without an error and is grey at the end.

    Args:
        file: File named in messages.
        stream: Stream positioned at the pixel data element (PS3.5 A.4: explicit VR little endian, items up to a
            delimiter).
    """
    start = stream.seek(12, io.SEEK_CUR)  # Tag, VR and undefined length of the element.
    frames, table = 0, True  # The first item is the offset table.
    while item := stream.read(8):
        if len(item) < 8:
            raise file.bad(f"is cut short: its compressed images end at byte {file.size} without a delimiter")
        group, element, length = struct.unpack("<HHI", item)
        if (group, element) == (0xFFFE, 0xE0DD):
            break
        begin = stream.read(min(length, 8))
        frames += not table and _IMAGE.match(begin) is not None
        table = False
        end = stream.seek(length - len(begin), io.SEEK_CUR)
        if (group, element) != (0xFFFE, 0xE000) or end > file.size:
            raise file.bad(f"is cut short or damaged: a compressed image ends at byte {end}, the file at {file.size}")
    return start, frames


def _eight_bit(file: MediaFile, frames: np.ndarray) -> np.ndarray:
    if frames.dtype != np.uint8 or frames.ndim != 4:
        raise file.bad(
            f"stores colour as {frames.dtype} of shape {frames.shape[1:]}, not 3 x 8 bits", "Convert it to RGB."
        )
    return frames


def _grey(image: DicomPixels, wanted: np.ndarray) -> np.ndarray:
    """Return the display levels 0 to 255, uint8 (T, H, W), of a grey-scale recording."""
    pixels = require("pydicom.pixels", "reading DICOM")
    file, header = image.file, image.header
    bits, signed = int(header.BitsStored), bool(header.PixelRepresentation)
    modality, voi = (has_lookup_table(file, header, f"{name}LUTSequence") for name in ("Modality", "VOI"))
    rescaled = (
        modality or float(header.get("RescaleSlope") or 1) != 1 or float(header.get("RescaleIntercept") or 0) != 0
    )
    windowed = "WindowCenter" in header and "WindowWidth" in header
    ranged = not (voi or windowed) and (bits > 8 or signed or rescaled)
    values = image.stored(range(image.n_frames) if ranged else wanted)
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
