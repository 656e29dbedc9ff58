"""Folders of frames: the PNG and JPEG files of a recording in natural order of their names."""

import re
from pathlib import Path

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.content import collected
from cardiobench.data.media.file import MediaFile, sniff
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.still import read_still
from cardiobench.data.media.types import Clip, FrameSampling

COMPONENT = "reader frame folder"
VERSION = 1

SUFFIXES = frozenset({".png", ".jpg", ".jpeg"})


def frame_files(folder: Path) -> list[Path]:
    """Return the images in a folder in natural order, `frame9` before `frame10`."""
    files = (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and not path.name.startswith("."))
    return sorted(
        files, key=lambda path: [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", path.name)]
    )


def read_frame_folder(folder: Path, sampling: FrameSampling, key_frame: int = 0) -> Clip:
    """Read the requested frames of a folder.

    Args:
        folder: Folder of images of the same size.
        sampling: Requested frames.
        key_frame: 0-based frame at which key-frame sampling starts.

    Raises:
        BadMedia: There is no image, an image cannot be read, or images differ in size.
    """
    files = frame_files(folder)
    if not files:
        raise BadMedia(f"{folder} contains no PNG or JPEG. Remove it from the dataset's table.")
    wanted = sampling.indices(len(files), key_frame)
    chosen, frames = set(wanted.tolist()), []
    # The digest of the recording must not depend on the frames that a model samples.
    for index in sorted(chosen) if collected() is None else range(len(files)):
        file = MediaFile.of(files[index])
        if index not in chosen:
            continue
        if sniff(file) not in ("png", "jpeg"):
            raise file.bad("is not a PNG or JPEG file")
        frames.append(read_still(file).frames[0])
        if frames[-1].shape != frames[0].shape:
            raise file.bad(
                f"has the size {frames[-1].shape[:2]}, but {files[wanted[0]].name} has {frames[0].shape[:2]}",
                "Convert them to the same size.",
            )
        check_size(str(folder), frames[0].nbytes * len(wanted))
    return Clip(np.stack(frames), wanted, len(files), None)
