"""De-identification of DICOM images by the basic profile of DICOM PS3.15 annex E: the file is built anew.

No byte is copied: each kept element is parsed, checked against the values that it may have and written again, and the
pixels are written from decoded values, or as JPEG streams reduced to what decoding needs.
"""

import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardiobench.data.media import jpeg, jpeg_rebuilt
from cardiobench.data.media.dicom import COLOUR, GREY, DicomPixels, display_frames, has_lookup_table, open_pixels
from cardiobench.data.media.dicom_regions import CORNERS
from cardiobench.data.media.file import MediaFile, unreadable
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import dicom_errors, require, require_pydicom

if TYPE_CHECKING:
    from pydicom import Dataset

METHOD = "DICOM PS3.15 basic profile, kept: pixels and their decoding"  # The standard allows at most 64 characters.
MOST_REGIONS = 64
FRAME_TIMES = {"FrameTime": 0x00181063, "FrameTimeVector": 0x00181065}


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        number = int(value)
        if number != float(value) or not low <= number <= high:
            raise ValueError
        return number

    return parse


def _real(low: float, high: float) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        number = float(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return parse


def _one_of(*values: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if str(value) not in values:
            raise ValueError
        return str(value)

    return parse


def _each(parse: Callable[[Any], Any], most: int) -> Callable[[Any], list]:
    def parse_all(value: Any) -> list:
        values = [value] if isinstance(value, str | bytes | int | float) else list(value)
        if len(values) > most:
            raise ValueError
        return [parse(one) for one in values]

    return parse_all


def _sop_class(value: Any) -> str:
    known = require("pydicom.uid", "reading DICOM").UID_dictionary
    if known.get(str(value), ("", ""))[1] != "SOP Class":
        raise ValueError
    return str(value)


_MILLISECONDS, _PER_SECOND = _real(0, 1000), _whole(0, 1000)
_LEVEL = _real(-(2.0**17), 2.0**17)  # Twice the levels of 16 bits. A date of six digits is beyond most of them.
IMAGE: Mapping[str, Callable[[Any], Any]] = {
    "SOPClassUID": _sop_class,
    "Modality": _one_of("US", "IVUS", "OT", "XA", "CT", "MR", "NM", "PT", "SC"),
    "FrameTime": _MILLISECONDS,
    "FrameTimeVector": _each(_MILLISECONDS, 65_536),
    "CineRate": _PER_SECOND,
    "RecommendedDisplayFrameRate": _PER_SECOND,
    "PixelAspectRatio": _each(_whole(1, 1000), 2),
    "UltrasoundColorDataPresent": _whole(0, 1),
    "BurnedInAnnotation": _one_of("YES", "NO"),
    "LossyImageCompression": _one_of("00", "01"),
}
"""Elements of every image (PS3.3 C.7.6.5 cine, C.8.5.6 ultrasound) -> function that parses or refuses the value."""
LEVELS: Mapping[str, Callable[[Any], Any]] = {
    "WindowCenter": _LEVEL,
    "WindowWidth": _LEVEL,
    "VOILUTFunction": _one_of("LINEAR", "LINEAR_EXACT", "SIGMOID"),
    "RescaleSlope": _LEVEL,
    "RescaleIntercept": _LEVEL,
}
"""The same for grey images (C.11.1, C.11.2)."""
REGION: dict[str, Callable[[Any], Any]] = {
    "RegionSpatialFormat": _whole(0, 5),
    "RegionDataType": _whole(0, 18),
    "RegionFlags": _whole(0, 63),
    **dict.fromkeys(CORNERS, _whole(0, 65_535)),  # At most the longer side of the image.
}
"""The same for a region of an ultrasound image (C.8.5.5)."""
DESCRIBED = frozenset({
    "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration", "Rows", "Columns", "BitsAllocated",
    "BitsStored", "HighBit", "PixelRepresentation", "NumberOfFrames", "FrameIncrementPointer", "PixelData",
})  # fmt: skip
"""Elements that are made from the pixels."""
KEPT = frozenset({*IMAGE, *LEVELS, *REGION, "SequenceOfUltrasoundRegions", *DESCRIBED})


def is_dicom(path: Path) -> bool:
    """Return whether a file starts like a DICOM file."""
    try:
        with path.open("rb") as stream:
            return stream.read(132)[128:] == b"DICM"
    except OSError:
        return False


def deidentified(path: Path) -> bytes:
    """Return a DICOM file without names, dates, identifiers, private elements and comments; the images are unchanged.

    JPEG streams keep their coded pixels if nothing else can be in them. Other compressed frames are written as lossless
    JPEG 2000, and palettes and lookup tables are applied. The instance gets a new identifier derived from the pixels.
    Text burned into the image remains.

    Raises:
        BadMedia: The file cannot be read as DICOM, or an element has a value that it cannot have.
    """
    pydicom = require_pydicom()
    check_size(str(path), path.stat().st_size)
    file = MediaFile.of(path)
    try:
        made = _image(open_pixels(file))
        digest = hashlib.sha256(made.PixelData).hexdigest()
        made.SOPInstanceUID = pydicom.uid.generate_uid(entropy_srcs=["cardiobench", digest])
        made.PatientIdentityRemoved, made.DeidentificationMethod = "YES", METHOD
        made.file_meta.MediaStorageSOPClassUID = made.get("SOPClassUID") or pydicom.uid.UltrasoundImageStorage
        made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID
        made.preamble = b"\0" * 128
        buffer = io.BytesIO()
        pydicom.dcmwrite(buffer, made, enforce_file_format=True)
    except dicom_errors() as error:
        raise unreadable(path, "DICOM", error) from error
    return buffer.getvalue()


def _image(pixels: DicomPixels) -> "Dataset":
    """Return the kept elements and the pixels, with the transfer syntax.

    Raises:
        BadMedia: A value is not one that its element can have.
    """
    pydicom = require_pydicom()
    file, header, every = pixels.file, pixels.header, np.arange(pixels.n_frames)
    grey = header.PhotometricInterpretation in GREY
    has_tables = grey and any([has_lookup_table(file, header, f"{name}LUTSequence") for name in ("Modality", "VOI")])
    made = pydicom.Dataset()
    made.file_meta = pydicom.dataset.FileMetaDataset()
    _set(file, header, IMAGE, made)
    if grey and not has_tables:
        _set(file, header, LEVELS, made)
    _set_regions(file, header, made)
    frames = None if has_tables else _jpeg_frames(pixels, every)
    if frames is not None:
        kind, streams = frames
        _describe(made, kind, (pixels.n_frames, int(header.Rows), int(header.Columns)), 8, 8, False)
        _encapsulate(made, streams, pixels.syntax)
    elif grey and not has_tables:
        values = pixels.stored(every, raw=True)
        _store(made, values, str(header.PhotometricInterpretation), int(header.BitsStored), pixels.start is not None)
    elif grey:
        _store(made, display_frames(pixels, every)[..., 0], "MONOCHROME2", 8, pixels.start is not None)
    else:
        _store(made, display_frames(pixels, every), "RGB", 8, pixels.start is not None)
    return made


def _set(file: MediaFile, source: "Dataset", table: Mapping[str, Callable[[Any], Any]], made: "Dataset") -> None:
    """Copy the elements of a table that are there, parsed and formatted again.

    Raises:
        BadMedia: A value is not one that the element can have. It may identify a patient, so it is not shown.
    """
    format_number = require("pydicom.valuerep", "reading DICOM").format_number_as_ds
    for keyword, parse in table.items():
        value = source.get(keyword)
        if value is None or value == "" or value == []:
            continue
        if keyword in ("WindowCenter", "WindowWidth"):
            value = np.atleast_1d(value)[0]  # Of several windows, the reader applies the first.
        try:
            parsed = parse(value)
            if source[keyword].VR == "DS":
                parsed = list(map(format_number, parsed)) if isinstance(parsed, list) else format_number(parsed)
        except (OverflowError, TypeError, ValueError):
            raise file.bad(
                f"has a value of {keyword} that this element cannot have, so it is not copied",
                "Correct the element, or remove the file from the dataset's table.",
            ) from None
        setattr(made, keyword, parsed)
        if keyword in FRAME_TIMES:
            made.FrameIncrementPointer = FRAME_TIMES[keyword]


def _set_regions(file: MediaFile, header: "Dataset", made: "Dataset") -> None:
    regions = header.get("SequenceOfUltrasoundRegions") or ()
    if len(regions) > MOST_REGIONS:
        raise file.bad(f"has {len(regions)} ultrasound regions; expected at most {MOST_REGIONS}")
    items = [type(made)() for _ in regions]
    longest = max(int(header.Rows), int(header.Columns))
    for item, region in zip(items, regions, strict=True):
        _set(file, region, REGION | dict.fromkeys(CORNERS, _whole(0, longest)), item)
    if items:
        made.SequenceOfUltrasoundRegions = items


def _jpeg_frames(pixels: DicomPixels, every: np.ndarray) -> tuple[str, list[bytes]] | None:
    """Return colour space and streams of JPEG frames; None if the frames are stored in another form."""
    if not pixels.is_jpeg or pixels.header.PhotometricInterpretation not in COLOUR | GREY:
        return None
    made, kinds = [], []
    for stream in pixels.streams(every):
        parts = list(jpeg.segments(stream))
        pixels.check_size(parts)
        colour = len(jpeg.components(jpeg.frame_of(parts).content)) == 3
        ycc = colour and pixels.has_ycc(parts)
        one = jpeg_rebuilt.rebuilt(parts, ycc)
        if one is None:
            return None
        made.append(one)
        kinds.append("YBR_FULL_422" if ycc else "RGB" if colour else "MONOCHROME2")
    if len({kind.startswith("MONO") for kind in kinds}) > 1:
        return None
    return str(pixels.header.PhotometricInterpretation) if pixels.header.SamplesPerPixel == 1 else kinds[0], made


def _describe(made: "Dataset", kind: str, shape: tuple[int, ...], bits: int, stored: int, signed: bool) -> None:
    """Set the elements that describe frames of shape (T, H, W)."""
    colour = kind not in GREY
    made.NumberOfFrames, made.Rows, made.Columns = shape
    made.SamplesPerPixel, made.PhotometricInterpretation = 3 if colour else 1, kind
    if colour:
        made.PlanarConfiguration = 0
    made.BitsAllocated, made.BitsStored, made.HighBit, made.PixelRepresentation = bits, stored, stored - 1, int(signed)


def _store(made: "Dataset", values: np.ndarray, kind: str, stored: int, compress: bool) -> None:
    """Set the pixels from decoded frames, (T, H, W) or (T, H, W, 3), without loss.

    Raises:
        ValueError: The values are not whole numbers of 8 or 16 bits.
    """
    uid = require("pydicom.uid", "reading DICOM")
    bits, signed = 8 * values.dtype.itemsize, values.dtype.kind == "i"
    if values.dtype.kind not in "iu" or bits not in (8, 16) or not 0 < stored <= bits:
        raise ValueError(f"pixels of {stored} bits in {values.dtype} are not supported")
    if compress and values.dtype == np.uint8 and stored == 8:
        _describe(made, "YBR_RCT" if kind == "RGB" else kind, values.shape[:3], 8, 8, False)
        _encapsulate(made, list(map(_jpeg_2000, values)), uid.JPEG2000Lossless)
        return
    _describe(made, kind, values.shape[:3], bits, stored, signed)
    content = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()
    made.PixelData = content + b"\0" * (len(content) % 2)
    made["PixelData"].VR = "OB" if bits == 8 else "OW"
    made.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian


def _jpeg_2000(frame: np.ndarray) -> bytes:
    """Return a lossless codestream of a frame. The array is uint8 (H, W) or (H, W, 3)."""
    image_module = require("PIL.Image", "reading DICOM")
    stream = io.BytesIO()
    image_module.fromarray(frame).save(stream, "JPEG2000", no_jp2=True, mct=int(frame.ndim == 3), irreversible=False)
    return stream.getvalue()


def _encapsulate(made: "Dataset", streams: list[bytes], syntax: str) -> None:
    made.PixelData = require("pydicom.encaps", "reading DICOM").encapsulate(streams)
    made["PixelData"].VR, made["PixelData"].is_undefined_length = "OB", True
    made.file_meta.TransferSyntaxUID = require("pydicom.uid", "reading DICOM").UID(syntax)
