"""Models saved in timm's own layout: `config.json` with `architecture`, and the weights beside it."""

import torch

from cardiobench.errors import BadModel, MissingExtra
from cardiobench.models.image import FrameByFrame, ImageEncoder
from cardiobench.models.source import Source, digest
from cardiobench.models.weights import difference, read_weights, refuse_difference

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "pytorch_model.pth", "model.pth")


def load(source: Source, loaded_by: str) -> ImageEncoder:
    """Encoder of a timm model: the pooled features in front of its classifier.

    Raises:
        BadModel: an architecture that this timm does not know, or weights that do not fit it to the last key.
    """
    try:
        import timm
    except ImportError as error:
        raise MissingExtra("a timm model", "models", "timm") from error

    weights = source.weights(WEIGHTS)
    network = _loaded(source, read_weights(weights))
    network.reset_classifier(0)
    data = timm.data.resolve_model_data_config(network)
    return ImageEncoder(
        name=source.name,
        revision=source.revision(weights),
        network=network,
        prepare=FrameByFrame(timm.data.create_transform(**data, is_training=False)),
        preprocessing={
            "library": "timm",
            "config": digest([source.folder / CONFIG]),
            "colour": "RGB",
            "frames": {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()},
            "readout": f"features in front of the classifier, pooling '{getattr(network, 'global_pool', '')}'",
        },
        loaded_by=loaded_by,
        no_text_reason="a timm model has no text tower",
    )


def _loaded(source: Source, state: dict[str, torch.Tensor]) -> torch.nn.Module:
    """The network with its classifier and exactly these weights.

    timm loads them through the architecture's own filter, which renames the keys of older checkpoints. The filter may
    also interpolate tensors of another shape: that would be another model, so shapes are compared first.
    """
    import timm

    where = f"local-dir:{source.folder}"
    try:
        network = timm.create_model(where, pretrained=False)
    except (RuntimeError, KeyError, TypeError, ValueError) as error:
        raise BadModel(f"timm {timm.__version__} cannot build {source.name} from {CONFIG}: {error}.") from error
    names, background = difference(network, state), network.pretrained_cfg.get("label_offset")
    if background:  # the classifier has one more class than the network: timm's own loader takes it off
        head = network.pretrained_cfg["classifier"]
        names["wrong shape"] = [name for name in names["wrong shape"] if not name.startswith(head)]
    refuse_difference({"wrong shape": names["wrong shape"]}, source.name)
    if not (names["missing"] or names["unexpected"] or background):
        network.load_state_dict(state, strict=True)
        return network
    given = {"state_dict": state, "source": "", "file": None, "custom_load": False}
    try:
        return timm.create_model(where, pretrained=True, pretrained_cfg_overlay=given)
    except (RuntimeError, KeyError) as error:
        refuse_difference(names, source.name)
        raise BadModel(f"timm {timm.__version__} cannot load the weights of {source.name}: {error}.") from error
