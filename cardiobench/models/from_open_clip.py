"""Models in the layout of open_clip: `open_clip_config.json` and weights."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cardiobench.core.errors import BadModel, CardioBenchError, MissingExtra
from cardiobench.models.files import ModelFiles, digest, first_line, resolve_model_files
from cardiobench.models.frames import WHOLE, FrameSettings
from cardiobench.models.image import ImageEncoder, ImageTextEncoder, picture_by_picture
from cardiobench.models.processors import check_texts, check_tokenizer_file
from cardiobench.models.safe_folder import (
    TOKENIZER_RULES,
    errors_with_a_class,
    open_clip_config,
    safe_folder,
    transformers_config,
)
from cardiobench.models.tokens import last_map
from cardiobench.models.weights import load_exactly, read_weights, refuse_larger

COMPONENT = "adapter open_clip"
VERSION = 1

CONFIG = "open_clip_config.json"
RULES = {CONFIG: open_clip_config, **TOKENIZER_RULES}
WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
)
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
)


Network = Any  # A model of open_clip, which is untyped.


class Tower(torch.nn.Module):
    """Base class of the towers of a two-tower model."""

    def __init__(self, model: Network):
        super().__init__()
        self.model: Network = model


class ImageTower(Tower):
    """Image tower: frames (N, 3, H, W) to vectors (N, D)."""

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, H, W) as vectors (N, D), not normalised."""
        return self.model.encode_image(frames)

    def tokens(self, frames: torch.Tensor) -> torch.Tensor:
        """Encode frames (N, 3, H, W) as tokens (N, 1, rows, columns, width)."""
        return last_map(self.model.visual, frames, normalize_intermediates=True)


class OpenClipTextTower(Tower):
    """Text tower: token ids (N, L) to vectors (N, D)."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Encode token ids (N, L) as vectors (N, D), not normalised."""
        return self.model.encode_text(tokens)


def load(source: ModelFiles, *, pooling: str = "", frames: FrameSettings = WHOLE, no_text: str = "") -> ImageEncoder:
    """Load the encoder of an open_clip model, including its text tower if the tokenizer is available.

    Args:
        source: The files.
        pooling: Pooling; only the model's own is available.
        frames: Steps before the model's own transform.
        no_text: Reason why the text tower must not be used; "" if it may be used.

    Raises:
        BadModel: open_clip cannot build the configuration, or the weights do not match it exactly.
    """
    try:
        from open_clip.transform import PreprocessCfg, image_transform_v2
    except ImportError as error:
        raise MissingExtra("an open_clip model", "models", "open_clip_torch") from error

    weights = source.weights(WEIGHTS)
    state = read_weights(weights)
    with safe_folder(source, RULES) as folder:
        network = _network(source, folder, weights)
        tokenize, tokenizer = (None, no_text) if no_text else _tokenizer(source, folder)
    load_exactly(network, _in_todays_layout(state, network), source.name)

    config = PreprocessCfg(**network.visual.preprocess_cfg)
    facts: dict[str, Any] = {
        "library": "open_clip",
        "config": digest([source.folder / CONFIG]),
        **frames.facts(),
        "frames": {key: _plain(value) for key, value in network.visual.preprocess_cfg.items()},
        "readout": "encode_image",
    }
    tower, prepare = picture_by_picture(ImageTower(network), image_transform_v2(config, is_train=False))
    common: dict[str, Any] = {
        "name": source.name,
        "revision": source.revision(weights),
        "network": tower,
        "frames": frames,
        "prepare": prepare,
        "sampling": frames.sampling,
    }
    if tokenize is None:
        return ImageEncoder(**common, preprocessing=facts, no_text_reason=tokenizer)
    facts["text"] = {"tokenizer": tokenizer, "context_length": tokenize.tokenizer.context_length}
    return ImageTextEncoder(
        **common,
        preprocessing=facts,
        text_network=OpenClipTextTower(network),
        tokenize=tokenize,
        logit_scale=float(network.logit_scale.detach().exp()),
    )


def _network(source: ModelFiles, folder: Path, weights: Sequence[Path]) -> Network:
    """Build the network of the checked configuration with random values; refuse a network larger than its weights."""
    import open_clip

    root, hush = logging.getLogger(), _NotFromOpenClip()
    root.addFilter(hush)
    try:
        with _text_tower(source, folder):
            with torch.device("meta"):
                empty = open_clip.create_model(
                    f"local-dir:{folder}", load_weights=False, pretrained_text=False, device="meta"
                )
            refuse_larger(empty, weights, source.name)
            return open_clip.create_model(f"local-dir:{folder}", load_weights=False, pretrained_text=False)
    except (ValueError, TypeError, KeyError, RuntimeError, AttributeError, OSError, AssertionError) as error:
        raise BadModel(f"open_clip cannot build {source.name} from {CONFIG}: {first_line(error)}.") from error
    finally:
        root.removeFilter(hush)


@contextmanager
def _text_tower(source: ModelFiles, folder: Path) -> Iterator[None]:
    """Let open_clip read the checked configuration of a text tower of transformers from a separate folder."""
    path = folder / CONFIG
    settings = json.loads(path.read_text(encoding="utf-8"))
    text = settings["model_cfg"]["text_cfg"]
    if not text.get("hf_model_name"):
        yield
        return
    try:
        tower = resolve_model_files(str(text["hf_model_name"]))
    except CardioBenchError as error:
        raise BadModel(
            f"{source.name}: its text tower is described in the Hub repository {text['hf_model_name']}, which must be in "
            f"the cache. {error}"
        ) from error
    with safe_folder(tower, {"config.json": transformers_config}) as described:
        text["hf_model_name"] = str(described)
        path.write_text(json.dumps(settings), encoding="utf-8")
        yield


class _NotFromOpenClip(logging.Filter):
    """Suppress open_clip's warnings about random weights, because weights are loaded later."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record was logged by another library."""
        return "open_clip" not in record.pathname


def _in_todays_layout(state: dict[str, torch.Tensor], network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Rename keys of weights saved by older versions of open_clip, as it does itself; no value changes."""
    from open_clip.convert import convert_state_dict
    from open_clip.model import convert_to_custom_text_state_dict

    state = dict(convert_state_dict(network, state))
    if "positional_embedding" in state and not hasattr(network, "positional_embedding"):
        state = convert_to_custom_text_state_dict(state)
    # Position numbers 0, 1, 2, ..., stored in the weights by transformers before version 4.31.
    state.pop("text.transformer.embeddings.position_ids", None)
    for scalar in ("logit_scale", "logit_bias"):
        wanted = getattr(network, scalar, None)
        if scalar in state and wanted is not None and state[scalar].numel() == wanted.numel():
            state[scalar] = state[scalar].reshape(wanted.shape)
    return state


@dataclass(frozen=True)
class Tokenize:
    """An open_clip tokenizer as a function of texts."""

    tokenizer: Any

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Tokenize texts: token ids (N, context length)."""
        check_texts(getattr(self.tokenizer, "tokenizer", None), texts)
        return self.tokenizer(list(texts))


def _tokenizer(source: ModelFiles, folder: Path) -> tuple[Tokenize | None, str]:
    """Return the tokenizer and its description, or None and the reason for its absence."""
    import open_clip
    from open_clip.tokenizer import HFTokenizer

    text = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model_cfg"]["text_cfg"]
    named = text.get("hf_tokenizer_name")
    try:
        with errors_with_a_class():
            if not named:
                return Tokenize(open_clip.get_tokenizer(f"local-dir:{folder}")), "the CLIP vocabulary inside open_clip"
            if any((folder / file).is_file() for file in TOKENIZER_FILES):
                check_tokenizer_file(folder)
                tokenizer = Tokenize(open_clip.get_tokenizer(f"local-dir:{folder}"))
                return tokenizer, f"{_class(tokenizer.tokenizer)}, saved with the model"
            settings = {"context_length": text.get("context_length", 77), "tokenizer_mode": text.get("tokenizer_mode")}
            rules = {"config.json": transformers_config, **TOKENIZER_RULES}
            with safe_folder(resolve_model_files(str(named)), rules) as words:
                check_tokenizer_file(words)
                tokenizer = Tokenize(HFTokenizer(str(words), **settings, **(text.get("tokenizer_kwargs") or {})))
            return tokenizer, f"{_class(tokenizer.tokenizer)}, from {named}"
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ImportError, CardioBenchError) as error:
        reason = first_line(error)
        return None, f"no readable tokenizer files in {source.folder}, and none for '{named}' ({reason})"


def _class(tokenizer: Any) -> str:
    return f"{type(tokenizer).__name__} ({type(tokenizer.tokenizer).__name__})"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
