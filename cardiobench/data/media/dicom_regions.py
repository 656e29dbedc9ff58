"""Kind of an ultrasound recording and the ultrasound regions of its image, from the DICOM header."""

import struct
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.file import MediaFile
from cardiobench.data.media.optional import require_pydicom
from cardiobench.data.media.types import Box

TWO_DIMENSIONAL, COLOUR, SPECTRAL, STILL, UNREAD = "2D", "colour", "spectral", "still", "unread"
KIND_TAGS = ("NumberOfFrames", "UltrasoundColorDataPresent", "SequenceOfUltrasoundRegions")
CORNERS = ("RegionLocationMinX0", "RegionLocationMinY0", "RegionLocationMaxX1", "RegionLocationMaxY1")
# PS3.3 C.8.5.5.1.1 and C.8.5.5.1.2
SPECTRAL_FORMATS, COLOUR_FLOW = (2, 3), 2


def recording_kind(path: Path) -> str:
    """Classify a DICOM file: 2D cine, colour-flow cine, spectral or M-mode cine, still, or unread."""
    pydicom = require_pydicom()
    try:
        MediaFile.of(path)
        header = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=list(KIND_TAGS))
        return STILL if int(header.get("NumberOfFrames") or 1) == 1 else kind_of(header)
    except (BadMedia, OSError, pydicom.errors.InvalidDicomError, AttributeError, EOFError, TypeError, ValueError, struct.error):  # fmt: skip
        return UNREAD  # `read_dicom` reports the problem when the recording itself is read.


def kind_of(header: Any) -> str:
    """Return what a header declares the image to show: 2D, colour flow, or a spectrum or M-mode."""
    regions = header.get("SequenceOfUltrasoundRegions") or ()
    if any(int(region.get("RegionSpatialFormat") or 0) in SPECTRAL_FORMATS for region in regions):
        return SPECTRAL
    coloured = any(int(region.get("RegionDataType") or 0) == COLOUR_FLOW for region in regions)
    return COLOUR if coloured or int(header.get("UltrasoundColorDataPresent") or 0) else TWO_DIMENSIONAL


def ultrasound_boxes(header: Any) -> tuple[Box, ...]:
    """Return the boxes of the ultrasound regions in a header, without regions that lack a corner.

    Source: DICOM PS3.3 C.8.5.5, where the last column and row belong to the region.
    """
    boxes = []
    for region in header.get("SequenceOfUltrasoundRegions") or ():
        left, top, right, bottom = (region.get(tag) for tag in CORNERS)
        if None not in (left, top, right, bottom):
            boxes.append((int(left), int(top), int(right) + 1, int(bottom) + 1))
    return tuple(boxes)
