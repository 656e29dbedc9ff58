"""Steps before the transform of a library: frame sampling, colour order, cropping."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import FrameSampling

if TYPE_CHECKING:
    from cardiobench.models.blocks.crop import Border

# Default sampling of frame-wise models: 16 consecutive frames from the key frame on (arXiv 2510.00520, "at most 16
# frames").
KEY_FRAMES = FrameSampling(count=16, stride=1, start="key_frame")
COLOURS = ("RGB", "BGR")
BORDERS = ("truncate", "round")


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


def frame_settings(facts: Mapping[str, Any], name: str) -> FrameSettings:
    """Read settings from the facts of a card or a `cardiobench.json`; missing keys keep their defaults.

    Raises:
        BadModel: A value is invalid.
    """
    chosen = {key: facts[key] for key in ("colour", "zoom", "border", "size") if key in facts}
    try:
        sampling = FrameSampling(**{
            field: facts[key] for key, field in (("frames", "count"), *((name, name) for name in ("stride", "start", "nifti"))) if key in facts
        })  # fmt: skip
    except (TypeError, ValueError) as error:
        raise BadModel(
            f"{name}: frames, stride, start or nifti is invalid: {error}. Correct the card or cardiobench.json."
        ) from None
    settings = FrameSettings(**chosen, sampling=sampling)
    good = settings.colour in COLOURS and settings.border in BORDERS
    if not (good and isinstance(settings.zoom, (int, float)) and 0 <= settings.zoom < 0.5):
        raise BadModel(
            f"{name}: colour '{settings.colour}' (expected {' or '.join(COLOURS)}), zoom {settings.zoom} (0 to 0.5), "
            f"border '{settings.border}' ({' or '.join(BORDERS)}). Correct the card or cardiobench.json."
        )
    return settings
