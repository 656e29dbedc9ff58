"""dino.txt: frames and sentences in a common space, loaded from the two files of its authors."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.models.blocks.clip_encoder import CLIP_SCALE, no_scale
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.dinotxt.network import CONTEXT, DinoTxt
from cardiobench.models.files import ModelFiles
from cardiobench.models.frames import frame_settings
from cardiobench.models.grey_levels import Normalised, torchvision_levels
from cardiobench.models.image import ImageTextEncoder
from cardiobench.models.weights import load_exactly, read_weights

COMPONENT = "adapter dinotxt"
VERSION = 1

BACKBONE = ("dinov3_vitl16_pretrain_lvd1689m-8aa4cbdd.pth",)
HEADS = ("dinov3_vitl16_dinotxt_vision_head_and_text_encoder-a442d8f5.pth",)
RESIZED, SIZE = 256, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

SCALE = "logit_scale"


def prepared(frames: np.ndarray) -> torch.Tensor:
    """Prepare frames as in the authors' code: short side to 256, bicubic with antialias, central 224 x 224.

    Args:
        frames: Uint8 RGB, (T, H, W, 3).

    Returns:
        Frames, uint8 (T, 3, 224, 224).
    """
    from torchvision.transforms.v2 import InterpolationMode, functional

    pictures = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2)
    small = functional.resize(pictures, [RESIZED], interpolation=InterpolationMode.BICUBIC, antialias=True)
    return functional.center_crop(small, [SIZE, SIZE])


class PreparedFrames:
    """Preparation by `prepared` for a network that encodes every frame separately."""

    frame_wise = True

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 RGB (T, H, W, 3) as uint8 (T, 3, 224, 224)."""
        return prepared(frames)


def tokens(texts: Sequence[str]) -> torch.Tensor:
    """Tokenize texts in CLIP's vocabulary, (N, 77): lower case, begin and end tokens, zero-padded, truncated."""
    import open_clip

    return open_clip.tokenize(list(texts), CONTEXT)


def load(card: ModelCard, source: ModelFiles, *, pooling: str = "", variant: str = "") -> ImageTextEncoder:
    """Load dino.txt from the folder with the ViT-L of DINOv3 and the file of the vision head and text encoder.

    Args:
        card: Model card.
        source: The folder.
        pooling: Single option: the class token and the mean of the patches, concatenated.
        variant: Single option.

    Raises:
        BadModel: A file is missing, its content contradicts its name, or it does not match the network exactly.
        MissingExtra: open_clip, which provides the vocabulary of CLIP, is not installed.
    """
    try:
        import open_clip  # noqa: F401
    except ImportError as error:
        raise MissingExtra("dino.txt", "models", "open_clip_torch") from error
    if source.single:
        raise BadModel(
            f"{card.id} needs two files, {BACKBONE[0]} and {HEADS[0]}, but only {source.files[0]} was given. "
            f"Give the folder that contains both."
        )
    paths = [*source.weights(BACKBONE), *source.weights(HEADS)]
    state = {f"visual_model.backbone.{name}": tensor for name, tensor in read_weights(paths[:1]).items()}
    state |= read_weights(paths[1:])
    scale_is_there = SCALE in state  # The version for DINOv2 lacks this parameter.
    state.setdefault(SCALE, torch.tensor([math.log(CLIP_SCALE)]))
    with torch.device("meta"):
        network = DinoTxt()
    load_exactly(network, state, f"{card.id} ({' and '.join(path.name for path in paths)})")
    frames = frame_settings(card.stated(), card.id)
    return ImageTextEncoder(
        name=card.id,
        revision=source.revision(paths),
        network=Normalised(network.visual_model, torchvision_levels(MEAN, STD)),
        text_network=network.text_model,
        tokenize=tokens,
        logit_scale=float(network.logit_scale.detach().exp()),
        prepare=PreparedFrames(),
        frames=frames,
        sampling=frames.sampling,
        preprocessing={**card.preprocessing},
        warnings=() if scale_is_there else (no_scale(HEADS[0]),),
    )
