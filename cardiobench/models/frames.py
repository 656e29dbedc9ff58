"""Steps before the transform of a library: frame sampling, colour order, cropping."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from cardiobench.data.media.types import FrameSampling, Nifti, Start
from cardiobench.models.stated import Stated

if TYPE_CHECKING:
    from cardiobench.models.blocks.crop import Border

# Default sampling of frame-wise models: 16 consecutive frames from the key frame on (arXiv 2510.00520, "at most 16
# frames").
KEY_FRAMES = FrameSampling(count=16, stride=1, start="key_frame")


@dataclass(frozen=True)
class FrameSettings:
    """Steps before the transform of a library.

    Attributes:
        colour: Channel order with which the network was trained.
        zoom: Fraction of the frame removed on every side after a centre crop to a square; 0 keeps the whole frame.
        border: Rounding of the crop to whole pixels, "truncate" (EchoCLIP's own code) or "round" (arXiv 2510.00520).
        size: Side of the square to which a zoomed frame is resized (bicubic, without antialias).
        sampling: Choice of frames.
    """

    colour: str = "RGB"
    zoom: float = 0.0
    border: "Border" = "truncate"
    size: int = 224
    sampling: FrameSampling = KEY_FRAMES

    def __call__(self, frames: np.ndarray) -> np.ndarray:
        """Crop frames uint8 RGB (T, H, W, 3) to uint8 frames (T, h, w, 3) in the network's colour order."""
        if self.colour == "BGR":
            frames = frames[..., ::-1]
        if self.zoom:
            from cardiobench.models.blocks.crop import crop_and_scale

            size = (self.size, self.size)
            frames = np.stack([crop_and_scale(f, size, zoom=self.zoom, border=self.border) for f in frames])
        return frames

    def facts(self) -> dict[str, Any]:
        """Return the settings for the embedding key: the sampling, and other steps that have an effect."""
        crop = {"zoom": self.zoom, "border": self.border, "zoomed_to": self.size} if self.zoom else {}
        return {"sampling": asdict(self.sampling), "colour": self.colour, **crop}


WHOLE = FrameSettings()


@checked_dataclass(frozen=True, config=ConfigDict(strict=True))
class _FrameFacts:
    """Values of `FrameSettings` that a card, a file or an option may state."""

    colour: Literal["RGB", "BGR"] = "RGB"
    zoom: Annotated[float, Field(ge=0, lt=0.5)] = WHOLE.zoom
    border: Literal["truncate", "round"] = WHOLE.border
    size: Annotated[int, Field(ge=1)] = WHOLE.size
    frames: Annotated[int, Field(ge=1)] | None = KEY_FRAMES.count
    stride: Annotated[int, Field(ge=1)] = KEY_FRAMES.stride
    start: Start = KEY_FRAMES.start
    nifti: Nifti = KEY_FRAMES.nifti


def frame_settings(stated: Stated, name: str) -> FrameSettings:
    """Read settings from those that are stated for a model; missing ones keep their defaults.

    Raises:
        BadModel: A value is invalid.
    """
    try:
        given = _FrameFacts(**{one.name: stated[one.name] for one in fields(_FrameFacts) if one.name in stated})
    except ValidationError as error:
        raise stated.refused(name, error) from None
    sampling = FrameSampling(given.frames, given.stride, given.start, given.nifti)
    return FrameSettings(given.colour, given.zoom, given.border, given.size, sampling)
