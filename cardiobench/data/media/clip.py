"""One function for every kind of picture recording."""

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
    """Read the frames of an echo recording: AVI, MP4, GIF, DICOM, NIfTI (.nii, .nii.gz), PNG or JPEG, told apart by content.

    Only the frames asked for are decoded where the format allows it, and they equal those of a full decode bit for bit.

    Args:
        source: Path, or the bytes of the file.
        sampling: Choice of frames and scaling of NIfTI volumes; all frames by default.
        key_frame: 0-based frame where key-frame sampling starts; beyond the end means the last.
        name: Name of the recording in messages; the path by default.

    Raises:
        BadMedia: Missing, empty, cut short, damaged or of another format; names the file and says what to do.
        MissingExtra: A package that reads this format is not installed.
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
