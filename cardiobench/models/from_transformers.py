"""Models supported by transformers: two towers, an image tower, or a video network."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError

from cardiobench.core.errors import BadModel, CardioBenchError, MissingExtra
from cardiobench.data.media.types import FrameSampling
from cardiobench.models.base import Encoder
from cardiobench.models.blocks.signal_settings import SignalSettings
from cardiobench.models.files import ModelFiles, digest, first_line
from cardiobench.models.frames import WHOLE, FrameSettings
from cardiobench.models.from_transformers_signal import signal_encoder
from cardiobench.models.grey_levels import Prepare, by_table
from cardiobench.models.image import ImageEncoder, ImageTextEncoder
from cardiobench.models.pooling import pool
from cardiobench.models.processors import (
    Frames,
    NaFlexProcessor,
    TextTokenizer,
    WholeClip,
    processor,
    settings,
    tokenizer,
)
from cardiobench.models.safe_folder import LIBRARY_ERRORS, TRANSFORMERS_RULES, safe_folder, without_tokens
from cardiobench.models.transformers_tokens import grid_tokens, last_hidden_state
from cardiobench.models.weights import refuse_difference, refuse_larger, refuse_not_finite, refuse_unreadable

COMPONENT = "adapter transformers"
VERSION = 1

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
TWO_TOWERS = ("clip", "siglip", "siglip2")
VIDEO = ("videomae", "vjepa2")
# Family -> poolings of its tokens, the default first. "pooler" is the trained pooler of the model, or its class token.
POOLINGS = {
    "dinov2": ("cls", "mean", "max"),
    "dinov2_with_registers": ("cls", "mean", "max"),
    "dinov3_vit": ("cls", "mean", "max"),
    "vit": ("pooler", "cls", "mean", "max"),
    "deit": ("pooler", "cls", "mean", "max"),
    "videomae": ("mean", "max"),
    "vjepa2": ("mean", "max"),
}


Network = Any  # A transformers model, whose attributes depend on its family.


class Readout(torch.nn.Module):
    """A transformers model and the function that reads one vector per part from it."""

    def __init__(self, model: Network, read: Callable[[Network, torch.Tensor], torch.Tensor]):
        super().__init__()
        self.model: Network = model
        self.read = read

    def forward(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as vectors (N, D)."""
        return self.read(self.model, parts)

    def tokens(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode parts (N, ...) as tokens (N, times, rows, columns, width)."""
        return grid_tokens(self.model, parts)


def poolings(config: dict[str, Any]) -> tuple[str, ...]:
    """Return the poolings of a model's tokens given its configuration, the model's own first; () if it has only one."""
    return POOLINGS.get(config.get("model_type", ""), ())


def load(
    source: ModelFiles,
    *,
    pooling: str = "",
    frames: FrameSettings = WHOLE,
    own_code: bool = False,
    signal: SignalSettings | None = None,
) -> Encoder:
    """Load the encoder of a transformers model.

    Args:
        source: The files.
        pooling: One of `poolings`; "" for the model's own.
        frames: Steps before the model's own processor.
        own_code: Whether to run the Python code of the model.
        signal: Input format of an ECG model; None for a model of frames.

    Raises:
        BadModel: The weights do not match the configuration exactly, or the network does not accept frames.
    """
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a transformers model", "models", "transformers") from error
    weights = source.weights(WEIGHTS)
    refuse_unreadable(weights)
    index = source.find([name for name in WEIGHTS if name.endswith(".index.json")])
    read = [*weights, source.folder / index] if index and len(weights) > 1 else weights
    hidden = without_tokens() if own_code else nullcontext()
    with _quiet(), hidden, safe_folder(source, TRANSFORMERS_RULES, read, own_code=own_code) as folder:
        if signal is not None:
            model, _ = _loaded(source, folder, weights, own_code)
            return signal_encoder(model, source, weights, signal, pooling)
        return _encoder(source, folder, weights, pooling, frames, own_code)


def _encoder(
    source: ModelFiles, folder: Path, weights: Sequence[Path], pooling: str, frames: FrameSettings, own_code: bool
) -> ImageEncoder:
    model, has_pooler = _loaded(source, folder, weights, own_code)
    config = model.config
    image_processor, warnings = processor(source, folder, config, own_code)
    prepare, read, readout, sampling = _plan(model, image_processor, has_pooler, frames.sampling)
    if pooling not in ("", *poolings(config.to_dict())[:1]):
        read, readout = partial(_token_pooling, how=pooling), f"{pooling} of the patch tokens"
        readout = "class token" if pooling == "cls" else readout
    network: torch.nn.Module = Readout(model, read)
    lean = prepare.without_normalisation()
    prepared: Prepare = prepare
    if lean is not None:
        network, prepared = by_table(network, prepare, lean, image_processor.image_mean, image_processor.image_std)
    facts: dict[str, Any] = {
        "library": "transformers",
        "class": type(model).__name__,
        "config": digest([source.folder / CONFIG]),
        **replace(frames, sampling=sampling).facts(),
        "frames": {"processor": type(image_processor).__name__, **settings(image_processor)},
        "readout": readout,
    }
    common: dict[str, Any] = {
        "name": source.name,
        "revision": source.revision(weights),
        "network": network,
        "frames": frames,
        "prepare": prepared,
        "sampling": sampling,
        "warnings": warnings,
    }
    if config.model_type not in TWO_TOWERS:
        return ImageEncoder(
            **common, preprocessing=facts, no_text_reason=f"a {config.model_type} model has no text tower"
        )
    tokens, named = tokenizer(source, folder, config, own_code)
    if tokens is None:
        return ImageEncoder(**common, preprocessing=facts, no_text_reason=named)
    facts["text"] = _text_facts(tokens, named)
    return ImageTextEncoder(
        **common,
        preprocessing=facts,
        text_network=Readout(model, _text_features),
        tokenize=tokens,
        logit_scale=float(model.logit_scale.detach().exp()),
    )


def _loaded(source: ModelFiles, folder: Path, weights: Sequence[Path], own_code: bool) -> tuple[Network, bool]:
    """Load the complete network; also return whether its pooler was trained.

    The checkpoint is loaded into the class from which it was saved, including the head, so that every key is used; the
    head is removed afterwards. (AutoModel would drop the weights of the head and initialise a pooler randomly.)
    """
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=own_code, local_files_only=True)
        saved_as = next(iter(config.architectures or ()), "AutoModel")
        remote = own_code and "AutoModel" in (getattr(config, "auto_map", None) or {})
        builder = _class_of(saved_as)
        if not remote:
            with torch.device("meta"):
                empty = (
                    transformers.AutoModel.from_config(config) if builder is transformers.AutoModel else builder(config)
                )
            refuse_larger(empty, weights, source.name)
        model, report = (transformers.AutoModel if remote else builder).from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **({"trust_remote_code": True} if remote else {"config": config}),
        )
    except CardioBenchError:
        raise
    except (*LIBRARY_ERRORS, StrictDataclassError) as error:
        told = first_line(error).replace(str(folder), str(source.folder))
        raise BadModel(f"transformers cannot load {source.name}: {told}") from error
    refuse_not_finite(model.named_parameters(), source.name)
    headless: Any = transformers.MODEL_MAPPING.get(type(config), ())
    base = model if remote or isinstance(model, headless) else model.base_model
    missing = set(report["missing_keys"])
    # Some vision transformers were published without their pooler. They use the class token, and the randomly
    # initialised pooler is removed. Any other missing key is refused.
    made_up = {key for key in missing if ("." + key).rpartition(".pooler.")[1]} if _pooler_is_optional(base) else set()
    refuse_difference(
        {
            "missing": sorted(missing - made_up),
            "unexpected": sorted(report["unexpected_keys"]),
            "wrong shape": [
                f"{key} (weights {tuple(a)}, network {tuple(b)})" for key, a, b in sorted(report["mismatched_keys"])
            ],
        },
        source.name,
    )
    if made_up:
        base.pooler = None
    return base, getattr(base, "pooler", True) is not None


def _class_of(name: str) -> Any:
    """Return the transformers class from which a checkpoint was saved; AutoModel for unknown names."""
    import transformers

    image_processor = getattr(transformers, name, None)
    is_model = isinstance(image_processor, type) and issubclass(image_processor, transformers.PreTrainedModel)
    return image_processor if is_model else transformers.AutoModel


def _pooler_is_optional(model: Network) -> bool:
    return model.config.model_type in ("vit", "deit", "beit") and getattr(model, "pooler", None) is not None


# Preparation of frames, function that reads the output, its name, and the sampling of frames.
Plan = tuple[Frames | NaFlexProcessor | WholeClip, Callable[[Network, torch.Tensor], torch.Tensor], str, FrameSampling]


def _plan(model: Network, image_processor: Any, has_pooler: bool, sampling: FrameSampling) -> Plan:
    """Return the preparation of frames, the function that reads the output, and the sampling of frames."""
    kind = model.config.model_type
    if kind == "siglip2":
        return NaFlexProcessor(image_processor), _patch_features, "get_image_features", sampling
    if kind in TWO_TOWERS:
        return Frames(image_processor), _image_features, "get_image_features", sampling
    if kind in VIDEO:
        count = getattr(model.config, "num_frames", None) or model.config.frames_per_clip
        clip = WholeClip(image_processor, count, video="VideoProcessor" in type(image_processor).__name__)
        evenly = FrameSampling(count=count, start="uniform")
        return clip, _token_mean, f"mean of the tokens of {count} frames evenly over the clip", evenly
    return Frames(image_processor), _pooled, "pooler output" if has_pooler else "class token", sampling


def _image_features(model: Network, frames: torch.Tensor) -> torch.Tensor:
    return _vector(model.get_image_features(pixel_values=frames))


def _patch_features(model: Network, parts: torch.Tensor) -> torch.Tensor:
    shapes, patches = parts[:, 0, :2].long(), parts[:, 1:]
    mask = torch.arange(patches.shape[1], device=parts.device) < shapes.prod(dim=1, keepdim=True)
    return _vector(
        model.get_image_features(pixel_values=patches, pixel_attention_mask=mask.int(), spatial_shapes=shapes)
    )


def _text_features(model: Network, tokens: torch.Tensor) -> torch.Tensor:
    # No attention mask is needed: the text tower of CLIP is causal and read at the end-of-text token, and the SigLIP
    # towers were trained with visible padding.
    return _vector(model.get_text_features(input_ids=tokens))


def _vector(output: Any) -> torch.Tensor:
    return getattr(output, "pooler_output", output)


def _token_mean(model: Network, clips: torch.Tensor) -> torch.Tensor:
    return last_hidden_state(model, clips).mean(dim=1)


def _token_pooling(model: Network, parts: torch.Tensor, how: str) -> torch.Tensor:
    """Pool the tokens of parts; means and maxima exclude class, distillation and register tokens."""
    tokens, config = last_hidden_state(model, parts), model.config
    if how == "cls":
        return tokens[:, 0]
    special = 0 if config.model_type in VIDEO else 1 + getattr(config, "num_register_tokens", 0)
    return pool(tokens[:, special + (config.model_type == "deit") :], how)


def _pooled(model: Network, frames: torch.Tensor) -> torch.Tensor:
    output = model(pixel_values=frames)
    pooled = getattr(output, "pooler_output", None)
    if pooled is not None:
        return pooled.flatten(1)
    tokens = output.last_hidden_state
    return tokens.mean(dim=(2, 3)) if tokens.ndim == 4 else tokens[:, 0]


def _text_facts(tokens: TextTokenizer, named: str) -> dict[str, Any]:
    return {"tokenizer": named, "padding": f"max_length {tokens.length}", "lower_case": tokens.lower}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the progress bar and warnings of transformers, because keys are checked and reported by this package."""
    from transformers.utils import logging as messages

    level, bars = messages.get_verbosity(), messages.is_progress_bar_enabled()
    messages.set_verbosity(logging.CRITICAL)
    messages.disable_progress_bar()
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if bars:
            messages.enable_progress_bar()
