"""Load the encoder of an ONNX file."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import BadModel
from cardiobench.extensions.onnx_models.file import read_checked
from cardiobench.extensions.onnx_models.network import OnnxFrameNetwork, OnnxNetwork
from cardiobench.extensions.onnx_models.settings import FrameFormat, preprocessing_of
from cardiobench.models.blocks.signal_encoder import SignalEncoder
from cardiobench.models.detect import LoaderMatch
from cardiobench.models.files import ModelFiles
from cardiobench.models.image import FrameByFrame, ImageEncoder, stretch
from cardiobench.models.stated import Stated

COMPONENT = "adapter onnx"
VERSION = 1

PRECISION = "fp32"
NOT_COUNTED = "not counted: the network runs in ONNX Runtime, whose operations PyTorch does not see"
NO_TEXT = "an ONNX file has no text tower"


class OnnxSignalEncoder(SignalEncoder):
    """A network for ECGs in ONNX Runtime."""

    fixed_precision = PRECISION
    no_count_reason = NOT_COUNTED

    @torch.no_grad()
    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as float32 vectors (N, dim)."""
        return self.network(parts)


class OnnxFrameEncoder(ImageEncoder):
    """A network for frames or clips in ONNX Runtime."""

    fixed_precision = PRECISION
    no_count_reason = NOT_COUNTED


@dataclass(frozen=True)
class Resize:
    """Preparation of a PIL image: one channel if it is grey, then resizing, then a crop of the centre."""

    picture: FrameFormat

    def __call__(self, image: Any) -> Any:
        """Return the prepared image."""
        from torchvision.transforms import InterpolationMode
        from torchvision.transforms.functional import center_crop, resize

        height, width = self.picture.size
        image = image.convert("L") if self.picture.colour == "grey" else image
        size = [height, width]
        if self.picture.fit == "crop":
            factor = max(height / image.height, width / image.width)
            size = [max(round(image.height * factor), height), max(round(image.width * factor), width)]
        resized = resize(image, size, InterpolationMode(self.picture.interpolation))
        return center_crop(resized, [height, width])


@dataclass(frozen=True)
class FixedLengthClip:
    """Preparation of a fixed number of frames, which are one part."""

    prepare: FrameByFrame
    count: int

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 (T, H, W, 3) as uint8 (1, count, C, h, w)."""
        return self.prepare(stretch(frames, self.count))[None]


def find_loader(source: ModelFiles, file: str, settings: Stated) -> LoaderMatch:
    """Return the loader of an ONNX file; the file is checked, but no session is made.

    Args:
        source: Files of the model.
        file: The ONNX file among them.
        settings: Stated preprocessing and output.

    Raises:
        BadModel: The file is refused, or does not fit the statements.
    """
    source.fetch([file])
    checked = read_checked(source.folder / file)
    stated = preprocessing_of(checked, settings, source.name)
    values = [("input", one) for one in checked.inputs] + [("output", one) for one in checked.outputs]
    facts = tuple((what, f"{one} (used)" if one in (stated.input, stated.output) else str(one)) for what, one in values)
    make = partial(load, source, file=file, settings=settings)
    return LoaderMatch(f"{file} is an ONNX file -> ONNX Runtime", load, lambda pooling, variant: make(), facts=facts)


def load(source: ModelFiles, *, file: str, settings: Stated) -> OnnxSignalEncoder | OnnxFrameEncoder:
    """Load the encoder of an ONNX file.

    Args:
        source: Files of the model.
        file: The ONNX file among them.
        settings: Stated preprocessing and output.

    Raises:
        BadModel: The file is refused, or does not fit the statements.
    """
    weights = source.weights((file,))
    checked = read_checked(weights[0])
    if checked.digest != source.used[file]:
        raise BadModel(f"{weights[0]} was changed while it was read. Run again.")
    stated = preprocessing_of(checked, settings, source.name)
    network = (checked, stated.input, stated.output, source.name)
    common: dict[str, Any] = {
        "name": source.name,
        "revision": source.revision(weights),
        "preprocessing": stated.facts(),
        "no_text_reason": NO_TEXT,
    }
    if stated.signal:
        return OnnxSignalEncoder(
            network=OnnxNetwork(*network), prepare=stated.signal, leads=stated.signal.leads, token_pooling="", **common
        )
    picture = stated.picture
    assert picture is not None
    by_frame = FrameByFrame(Resize(picture))
    count = stated.frames.sampling.count
    return OnnxFrameEncoder(
        network=OnnxFrameNetwork(
            *network, layout=picture.layout, scale=picture.scale, mean=picture.mean, std=picture.std
        ),
        prepare=FixedLengthClip(by_frame, count) if "T" in picture.layout and count else by_frame,
        frames=stated.frames,
        sampling=stated.frames.sampling,
        **common,
    )
