"""EchoFM: tokens of 32 frames of a clip."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.models.blocks.clip_encoder import ClipEncoder, refuse_unknown
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.echofm.network import DIM, FRAMES, PATCH, SIZE, TIMES, TUBE, EchoFM
from cardiobench.models.files import ModelFiles
from cardiobench.models.pooling import pool
from cardiobench.models.tokens import on_grid
from cardiobench.models.weights import load_exactly, read_settings, read_weights

COMPONENT = "adapter echofm"
VERSION = 1

WEIGHTS = ("echofm_vitl.pth", "model.safetensors")
POOLINGS = ("mean", "cls", "max")
# Settings of the encoder in `model_args` of the published checkpoint; other entries concern pretraining.
SETTINGS = {"num_frames": FRAMES, "t_patch_size": TUBE, "sep_pos_embed": True, "cls_embed": True}


def prepared(frames: np.ndarray) -> torch.Tensor:
    """Prepare the frames of a clip: repeated from the start if there are too few, resized to 224 x 224.

    A short clip is repeated instead of padded, because the network was trained on cardiac cycles. Resizing is bilinear
    with antialias (Pillow) and does not keep the aspect ratio.

    Args:
        frames: Uint8 RGB, (T, H, W, 3), T >= 1; frames after the 32nd are ignored.

    Returns:
        Clip, uint8 (32, 224, 224, 3).
    """
    from PIL import Image

    bilinear = Image.Resampling.BILINEAR
    small = [
        np.asarray(Image.fromarray(frame).resize((SIZE, SIZE), bilinear))
        for frame in np.ascontiguousarray(frames[:FRAMES])
    ]
    return torch.from_numpy(np.stack([small[number % len(small)] for number in range(FRAMES)]))


def normalised(clips: torch.Tensor) -> torch.Tensor:
    """Scale prepared clips uint8 (N, 32, 224, 224, 3) to the network's input, float (N, 3, 32, 224, 224) in [0, 1]."""
    return clips.movedim(-1, 1).float() / 255


def refuse_other_settings(settings: Mapping[str, Any], what: str) -> None:
    """Raise `BadModel` if the settings next to the weights differ from those of the published encoder."""
    other = {key: settings[key] for key, value in SETTINGS.items() if key in settings and settings[key] != value}
    if other:
        expected = {key: SETTINGS[key] for key in other}
        raise BadModel(
            f"{what} was trained with {other}, the published EchoFM with {expected}. Its weights would be read as another "
            f"network's: give the published file."
        )


class EchoFmVectors(torch.nn.Module):
    """The network with a pooling of its tokens."""

    def __init__(self, network: EchoFM, pooling: str):
        super().__init__()
        self.network, self.pooling = network, pooling

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips uint8 (N, 32, 224, 224, 3) as embeddings (N, 1024)."""
        tokens = self.network.encoded(normalised(clips))
        return pool(tokens if self.pooling == "cls" else tokens[:, 1:], self.pooling)

    def tokens(self, clips: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips as tokens (N, 8, 14, 14, 1024): each time covers four frames."""
        side = SIZE // PATCH
        return on_grid(self.network.encoded(normalised(clips)), (TIMES, side, side))


class EchoFMEncoder(ClipEncoder):
    """EchoFM on the first 32 frames of a clip."""

    def transform(self, recording: Clip) -> torch.Tensor:
        """Prepare a clip for the network. Returns uint8 (1, 32, 224, 224, 3)."""
        return prepared(recording.frames)[None]


def load(card: ModelCard, source: ModelFiles, *, pooling: str = "mean", variant: str = "") -> EchoFMEncoder:
    """Load EchoFM with the weights of `echofm_vitl.pth`, whose settings (`model_args`) must be the published ones.

    Args:
        card: Model card.
        source: Location of the model files.
        pooling: `mean` of the tokens, as published; `cls`, the class token, which the authors discard; or `max`.
        variant: Single option.

    Raises:
        BadModel: Weights do not match the network exactly; those from before August 2026 lack `prj_norm.*`.
    """
    refuse_unknown(card, "pooling", pooling, POOLINGS)
    paths = source.weights(WEIGHTS)
    refuse_other_settings(read_settings(paths[0], "model_args") or {}, f"{card.id} ({paths[0].name})")
    with torch.device("meta"):
        network = EchoFM()
    load_exactly(network, read_weights(paths), card.id)
    return EchoFMEncoder(
        name=card.id,
        revision=source.revision(paths),
        network=EchoFmVectors(network, pooling),
        dim=DIM,
        sampling=FrameSampling(count=FRAMES, stride=1, start="first"),
        preprocessing={**card.preprocessing, "pooling": pooling},
    )
