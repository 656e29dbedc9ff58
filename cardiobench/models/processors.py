"""Preprocessors of transformers: image and video processors, tokenizers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cardiobench.core.errors import BadModel
from cardiobench.models.files import ModelFiles, first_line
from cardiobench.models.image import stretch
from cardiobench.models.safe_folder import errors_with_a_class
from cardiobench.models.tokenizer_trial import backend_of, trial_error

SETTINGS = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
)

# Processor in the documentation of each family, for models saved without one; the second entry states whether it
# resizes to a square ("square") or resizes the short side and crops the centre ("crop").
FAMILY_DEFAULTS = {
    "clip": ("CLIPImageProcessor", "crop"),
    "siglip": ("SiglipImageProcessor", "square"),
    "siglip_vision_model": ("SiglipImageProcessor", "square"),
    "siglip2": ("Siglip2ImageProcessor", "patches"),
    "vit": ("ViTImageProcessor", "square"),
    "dinov2": ("BitImageProcessor", "crop"),
    "dinov2_with_registers": ("BitImageProcessor", "crop"),
    "dinov3_vit": ("DINOv3ViTImageProcessor", "square"),
    "dinov3_convnext": ("DINOv3ViTImageProcessor", "square"),
    "videomae": ("VideoMAEImageProcessor", "crop"),
    "vjepa2": ("VJEPA2VideoProcessor", "crop"),
}


def processor(source: ModelFiles, folder: Path, config: Any, own_code: bool) -> tuple[Any, tuple[str, ...]]:
    """Load the image or video processor saved with a model, or its family's default at the model's image size.

    Returns:
        The processor, and warnings, which are empty if it was saved with the model and has no code of its own.

    Raises:
        BadModel: No processor was saved and the family has no default here, or the saved one cannot be read.
    """
    import transformers

    saved = any(_describes_images(source.json(file)) for file in SETTINGS)
    if not saved:
        return _family_default(source, config)
    auto: Any = transformers.AutoImageProcessor
    if "video_preprocessor_config.json" in source.files or "video_processor" in source.json("processor_config.json"):
        auto = transformers.AutoVideoProcessor
    try:
        loaded = auto.from_pretrained(folder, trust_remote_code=own_code, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        reason = first_line(error).replace(str(folder), str(source.folder))
        raise BadModel(f"{source.name}: its image processor cannot be read: {reason}") from error
    if own_code or '"auto_map"' not in json.dumps([source.json(file) for file in SETTINGS]):
        return loaded, ()
    used = f"{type(loaded).__name__} of transformers is used"
    return loaded, (
        f"the image processor saved with {source.name} names its own code (auto_map), not run here: {used}",
    )


def _describes_images(settings: dict) -> bool:
    return bool({"image_processor", "video_processor", "image_processor_type", "feature_extractor_type", "image_mean",
                 "video_processor_type", "do_normalize"} & set(settings))  # fmt: skip


def _family_default(source: ModelFiles, config: Any) -> tuple[Any, tuple[str, ...]]:
    import transformers

    seen = ", ".join(source.files) or "none"
    if config.model_type not in FAMILY_DEFAULTS:
        raise BadModel(
            f"{source.name} has no image processor, and there is no default for '{config.model_type}'. "
            f"Save one beside the weights (preprocessor_config.json). An ECG model with its own code needs the format of "
            f"its signal instead: fs, seconds, leads, scale, layout in cardiobench.json or --preprocessing. Files seen: {seen}."
        )
    name, how = FAMILY_DEFAULTS[config.model_type]
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", None) or getattr(vision, "crop_size", None)
    square = {"height": size, "width": size}
    choices: dict[str, dict[str, Any]] = {
        "square": {"size": square},
        "crop": {"size": {"shortest_edge": size}, "crop_size": square},
        "patches": {
            "patch_size": getattr(vision, "patch_size", None),
            "max_num_patches": getattr(vision, "num_patches", None),
        },
    }
    warning = f"no image processor was saved with {source.name}: {name} with its defaults and image size {size} is used"
    return getattr(transformers, name)(**choices[how]), (warning,)


RAW = {"do_rescale": False, "do_normalize": False}


def normalises(loaded: Any) -> bool:
    """Return whether a processor of transformers ends with (grey level / 255 - mean) / standard deviation."""
    usual = getattr(loaded, "do_rescale", False) and getattr(loaded, "do_normalize", False)
    if not (usual and type(loaded).__module__.startswith("transformers.")):  # A model's own code may add steps.
        return False
    factor, mean, std = (getattr(loaded, name, None) for name in ("rescale_factor", "image_mean", "image_std"))
    return isinstance(factor, float) and abs(factor - 1 / 255) < 1e-9 and mean is not None and std is not None


@dataclass(frozen=True)
class Frames:
    """An image processor applied to all frames of a clip together.

    Attributes:
        options: Options of the processor for this call.
    """

    processor: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    frame_wise = True

    def without_normalisation(self) -> "Frames | None":
        """Return the processor without its normalisation, giving uint8; None if it has no such step."""
        return replace(self, options=RAW) if normalises(self.processor) else None

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 (T, H, W, 3) as (T, 3, h, w)."""
        inputs = self.processor(images=_channels_first(frames), return_tensors="pt", **LAYOUT, **self.options)
        return inputs["pixel_values"]


@dataclass(frozen=True)
class NaFlexProcessor:
    """Processor of SigLIP 2: patches of the frame at its own aspect ratio, with the number of rows and columns.

    Its three arrays are combined: a first row (patch rows, patch columns, 0, ...) precedes the padded patches.
    """

    processor: Any

    frame_wise = True

    def without_normalisation(self) -> None:
        """Return None, because the padding among the patches is zero after normalisation."""

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 (T, H, W, 3) as (T, 1 + patches, patch pixels)."""
        inputs = self.processor(images=_channels_first(frames), return_tensors="pt", **LAYOUT)
        patches, shapes = inputs["pixel_values"], inputs["spatial_shapes"]
        head = torch.zeros(len(patches), 1, patches.shape[2])
        head[:, 0, :2] = shapes
        return torch.cat([head, patches], dim=1)


@dataclass(frozen=True)
class WholeClip:
    """An image or video processor for a fixed number of frames, which form a single part.

    Attributes:
        count: Number of frames of the network.
        video: Whether the processor takes clips (`videos`) or frames (`images`).
        options: Options of the processor for this call.
    """

    processor: Any
    count: int
    video: bool
    options: Mapping[str, Any] = field(default_factory=dict)

    def without_normalisation(self) -> "WholeClip | None":
        """Return the processor without its normalisation, giving uint8; None if it has no such step."""
        return replace(self, options=RAW) if normalises(self.processor) else None

    def __call__(self, frames: np.ndarray) -> torch.Tensor:
        """Prepare frames uint8 (T, H, W, 3) as (1, count, 3, h, w)."""
        clip = _channels_first(stretch(frames, self.count))
        if self.video:
            inputs = self.processor(
                videos=[clip], return_tensors="pt", do_sample_frames=False, **LAYOUT, **self.options
            )
            return inputs[self.processor.model_input_names[0]]  # The processor of VideoMAE returns `pixel_values`.
        return self.processor(list(clip), return_tensors="pt", **LAYOUT, **self.options)["pixel_values"]


LAYOUT = {"input_data_format": "channels_first"}


def _channels_first(frames: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2)


def settings(loaded: Any) -> dict[str, Any]:
    """Return a processor's settings as plain JSON values."""
    return json.loads(json.dumps(loaded.to_dict(), default=str, sort_keys=True))


@dataclass(frozen=True)
class TextTokenizer:
    """A tokenizer as a function of texts, padded and truncated to the length used in training.

    Attributes:
        lower: Whether to convert texts to lower case first, as in the training of SigLIP and SigLIP 2; some of their
            saved tokenizers do not.
    """

    tokenizer: Any
    length: int
    lower: bool

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """Tokenize texts: token ids (N, length)."""
        texts = [text.lower() for text in texts] if self.lower else list(texts)
        check_texts(self.tokenizer, texts)
        padded = self.tokenizer(
            texts, padding="max_length", truncation=True, max_length=self.length, return_tensors="pt"
        )
        return padded["input_ids"]


def check_texts(tokenizer: Any, texts: Sequence[str]) -> None:
    """Raise `BadModel` if a tokenizer cannot tokenize texts within limits."""
    backend = backend_of(tokenizer)
    if backend and (reason := trial_error(backend, texts)):
        raise BadModel(f"the tokenizer saved with the model cannot be used: {reason}.")


def check_tokenizer_file(folder: Path) -> None:
    """Raise `ValueError` if the tokenizer saved in a folder cannot be used."""
    path = folder / "tokenizer.json"
    if path.is_file() and (reason := trial_error(path.read_text(encoding="utf-8"))):
        raise ValueError(reason)


def tokenizer(source: ModelFiles, folder: Path, config: Any, own_code: bool) -> tuple[TextTokenizer | None, str]:
    """Load the tokenizer saved with a two-tower model; return it and its class name, or None and the reason."""
    import transformers

    if not any(file in source.files for file in TOKENIZER_FILES):
        return None, f"no tokenizer files in {source.folder}"
    try:
        check_tokenizer_file(folder)
        with errors_with_a_class():
            loaded = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=own_code, local_files_only=True
            )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        return None, f"the tokenizer in {source.folder} cannot be read ({first_line(error)})"
    lower = config.model_type in ("siglip", "siglip2")
    return TextTokenizer(loaded, config.text_config.max_position_embeddings, lower), type(loaded).__name__
