"""One function for every kind of picture recording."""

from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from cardiobench.data.media.dicom import read_dicom
from cardiobench.data.media.file import MediaFile, sniff
from cardiobench.data.media.nifti import read_nifti
from cardiobench.data.media.still import read_still
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.data.media.video import read_video

Profile = Literal["canonical", "paper"]

EVERY_FRAME = FrameSampling(count=None)


def read_clip(
    source: Path | bytes,
    sampling: FrameSampling = EVERY_FRAME,
    *,
    key_frame: int = 0,
    name: str = "",
    profile: Profile = "canonical",
) -> Clip:
    """Read the frames of an echo recording: AVI, MP4, GIF, DICOM, NIfTI (.nii, .nii.gz), PNG or JPEG, told apart by content.

    Only the frames asked for are decoded where the format allows it, and they equal those of a full decode bit for bit.

    Args:
        source: path, or the bytes of the file.
        sampling: which frames, and how NIfTI volumes are scaled; every one unless told otherwise.
        key_frame: 0-based frame where key-frame sampling starts; beyond the end means the last.
        name: what messages call the recording; the path unless told otherwise.
        profile: `canonical` is uint8 RGB (T, H, W, 3) in display orientation, NIfTI scaled over the whole volume.
            `paper` is what the first CardioBench fed its models (arXiv 2510.00520): channels in the order BGR, every
            NIfTI frame scaled by itself with x as the rows. For comparison with its numbers only.

    Raises:
        BadMedia: missing, empty, cut short, damaged or of another format; names the file and says what to do.
        MissingExtra: a package that reads this format is not installed.
    """
    if profile not in get_args(Profile):
        raise ValueError(f"profile '{profile}': expected one of {', '.join(get_args(Profile))}")
    file = MediaFile.of(source, name)
    match sniff(file):
        case "avi" | "mp4" | "gif" as form:
            clip = read_video(file, form, sampling, key_frame)
        case "dicom":
            clip = read_dicom(file, sampling, key_frame)
        case "nifti":
            clip = read_nifti(file, sampling, key_frame, paper="paper" in (profile, sampling.nifti))
        case _:
            clip = read_still(file)
    return replace(clip, frames=np.ascontiguousarray(clip.frames[..., ::-1])) if profile == "paper" else clip
