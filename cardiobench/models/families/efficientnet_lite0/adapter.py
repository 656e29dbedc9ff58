"""EfficientNet-Lite0: single frames, scaled to 256 pixels at the shorter side and cropped to the central 224.

Preprocessing: `efficientnet_lite_builder.py` and `preprocessing.py` of tensorflow/tpu (mean 127, standard deviation 128, bicubic).
"""

from typing import Any

from cardiobench.models.blocks.signal_encoder import loaded
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.efficientnet_lite0.network import build, published_keys
from cardiobench.models.files import ModelFiles
from cardiobench.models.frames import frame_settings
from cardiobench.models.from_timm import tower_and_transform
from cardiobench.models.image import ImageEncoder
from cardiobench.models.weights import read_weights

COMPONENT = "adapter efficientnet-lite0"
VERSION = 1

INPUT = {
    "input_size": (3, 224, 224),
    "interpolation": "bicubic",
    "mean": (127 / 255,) * 3,
    "std": (128 / 255,) * 3,
    "crop_pct": 0.875,
}
"""Arguments of `timm.data.create_transform`."""
WEIGHTS = ("efficientnet-lite0-57934424.pth",)


def load(card: ModelCard, source: ModelFiles, *, pooling: str, variant: str) -> ImageEncoder:
    """Load the network without its classifier from the weights of the package.

    Raises:
        BadModel: Weights are missing, cannot be read safely, or do not match the network exactly.
    """
    weights = source.weights(WEIGHTS)
    network: Any = loaded(build, published_keys(read_weights(weights)), card.id)
    network.reset_classifier(0)
    tower, prepare = tower_and_transform(network, INPUT)
    # The card's `size` describes INPUT in words.
    frames = frame_settings(card.stated().only(("colour", "frames", "stride", "start")), card.id)
    return ImageEncoder(
        name=card.id,
        revision=source.revision(weights),
        network=tower,
        frames=frames,
        prepare=prepare,
        sampling=frames.sampling,
        preprocessing=card.preprocessing,
        no_text_reason="EfficientNet-Lite0 has no text tower",
    )
