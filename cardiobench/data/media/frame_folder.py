"""Folders of frames: the PNG and JPEG files of a recording in the order of their names, with numbers as numbers."""

import re
from pathlib import Path

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.file import MediaFile, sniff
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.still import read_still
from cardiobench.data.media.types import Clip, FrameSampling

COMPONENT = "reader frame folder"
VERSION = 1

SUFFIXES = frozenset({".png", ".jpg", ".jpeg"})


def frame_files(folder: Path) -> list[Path]:
    """Return the pictures in a folder, `frame10` behind `frame9`."""
    files = (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and not path.name.startswith("."))
    return sorted(
        files, key=lambda path: [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", path.name)]
    )


def read_frame_folder(folder: Path, sampling: FrameSampling, key_frame: int = 0) -> Clip:
    """Read the frames asked for.

    Args:
        folder: Folder of pictures of one size.
        sampling: Frames asked for.
        key_frame: Frame where key-frame sampling starts, 0-based.

    Raises:
        BadMedia: No picture, one that cannot be read, or pictures of several sizes.
    """
    files = frame_files(folder)
    if not files:
        raise BadMedia(f"{folder} holds no PNG or JPEG. Remove it from the dataset's table.")
    wanted = sampling.indices(len(files), key_frame)
    frames = []
    for index in wanted:
        file = MediaFile.of(files[index])
        if sniff(file) not in ("png", "jpeg"):
            raise file.bad("is not a PNG or JPEG file")
        frames.append(read_still(file).frames[0])
        if frames[-1].shape != frames[0].shape:
            raise file.bad(
                f"has the size {frames[-1].shape[:2]}, and {files[wanted[0]].name} {frames[0].shape[:2]}",
                "Convert them to the same size.",
            )
        check_size(str(folder), frames[0].nbytes * len(wanted))
    return Clip(np.stack(frames), wanted, len(files), None)
