"""Encoders around a network that looks at frames, one by one or as a whole clip."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.frames import KEY_FRAMES, WHOLE, FrameSettings
from cardiobench.models.network_encoder import NetworkEncoder
from cardiobench.models.tokens import spatial_tokens

COMPONENT = "encoder image"
VERSION = 1

Prepare = Callable[[np.ndarray], torch.Tensor]


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
        BadModel: the network takes no frames, gives no plain vectors or values that are not finite, answers
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
        return torch.from_numpy(np.stack([np.asarray(picture) for picture in prepared])).permute(0, 3, 1, 2)


class Normalised(torch.nn.Module):
    """A network behind the normalisation of its frames, done where the network is: only a quarter of the bytes travels.

    uint8 frames (..., 3, h, w) become (frame / 255 - mean) / std; anything else is taken as it comes.
    """

    def __init__(self, network: torch.nn.Module, mean: Sequence[float], std: Sequence[float]):
        super().__init__()
        self.network = network
        self.offset: torch.Tensor
        self.scale: torch.Tensor
        for name, values in (("offset", mean), ("scale", std)):
            grey = 255 * torch.tensor(values, dtype=torch.float64)
            self.register_buffer(name, grey.float()[:, None, None], persistent=False)

    def normalise(self, parts: torch.Tensor) -> torch.Tensor:
        """Normalise frames to float32 as the library's own transform does."""
        return (parts.float() - self.offset) / self.scale if parts.dtype == torch.uint8 else parts

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, dim)."""
        return self.network(self.normalise(parts))

    def tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as tokens (N, times, rows, columns, width)."""
        return spatial_tokens(self.network, self.normalise(parts))


Full = Callable[[np.ndarray], torch.Tensor]


def on_device(network: torch.nn.Module, full: Full, lean: Full, mean: Any, std: Any) -> tuple[torch.nn.Module, Full]:
    """Move the normalisation from the preparation into the network, if the result equals the library's own.

    Args:
        network: Network that takes normalised parts.
        full: The library's own preparation.
        lean: The same without its last step, the normalisation.
        mean: Per-channel mean used by the normalisation, shape (3,).
        std: Likewise.

    Returns:
        (network, preparation): the lean pair where two made-up frames come out the same to 2e-6, else the pair as given
        (a processor that scales before it resizes, for one).
    """
    frames = np.random.default_rng(0).integers(0, 256, (2, 61, 83, 3), dtype=np.uint8)
    parts, expected = lean(frames), full(frames)
    if parts.dtype != torch.uint8 or parts.shape != expected.shape:
        return network, full
    normalised = Normalised(network, mean, std)
    same = torch.allclose(normalised.normalise(parts), expected, rtol=0, atol=2e-6)
    return (normalised, lean) if same else (network, full)


def without_normalisation(transform: Any) -> tuple[Any, Any, Any] | None:
    """Return a torchvision transform without its last two steps (to tensor, normalise), the mean and the standard deviation.

    None when it does not end with them.
    """
    from torchvision.transforms import Compose, Normalize

    steps = list(getattr(transform, "transforms", ()))
    if len(steps) < 2 or not isinstance(steps[-1], Normalize) or not type(steps[-2]).__name__.endswith("ToTensor"):
        return None
    return Compose(steps[:-2]), torch.as_tensor(steps[-1].mean).tolist(), torch.as_tensor(steps[-1].std).tolist()


def picture_by_picture(network: torch.nn.Module, transform: Any) -> tuple[torch.nn.Module, Full]:
    """Pair a network with a per-image torchvision transform; move the normalisation to the network if the result is equal."""
    full, split = FrameByFrame(transform), without_normalisation(transform)
    if split is None:
        return network, full
    geometry, mean, std = split
    return on_device(network, full, FrameByFrame(geometry), mean, std)


def stretch(frames: np.ndarray, count: int) -> np.ndarray:
    """Sample exactly `count` frames evenly over a clip, first and last included; a shorter clip repeats frames."""
    return frames[np.linspace(0, len(frames) - 1, count).round().astype(int)]
