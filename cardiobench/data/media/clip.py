"""Reading of clips and images in any supported format."""

from pathlib import Path

from cardiobench.data.media.dicom import read_dicom
from cardiobench.data.media.file import MediaFile, sniff
from cardiobench.data.media.nifti import read_nifti
from cardiobench.data.media.still import read_still
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.data.media.video import read_video

EVERY_FRAME = FrameSampling(count=None)


def read_clip(
    source: Path | bytes,
    sampling: FrameSampling = EVERY_FRAME,
    *,
    key_frame: int = 0,
    name: str = "",
) -> Clip:
    """Read frames of an AVI, MP4, GIF, DICOM, NIfTI (.nii, .nii.gz), PNG or JPEG recording, detected by content.

    If the format allows it, only the requested frames are decoded; they are bit-identical to those of a full decode.

    Args:
        source: Path, or the bytes of the file.
        sampling: Choice of frames and scaling of NIfTI volumes; all frames by default.
        key_frame: 0-based frame at which key-frame sampling starts; a number beyond the end means the last frame.
        name: Name of the recording in messages; the path by default.

    Raises:
        BadMedia: The file is missing, empty, cut short, damaged or in another format.
        MissingExtra: A package for this format is not installed.
    """
    file = MediaFile.of(source, name)
    match sniff(file):
        case "avi" | "mp4" | "gif" as form:
            return read_video(file, form, sampling, key_frame)
        case "dicom":
            return read_dicom(file, sampling, key_frame)
        case "nifti":
            return read_nifti(file, sampling, key_frame)
        case _:
            return read_still(file)
