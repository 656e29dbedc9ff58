"""Encoders around a network that looks at frames, one by one or as a whole clip."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.echo.crop import opencv
from cardiobench.models.frames import KEY_FRAMES, WHOLE, FrameSettings
from cardiobench.models.grey_levels import Normalised, Prepare, by_table
from cardiobench.models.network_encoder import NetworkEncoder

COMPONENT = "encoder image"
VERSION = 1


@dataclass(eq=False, kw_only=True)
class ImageEncoder(NetworkEncoder):
    """A frozen network on frames; the attributes are those of `cardiobench.models.base.Encoder`.

    Attributes:
        network: Prepared parts (N, ...) to vectors (N, dim).
        frames: Steps in front of `prepare`: colour order, cropping.
        prepare: Uint8 frames (T, H, W, 3) to parts (P, ...), on the CPU; uint8 where the network normalises by itself.
        no_text_reason: Reason why the model cannot take part in zero-shot; empty when it can.
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
        """Prepare a clip as parts: its frames for an image model, (T, 3, h, w); the whole clip for a video model, (1, F, 3, h, w)."""
        return self.prepare(self.frames(recording.frames))


@dataclass(eq=False, kw_only=True)
class ImageTextEncoder(ImageEncoder):
    """An image encoder with a text tower in the same space.

    Attributes:
        text_network: Token ids (N, L) to vectors (N, dim).
        tokenize: Texts to token ids (N, L).
        logit_scale: Factor on cosines before the softmax.
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
                f"{self.name}: text vectors have {width} numbers, image vectors {self.dim}. They share no space."
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


def probe(encoder: ImageEncoder) -> int:
    """Return the dimension of an encoder's vectors, from encoding two random frames of different shape.

    Raises:
        BadModel: The network takes no frames, gives no plain vectors or values that are not finite, answers
            differently the second time, or its input depends on the shape of the recording.
    """
    ramp = np.linspace(0, 255, 60 * 80 * 3).reshape(60, 80, 3).astype(np.uint8)
    wide, tall = (encoder.prepare(encoder.frames(frame[None])) for frame in (ramp, ramp.transpose(1, 0, 2)))
    if wide.shape != tall.shape:
        raise BadModel(
            f"{encoder.name}: the preprocessing gives {tuple(wide.shape[1:])} for a wide and {tuple(tall.shape[1:])} for "
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
            f"{encoder.name} gives values that are not finite. Its weights are damaged: copy the model again."
        )
    if not torch.allclose(vectors, again, atol=1e-5):
        raise BadModel(f"{encoder.name} gives another vector each time it sees the same frame (random masking?).")
    return vectors.shape[1]


@dataclass(frozen=True)
class FrameByFrame:
    """A library's own transform of one PIL image, applied to every frame of a clip."""

    transform: Callable[[Any], Any]

    frame_wise = True

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 (T, H, W, 3) as (T, 3, h, w): uint8 if the transform ends with an image, else its tensors."""
        from PIL import Image

        prepared = [self.transform(Image.fromarray(frame)) for frame in np.ascontiguousarray(frames)]
        if isinstance(prepared[0], torch.Tensor):
            return torch.stack(prepared)
        return _channels_first(np.stack([np.asarray(picture) for picture in prepared]))


@dataclass(frozen=True)
class ResizeAndCrop:
    """A library's own resizing and cropping of PIL images, without the work that changes nothing.

    Frames whose size is final already pass as they are, and of grey frames one channel is resized: a filter works on each channel
    by itself.
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
        """Return whether frames of a size come out as they went in, as noise of that size does."""
        if size not in self._final:
            noise = np.random.default_rng(0).integers(0, 256, (1, *size, 3), dtype=np.uint8)
            self._final[size] = torch.equal(FrameByFrame(self.transform)(noise), _channels_first(noise))
        return self._final[size]


def _channels_first(frames: np.ndarray) -> torch.Tensor:
    """Return frames (T, H, W, 3), or (T, H, W) of one channel, as a tensor (T, channels, H, W)."""
    if frames.ndim == 3:
        return torch.from_numpy(frames[:, None])
    planes = np.empty((len(frames), 3, *frames.shape[1:3]), frames.dtype)
    for frame, channels in zip(frames, planes, strict=True):
        opencv().split(frame, list(channels))  # Five times as fast as a transposed copy.
    return torch.from_numpy(planes)


RESIZE_AND_CROP = ("Resize", "CenterCrop", "MaybeConvertMode", "_convert_to_rgb")  # Of grey pictures, in open_clip.


def without_normalisation(transform: Any) -> tuple[Prepare, Any, Any] | None:
    """Return a torchvision transform without its last two steps (to tensor, normalise), the mean and the standard deviation.

    None when it does not end with them.
    """
    from torchvision.transforms import Compose, Normalize

    steps = list(getattr(transform, "transforms", ()))
    if len(steps) < 2 or not isinstance(steps[-1], Normalize) or not type(steps[-2]).__name__.endswith("ToTensor"):
        return None
    steps, normalise = steps[:-2], steps[-1]
    names = {getattr(step, "__name__", type(step).__name__) for step in steps}
    kind = ResizeAndCrop if names <= set(RESIZE_AND_CROP) else FrameByFrame
    return kind(Compose(steps)), torch.as_tensor(normalise.mean).tolist(), torch.as_tensor(normalise.std).tolist()


def picture_by_picture(network: torch.nn.Module, transform: Any) -> tuple[torch.nn.Module, Prepare]:
    """Pair a network with a per-image torchvision transform; a table in the network normalises if the result is equal."""
    full, split = FrameByFrame(transform), without_normalisation(transform)
    if split is None:
        return network, full
    geometry, mean, std = split
    return by_table(network, full, geometry, mean, std)


def preparation(encoder: Any) -> str:
    """Say in words how an encoder prepares its frames; "" for an encoder of anything else."""
    if not isinstance(encoder, ImageEncoder):
        return ""
    if isinstance(encoder.network, Normalised):
        return (
            "resized and cropped as by its library, then normalised by a table of grey levels (equal to the last bit)"
        )
    return "by its library's own processor: its steps are not resize, crop and normalise alone"


def stretch(frames: np.ndarray, count: int) -> np.ndarray:
    """Sample exactly `count` frames evenly over a clip, first and last included; a shorter clip repeats frames."""
    return frames[np.linspace(0, len(frames) - 1, count).round().astype(int)]
