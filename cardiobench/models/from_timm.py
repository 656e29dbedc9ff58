"""Models in the layout of timm: `config.json` with `architecture`, and weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.models.files import ModelFiles, digest, first_line
from cardiobench.models.frames import WHOLE, FrameSettings
from cardiobench.models.grey_levels import Prepare
from cardiobench.models.image import ImageEncoder, picture_by_picture
from cardiobench.models.pooling import pool
from cardiobench.models.safe_folder import safe_folder, timm_config
from cardiobench.models.tokens import last_map
from cardiobench.models.weights import difference, read_weights, refuse_difference, refuse_larger, with_tied

COMPONENT = "adapter timm"
VERSION = 1

CONFIG = "config.json"
RULES = {CONFIG: timm_config}
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "pytorch_model.pth", "model.pth")


# Name of a pooling in timm -> our name.
NAMES = {"token": "cls", "avg": "mean", "max": "max"}


Network = Any  # A timm model, whose attributes are untyped.


class TimmTower(torch.nn.Module):
    """A network of timm without its classifier, optionally with another pooling of its tokens."""

    def __init__(self, network: Network, pooling: str):
        super().__init__()
        self.network: Network = network
        self.pooling = pooling

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, H, W) as vectors (N, D); means and maxima exclude class and register tokens."""
        if not self.pooling:
            return self.network(frames)
        tokens = self.network.forward_features(frames)
        patches = tokens if self.pooling == "cls" else tokens[:, self.network.num_prefix_tokens :]
        return self.network.fc_norm(pool(patches, self.pooling))

    def tokens(self, frames: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, H, W) as tokens (N, 1, rows, columns, width)."""
        return last_map(self.network, frames, norm=True)


def poolings(source: ModelFiles) -> tuple[str, ...]:
    """Return the poolings of a model's tokens, the model's own first; () if it has only one.

    The default of DINOv3 is the class token, as used by its authors; that of timm is the mean.

    Raises:
        BadModel: An architecture that this timm does not know.
    """
    with safe_folder(source, RULES) as folder, torch.device("meta"):
        network = _network(source, folder)
    default = NAMES.get(getattr(network, "global_pool", ""))
    if default is None or not getattr(network, "num_prefix_tokens", 0) or not hasattr(network, "fc_norm"):
        return ()
    if "dinov3" in source.json(CONFIG)["architecture"]:
        default = "cls"
    return (default, *(name for name in ("cls", "mean", "max") if name != default))


def load(source: ModelFiles, *, pooling: str = "", frames: FrameSettings = WHOLE) -> ImageEncoder:
    """Load the encoder of a timm model, which returns the pooled features before its classifier.

    Args:
        source: The files.
        pooling: One of `poolings`; "" for the model's own.
        frames: Steps before the model's own transform.

    Raises:
        BadModel: The installed timm does not know the architecture, or the weights do not match it exactly.
    """
    try:
        import timm
    except ImportError as error:
        raise MissingExtra("a timm model", "models", "timm") from error

    weights = source.weights(WEIGHTS)
    state = read_weights(weights)
    with safe_folder(source, RULES) as folder:
        with torch.device("meta"):
            refuse_larger(_network(source, folder), weights, source.name)
        network = _loaded(source, folder, state)
    network.reset_classifier(0)
    data = timm.data.resolve_model_data_config(network)
    default = NAMES.get(getattr(network, "global_pool", ""), "")
    other = pooling not in ("", default)
    tower, prepare = tower_and_transform(network, data, pooling if other else "")
    return ImageEncoder(
        name=source.name,
        revision=source.revision(weights),
        network=tower,
        frames=frames,
        prepare=prepare,
        sampling=frames.sampling,
        preprocessing={
            "library": "timm",
            "config": digest([source.folder / CONFIG]),
            **frames.facts(),
            "frames": {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()},
            "readout": f"features before the classifier, pooling '{pooling or getattr(network, 'global_pool', '')}'",
        },
        no_text_reason="a timm model has no text tower",
    )


def tower_and_transform(
    network: Network, data: Mapping[str, Any], pooling: str = ""
) -> tuple[torch.nn.Module, Prepare]:
    """Return a network of timm as a tower for frames, and timm's preparation of them.

    Args:
        network: Network without its classifier.
        data: Arguments of `timm.data.create_transform`.
        pooling: Pooling of the tokens; "" for the network's own.
    """
    import timm

    transform = timm.data.create_transform(**data, is_training=False)
    return picture_by_picture(TimmTower(network, pooling), transform)


def _loaded(source: ModelFiles, folder: Path, state: dict[str, torch.Tensor]) -> Network:
    """Build the network with its classifier and load exactly the given weights.

    timm applies a filter of the architecture, which renames keys of older checkpoints. The filter may also interpolate
    tensors of a different shape, which would give a different model, so shapes are compared first.
    """
    import timm

    network = _network(source, folder)
    state = with_tied(network, state)
    names, background = difference(network, state), network.pretrained_cfg.get("label_offset")
    if background:  # The classifier has one more class than the network, which timm's own loader removes.
        head = network.pretrained_cfg["classifier"]
        names["wrong shape"] = [name for name in names["wrong shape"] if not name.startswith(head)]
    refuse_difference({"wrong shape": names["wrong shape"]}, source.name)
    if not (names["missing"] or names["unexpected"] or background):
        network.load_state_dict(state, strict=True)
        return network
    given = {"state_dict": state, "source": "", "file": None, "custom_load": False}
    try:
        return timm.create_model(f"local-dir:{folder}", pretrained=True, pretrained_cfg_overlay=given)
    except (RuntimeError, KeyError) as error:
        refuse_difference(names, source.name)
        raise BadModel(f"timm {timm.__version__} cannot load the weights of {source.name}: {error}.") from error


def _network(source: ModelFiles, folder: Path) -> Network:
    """Build the architecture named in the configuration, without weights."""
    try:
        import timm
    except ImportError as error:
        raise MissingExtra("a timm model", "models", "timm") from error
    try:
        return timm.create_model(f"local-dir:{folder}", pretrained=False)
    except (RuntimeError, KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise BadModel(
            f"timm {timm.__version__} cannot build {source.name} from {CONFIG}: {first_line(error)}."
        ) from error
