"""Encoders of networks for single frames or whole clips."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import torch

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.blocks.crop import opencv
from cardiobench.models.frames import KEY_FRAMES, WHOLE, FrameSettings
from cardiobench.models.grey_levels import Normalised, Prepare, by_table
from cardiobench.models.network_encoder import NetworkEncoder

COMPONENT = "encoder image"
VERSION = 1


@dataclass(eq=False, kw_only=True)
class ImageEncoder(NetworkEncoder):
    """A frozen network for frames; see `cardiobench.models.base.Encoder` for common attributes.

    Attributes:
        network: Function from prepared parts (N, ...) to vectors (N, dim).
        frames: Steps before `prepare`: colour order, cropping.
        prepare: Function on the CPU from uint8 frames (T, H, W, 3) to parts (P, ...), which are uint8 if the network
            normalises them.
        no_text_reason: Reason why the model does not support zero-shot; empty if it does.
    """

    name: str
    revision: str
    network: torch.nn.Module
    prepare: Prepare
    preprocessing: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    no_text_reason: str = ""
    frames: FrameSettings = WHOLE
    sampling: FrameSampling | None = KEY_FRAMES
    pooling: Literal["mean", "mean_l2"] = "mean_l2"
    modalities: tuple[str, ...] = ("echo",)
    dim: int = field(init=False)
    frame_wise: bool = field(init=False)

    def __post_init__(self):
        self.network.eval().requires_grad_(False).float()
        self.dim = probe(self)
        self.frame_wise = getattr(self.prepare, "frame_wise", False)

    def transform(self, recording: Clip) -> torch.Tensor:
        """Prepare a clip as parts: (T, 3, h, w) for an image model, or (1, F, 3, h, w) for a video model.

        Raises:
            BadMedia: The library does not prepare frames of this size.
        """
        frames = self.frames(recording.frames)
        try:
            return self.prepare(frames)
        except (RuntimeError, ValueError) as error:  # For instance, a side of a narrow frame is rounded to 0.
            height, width = frames.shape[1:3]
            raise BadMedia(
                f"the preprocessing of {self.name} fails for frames of {height} x {width} pixels ({error}). "
                "Leave the recording out."
            ) from error


@dataclass(eq=False, kw_only=True)
class ImageTextEncoder(ImageEncoder):
    """An image encoder with a text tower in the same space.

    Attributes:
        text_network: Function from token ids (N, L) to vectors (N, dim).
        tokenize: Function from texts to token ids (N, L).
        logit_scale: Factor of cosines before the softmax.
    """

    text_network: torch.nn.Module
    tokenize: Callable[[Sequence[str]], torch.Tensor]
    logit_scale: float

    def __post_init__(self):
        super().__post_init__()
        self.text_network.eval().requires_grad_(False).float()
        width = self.encode_text(["left ventricle"]).shape[1]
        if width != self.dim:
            raise BadModel(
                f"{self.name}: text vectors have {width} numbers, but image vectors have {self.dim}, so they cannot be compared. Give the projections of both towers."
            )

    @torch.no_grad()
    def encode_text(self, texts: Sequence[str]) -> torch.Tensor:
        """Encode texts as vectors (len(texts), dim), float32, unit length."""
        device = next(self.text_network.parameters()).device
        vectors = self.text_network(self.tokenize(list(texts)).to(device))
        return torch.nn.functional.normalize(vectors.float(), dim=-1)

    def to(self, device: torch.device) -> Self:
        """Move both towers and return the encoder."""
        self.text_network.to(device)
        return super().to(device)


REPETITIONS = 5  # A random choice between two interpolations shows in 97 % of cases.


def probe(encoder: ImageEncoder) -> int:
    """Return the embedding dimension of an encoder, found by encoding two frames of different shapes.

    Raises:
        BadModel: The network does not accept frames, returns invalid or non-finite vectors, returns different vectors
            on repetition, or its preprocessing is random or depends on the shape of the recording.
    """
    ramp = np.linspace(0, 255, 60 * 80 * 3).reshape(60, 80, 3).astype(np.uint8)
    frames = [ramp, ramp.transpose(1, 0, 2), *[ramp] * REPETITIONS]
    wide, tall, *repeated = (encoder.prepare(encoder.frames(frame[None])) for frame in frames)
    if not all(_same(wide, parts) for parts in repeated):
        raise BadModel(
            f"{encoder.name}: the preprocessing returns different values for the same frame. Disable its random steps."
        )
    if wide.shape != tall.shape:
        raise BadModel(
            f"{encoder.name}: the preprocessing returns {tuple(wide.shape[1:])} for a wide and {tuple(tall.shape[1:])} for "
            f"a tall frame, so recordings cannot be batched. Set a fixed size or a centre crop in its configuration."
        )
    try:
        vectors, again = encoder.encode(wide), encoder.encode(wide)
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise BadModel(
            f"{encoder.name}: the network does not encode a frame: {type(error).__name__}: {error}"
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(wide):
        raise BadModel(f"{encoder.name}: expected one vector per part, got an array of shape {tuple(vectors.shape)}.")
    if not torch.isfinite(vectors).all():
        raise BadModel(
            f"{encoder.name} returns values that are not finite. A standard deviation of 0 in its preprocessing is wrong; "
            f"otherwise its weights are damaged: copy the model again."
        )
    if not torch.allclose(vectors, again, atol=1e-5):
        raise BadModel(
            f"{encoder.name} returns different vectors for the same frame. Disable random masking and other random steps."
        )
    return vectors.shape[1]


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors are equal; NaN equals NaN."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


@dataclass(frozen=True)
class FrameByFrame:
    """A library's transform of a PIL image, applied to every frame of a clip."""

    transform: Callable[[Any], Any]

    frame_wise = True

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 (T, H, W, 3) as (T, 3, h, w), uint8 if the transform returns images."""
        from PIL import Image

        prepared = [self.transform(Image.fromarray(frame)) for frame in np.ascontiguousarray(frames)]
        if isinstance(prepared[0], torch.Tensor):
            return torch.stack(prepared)
        return _channels_first(np.stack([np.asarray(picture) for picture in prepared]))


@dataclass(frozen=True)
class ResizeAndCrop:
    """Resizing and cropping of PIL images by a library, without redundant work.

    Frames that already have the final size are unchanged, and only one channel of grey frames is resized, because
    filters treat channels independently.
    """

    transform: Callable[[Any], Any]
    _final: dict[tuple[int, int], bool] = field(default_factory=dict, init=False, compare=False, repr=False)

    frame_wise = True

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 (T, H, W, 3) as uint8 (T, 3, h, w)."""
        if self._is_final(frames.shape[1:3]):
            return _channels_first(frames)
        first, own = frames[..., 0], FrameByFrame(self.transform)
        if not all(np.array_equal(first, frames[..., channel]) for channel in (1, 2)):
            return own(frames)
        small = own(np.ascontiguousarray(first))
        return small.expand(-1, 3, -1, -1).contiguous()

    def _is_final(self, size: tuple[int, int]) -> bool:
        """Return whether the transform leaves frames of a size unchanged, tested with noise."""
        if size not in self._final:
            noise = np.random.default_rng(0).integers(0, 256, (1, *size, 3), dtype=np.uint8)
            self._final[size] = torch.equal(FrameByFrame(self.transform)(noise), _channels_first(noise))
        return self._final[size]


def _channels_first(frames: np.ndarray) -> torch.Tensor:
    """Return frames (T, H, W, 3), or single-channel frames (T, H, W), as a tensor (T, channels, H, W)."""
    if frames.ndim == 3:
        return torch.from_numpy(frames[:, None])
    planes = np.empty((len(frames), 3, *frames.shape[1:3]), frames.dtype)
    for frame, channels in zip(frames, planes, strict=True):
        opencv().split(frame, list(channels))  # This is five times faster than a transposed copy.
    return torch.from_numpy(planes)


RESIZE_AND_CROP = (
    "Resize",
    "CenterCrop",
    "MaybeConvertMode",
    "_convert_to_rgb",
)  # open_clip converts grey images to RGB.


def _library_name(step: Any) -> str:
    """Return the name of a step; "" if it is the user's own, which may do anything under any name."""
    known = str(step.__module__).partition(".")[0] in ("torchvision", "open_clip", "timm")
    return getattr(step, "__name__", type(step).__name__) if known else ""


def without_normalisation(transform: Any) -> tuple[Prepare, Any, Any] | None:
    """Return a torchvision transform without its final `ToTensor` and `Normalize`, with mean and standard deviation.

    Return None if it does not end with these steps.
    """
    from torchvision.transforms import Compose

    steps = list(getattr(transform, "transforms", ()))
    last = [_library_name(step) for step in steps[-2:]]
    if len(last) < 2 or not last[0].endswith("ToTensor") or last[1] != "Normalize":
        return None
    steps, normalise = steps[:-2], steps[-1]
    kind = ResizeAndCrop if {_library_name(step) for step in steps} <= set(RESIZE_AND_CROP) else FrameByFrame
    return kind(Compose(steps)), torch.as_tensor(normalise.mean).tolist(), torch.as_tensor(normalise.std).tolist()


def picture_by_picture(network: torch.nn.Module, transform: Any) -> tuple[torch.nn.Module, Prepare]:
    """Return a network and its torchvision transform, with the normalisation moved to the network if equal."""
    full, split = FrameByFrame(transform), without_normalisation(transform)
    if split is None:
        return network, full
    geometry, mean, std = split
    return by_table(network, full, geometry, mean, std)


def preparation(encoder: Any) -> str:
    """Describe how an encoder prepares frames; "" for other encoders."""
    if not isinstance(encoder, ImageEncoder):
        return ""
    if isinstance(encoder.network, Normalised):
        return "prepared as in its library, but normalised with a table of grey levels, bit for bit the same"
    return "prepared by its library alone, which a table of grey levels is not known to reproduce bit for bit"


def stretch(frames: np.ndarray, count: int) -> np.ndarray:
    """Sample `count` frames of (T, ...) evenly, first and last included, as (count, ...); a shorter clip repeats frames."""
    return frames[np.linspace(0, len(frames) - 1, count).round().astype(int)]
