"""De-identification of DICOM files by the basic profile of DICOM PS3.15 annex E; only the images are kept."""

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.file import COPY_AGAIN
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require

if TYPE_CHECKING:
    from pydicom import Dataset

# Elements needed for decoding and display (PS3.3 C.7.6.3 pixels, C.7.6.5 cine, C.7.9 palettes, C.8.5.5 regions,
# C.11.1-2 lookup tables).
KEPT = frozenset({
    "SOPClassUID", "Modality", "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration", "Rows", "Columns",
    "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "PixelAspectRatio", "NumberOfFrames",
    "FrameIncrementPointer", "FrameTime", "FrameTimeVector", "CineRate", "RecommendedDisplayFrameRate",
    "SmallestImagePixelValue", "LargestImagePixelValue", "PixelPaddingValue", "BurnedInAnnotation",
    "WindowCenter", "WindowWidth", "VOILUTFunction", "RescaleSlope", "RescaleIntercept", "RescaleType",
    "ModalityLUTSequence", "VOILUTSequence", "LUTDescriptor", "LUTData", "ModalityLUTType",
    *(f"{colour}PaletteColorLookupTable{part}" for colour in ("Red", "Green", "Blue") for part in ("Descriptor", "Data")),
    *(f"Segmented{colour}PaletteColorLookupTableData" for colour in ("Red", "Green", "Blue")),
    "UltrasoundColorDataPresent", "SequenceOfUltrasoundRegions", "RegionSpatialFormat", "RegionDataType", "RegionFlags",
    "RegionLocationMinX0", "RegionLocationMinY0", "RegionLocationMaxX1", "RegionLocationMaxY1",
    "LossyImageCompression", "PixelData", "ExtendedOffsetTable", "ExtendedOffsetTableLengths",
})  # fmt: skip
METHOD = "DICOM PS3.15 basic profile, kept: pixels and their decoding"  # The standard allows at most 64 characters.


def is_dicom(path: Path) -> bool:
    """Return whether a file starts like a DICOM file."""
    try:
        with path.open("rb") as stream:
            return stream.read(132)[128:] == b"DICM"
    except OSError:
        return False


def deidentified(path: Path) -> bytes:
    """Return a DICOM file without names, dates, identifiers, private elements and comments; the images are unchanged.

    The instance gets a new identifier derived from the pixels. Text burned into the image remains.

    Raises:
        BadMedia: The file cannot be read as DICOM.
    """
    pydicom = require("pydicom", "reading DICOM")
    check_size(str(path), path.stat().st_size)
    try:
        dataset = pydicom.dcmread(path)
        _strip(dataset)
        pixels = hashlib.sha256(bytes(dataset.get("PixelData", b""))).hexdigest()
        syntax, kind = dataset.file_meta.TransferSyntaxUID, dataset.get("SOPClassUID")
        dataset.SOPInstanceUID = pydicom.uid.generate_uid(entropy_srcs=["cardiobench", pixels])
        dataset.PatientIdentityRemoved, dataset.DeidentificationMethod = "YES", METHOD
        dataset.file_meta = pydicom.dataset.FileMetaDataset()
        dataset.file_meta.TransferSyntaxUID = syntax
        dataset.file_meta.MediaStorageSOPClassUID = kind or pydicom.uid.UltrasoundImageStorage
        dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
        dataset.preamble = b"\0" * 128
        buffer = io.BytesIO()
        pydicom.dcmwrite(buffer, dataset, enforce_file_format=True)
    except (
        pydicom.errors.InvalidDicomError,
        AttributeError,
        EOFError,
        KeyError,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        raise BadMedia(f"{path} cannot be read as DICOM ({' '.join(str(error).split())}). {COPY_AGAIN}") from error
    return buffer.getvalue()


def _strip(dataset: "Dataset") -> None:
    """Delete every element that is not in `KEPT`, including in items of sequences."""
    for element in list(dataset):
        if element.keyword not in KEPT or element.tag.is_private:
            del dataset[element.tag]
        elif element.VR == "SQ":
            for item in element.value or ():
                _strip(item)
