"""From a name or a folder to an encoder: which loader, by which rule."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from cardiobench.errors import BadModel, MissingExtra
from cardiobench.models.base import Encoder
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.models.source import Source, open_source

if TYPE_CHECKING:
    import torch

# Adapter of a model card -> the function that makes its encoder from the card.
ADAPTERS = {
    "constant": "cardiobench.models.baselines.constant:Constant",
    "random-vit": "cardiobench.models.baselines.random_vit:RandomVit",
    "pixel-motion": "cardiobench.models.baselines.pixel_motion:PixelMotion",
    "ecg-morphology": "cardiobench.models.baselines.ecg_morphology:EcgMorphology",
    "minirocket": "cardiobench.models.baselines.minirocket:MiniRocket",
}
RULES = (
    "a registered name",
    "open_clip_config.json -> open_clip",
    "config.json with 'architecture' and 'pretrained_cfg' -> timm",
    "config.json with a 'model_type' of transformers -> transformers",
    "config.json with 'auto_map' -> the model's own code",
)


def load_model(
    name_or_path: str,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    device: "torch.device | str | None" = None,
) -> Encoder:
    """The encoder of a registered name, of a Hub repository or of a local folder; `encoder.loaded_by` says why so.

    Args:
        name_or_path: registered name (any letter case), `org/name` on the Hub, or a folder.
        revision: branch, tag or commit on the Hub.
        trust_remote_code: run the Python code that comes with a model. Off unless the user asks for it.
        device: where the network goes; the CPU when not given.

    Raises:
        UnknownName: a name that is neither registered nor a folder nor a Hub name.
        BadModel: no loader fits, or the weights are not whole.
        MissingExtra: the library that the model needs is not installed.
    """
    card = find_card(str(name_or_path))
    if card is not None:
        encoder = adapter(card.adapter)(card)
        if revision not in (None, encoder.revision):
            raise BadModel(
                f"{card.id} has only revision '{encoder.revision}', asked for '{revision}'. Leave the revision out."
            )
    else:
        source = open_source(str(name_or_path), revision, code=trust_remote_code)
        encoder = _from_files(source, trust_remote_code)
    if device is not None:
        import torch

        encoder = encoder.to(torch.device(device))
    return encoder


def adapter(name: str) -> Callable[[ModelCard], Encoder]:
    """The function that makes the encoder of a registered model.

    Raises:
        BadModel: no adapter of that name.
        MissingExtra: a package it needs is not installed.
    """
    module, _, attribute = ADAPTERS.get(name, name).partition(":")
    if not attribute:
        raise BadModel(f"no adapter '{name}'. Give 'module:class', or one of: {', '.join(sorted(ADAPTERS))}.")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"the model adapter '{name}'", "models", error.name or "torch") from error


def _from_files(source: Source, trust_remote_code: bool) -> Encoder:
    """Encoder by the first rule that fits the model's files.

    Raises:
        BadModel: none fits; says which files were seen and which rules were tried.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a model with weights", "models", "torch") from error

    if "open_clip_config.json" in source.files:
        from cardiobench.models import from_open_clip

        return from_open_clip.load(source, "the folder has open_clip_config.json -> open_clip")
    config = source.json("config.json")
    if "architecture" in config and "pretrained_cfg" in config:
        from cardiobench.models import from_timm

        return from_timm.load(
            source, f"config.json has architecture '{config['architecture']}' and pretrained_cfg -> timm"
        )
    kind, own_code = config.get("model_type"), "auto_map" in config
    if kind and _known_to_transformers(kind):
        from cardiobench.models import from_transformers

        return from_transformers.load(source, f"config.json has model_type '{kind}' -> transformers")
    if own_code and trust_remote_code:
        from cardiobench.models import from_transformers

        why = "config.json has auto_map and its code was trusted -> transformers with the model's own code"
        return from_transformers.load(source, why, trust_remote_code=True)
    if own_code:
        raise BadModel(
            f"{source.name} brings its own Python code (auto_map in config.json). It is not run unless you ask for it: "
            f"read the code, then pass --trust-remote-code (trust_remote_code=True)."
        )
    raise BadModel(
        f"nothing here knows how to load {source.name}. Files seen: {', '.join(source.files) or 'none'}. "
        f"Rules tried, in order: {'; '.join(RULES)}. Adapters: {', '.join(sorted(ADAPTERS))}."
    )


def _known_to_transformers(model_type: str) -> bool:
    try:
        from transformers import CONFIG_MAPPING
    except ImportError as error:
        raise MissingExtra("a transformers model", "models", "transformers") from error
    return model_type in CONFIG_MAPPING
