"""PNG and JPEG images as clips of one frame."""

import struct
import warnings
import zlib
from typing import TYPE_CHECKING

import numpy as np

from cardiobench.core.errors import one_line
from cardiobench.data.media.file import MediaFile
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require
from cardiobench.data.media.types import Clip

if TYPE_CHECKING:
    from PIL import Image

COMPONENT = "reader still"
VERSION = 1


def read_still(file: MediaFile) -> Clip:
    """Read an image as a clip of one RGB frame, rotated according to its EXIF data.

    Grey values are repeated over the three channels, 16-bit samples keep their high byte, and transparent images get a
    black background, as on an ultrasound screen.

    Raises:
        BadMedia: The image is damaged, or has a pixel type that PNG and JPEG do not support.
    """
    image_module = require("PIL.Image", "reading pictures")
    turn_upright = require("PIL.ImageOps", "reading pictures").exif_transpose
    try:
        with warnings.catch_warnings(), file.open() as stream:
            warnings.simplefilter("error", image_module.DecompressionBombWarning)
            with image_module.open(stream, formats=("PNG", "JPEG")) as picture:
                check_size(file.name, 3 * picture.width * picture.height)
                frame = _rgb(file, turn_upright(picture))
    except (
        image_module.DecompressionBombError,
        image_module.DecompressionBombWarning,
        EOFError,
        OSError,  # This includes PIL.UnidentifiedImageError.
        SyntaxError,
        ValueError,
        struct.error,
        zlib.error,
    ) as error:
        raise file.bad(f"cannot be decoded as an image ({one_line(error)})") from error
    return Clip(frame[None], np.array([0]), 1, None)


def _rgb(file: MediaFile, picture: "Image.Image") -> np.ndarray:
    """Return uint8 (H, W, 3) of a PIL image of any pixel type."""
    if picture.mode.startswith("I"):  # 16-bit grey; for 16-bit colour, PIL itself keeps the high byte.
        grey = (np.asarray(picture).astype(np.uint32) >> 8).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=-1)
    if picture.mode == "F":
        raise file.bad("has floating point pixels", "Convert it to 8-bit RGB.")
    if picture.has_transparency_data:
        pixels = np.asarray(picture.convert("RGBA")).astype(np.uint16)
        return ((pixels[..., :3] * pixels[..., 3:] + 127) // 255).astype(np.uint8)
    return np.array(picture.convert("RGB"))
