"""Folders with all files that a library may read of a model: checked settings, tokenizer data and digested weights.

Libraries read settings from a folder, and some settings name code, other files or other repositories. Libraries
therefore get a temporary folder instead of the model's own, in which JSON files have only listed keys with plain
values, and which contains only the resolved weights. This is also the only place that admits a model's own code.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cardiobench.core.errors import BadModel, CardioBenchError
from cardiobench.models.files import REPOSITORY, ModelFiles, first_line

Settings = dict[str, Any]
Rule = Callable[[Settings, str], Settings]

# Errors that libraries raise for invalid settings or weights.
LIBRARY_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
DEEPEST = 12  # Maximum number of nesting levels.
MOST_LAYERS = 512
LARGEST = 10**9  # Settings without a limit on size or count.
LONGEST = 4096  # Maximum length of a string.
COUNTS_OF_LAYERS = re.compile(r"layers|depths?$|num_blocks")
NAME = re.compile(
    r"[A-Za-z][\w.]*"
)  # Pattern of the name of an architecture or class, without scheme, path or repository.

# Data of tokenizers that no library executes; they are linked unchanged.
TOKENIZER_DATA = (
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)
# Keys of transformers' configurations that name code, kernels, other weights or other repositories.
REFUSED_KEYS = frozenset({
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "attn_implementation",
    "auto_map", "backbone", "backbone_config", "backbone_kwargs", "custom_pipelines", "experts_implementation",
    "gguf_file", "kernel_config", "quantization_config", "transformers_weights", "trust_remote_code", "use_kernels",
    "use_pretrained_backbone", "use_timm_backbone",
})  # fmt: skip
PROCESSOR_KEYS = frozenset({
    "antialias", "crop_pct", "crop_size", "data_format", "default_to_square", "do_center_crop", "do_convert_rgb",
    "do_flip_channel_order", "do_normalize", "do_pad", "do_rescale", "do_resize", "do_sample_frames",
    "feature_extractor_type", "fps", "image_mean", "image_processor", "image_processor_type", "image_std",
    "input_data_format", "interpolation", "max_num_patches", "num_frames", "offset", "pad_size", "patch_size",
    "processor_class", "resample", "rescale_factor", "size", "size_divisor", "video_processor", "video_processor_type",
})  # fmt: skip
TOKENIZER_KEYS = frozenset({
    "add_bos_token", "add_eos_token", "add_prefix_space", "added_tokens_decoder", "additional_special_tokens",
    "bos_token", "clean_up_tokenization_spaces", "cls_token", "do_basic_tokenize", "do_lower_case", "eos_token", "errors",
    "extra_special_tokens", "legacy", "mask_token", "model_input_names", "model_max_length", "never_split", "pad_token",
    "padding_side", "sep_token", "spaces_between_special_tokens", "split_special_tokens", "strip_accents",
    "tokenize_chinese_chars", "tokenizer_class", "truncation_side", "unk_token",
})  # fmt: skip
OPEN_CLIP_TOKENIZER_OPTIONS = frozenset({"clean", "language", "reduction_mask", "strip_sep_token"})
OPEN_CLIP_MODEL_KEYS = frozenset({
    "custom_text", "embed_dim", "init_logit_bias", "init_logit_scale", "nonscalar_logit_scale", "preprocess_cfg",
    "quick_gelu", "text_cfg", "vision_cfg",
})  # fmt: skip
TIMM_ARGUMENTS = frozenset({
    "act_layer", "attn_drop_rate", "class_token", "conv_mlp", "depth", "depths", "dims", "drop_path_rate", "drop_rate",
    "dynamic_img_pad", "dynamic_img_size", "embed_dim", "fc_norm", "final_norm", "global_pool", "head_init_scale",
    "img_size", "in_chans", "init_values", "kernel_sizes", "ls_init_value", "mlp_ratio", "no_embed_class", "norm_eps",
    "norm_layer", "num_classes", "num_heads", "patch_drop_rate", "patch_size", "pos_drop_rate", "pos_embed", "pre_norm",
    "proj_drop_rate", "qk_norm", "qkv_bias", "reg_tokens", "stem_type", "strict_img_size", "use_rot_pos_emb",
    "weight_init", "window_size",
})  # fmt: skip
TIMM_PRETRAINED_KEYS = frozenset({
    "classifier", "crop_mode", "crop_pct", "first_conv", "fixed_input_size", "input_size", "interpolation", "label_offset",
    "mean", "min_input_size", "num_classes", "pool_size", "std", "tag", "test_crop_pct", "test_input_size",
})  # fmt: skip
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HF_API_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")


@contextmanager
def safe_folder(
    source: ModelFiles, rules: Mapping[str, Rule], weights: Sequence[Path] = (), *, own_code: bool = False
) -> Iterator[Path]:
    """Create the folder from which a library reads a model, and remove it afterwards.

    Args:
        source: Files of the model.
        rules: Mapping from name of a JSON file to function that filters its content; other JSON files are left out.
        weights: Resolved weights files, including all shards of an index and the index itself.
        own_code: Whether the model's Python files may run; its settings are then passed on completely if they are
            plain.

    Raises:
        BadModel: A setting is not a plain value, too deep, too large, or not allowed.
    """
    with TemporaryDirectory(prefix="cardiobench-model-") as name:
        folder = Path(name)
        for file, rule in rules.items():
            if content := source.json(file):
                allowed = content if own_code else rule(content, f"{source.name}: {file}")
                text = json.dumps(plain(allowed, f"{source.name}: {file}"))
                (folder / file).write_text(text, encoding="utf-8")
        linked = [source.folder / file for file in TOKENIZER_DATA if (source.folder / file).is_file()]
        python = source.folder.glob("*.py") if own_code else ()
        for path in (*linked, *weights, *python):
            (folder / path.name).symlink_to(path.resolve())
        yield folder


@contextmanager
def library_errors(what: str) -> Iterator[None]:
    """Convert exceptions of a library for a model's files to `BadModel`, which affects only this model."""
    from huggingface_hub.errors import StrictDataclassError

    try:
        with errors_with_a_class():
            yield
    except CardioBenchError:
        raise
    except (*LIBRARY_ERRORS, StrictDataclassError) as error:
        raise BadModel(
            f"{what} cannot be loaded: {type(error).__name__}: {first_line(error)}. Check its configuration files."
        ) from error


@contextmanager
def errors_with_a_class() -> Iterator[None]:
    """Raise `ValueError` if a Rust library (tokenizers) raises a bare `Exception` or panics."""
    try:
        yield
    except BaseException as error:
        if type(error) is Exception or type(error).__name__ == "PanicException":
            raise ValueError(first_line(error)) from error
        raise


@contextmanager
def without_tokens() -> Iterator[None]:
    """Hide the user's tokens from a model's own code by removing them and their paths from the environment."""
    hidden = {name: os.environ.pop(name) for name in TOKENS if name in os.environ}
    path = os.environ.get("HF_TOKEN_PATH")
    os.environ["HF_TOKEN_PATH"] = os.devnull
    try:
        yield
    finally:
        os.environ.pop("HF_TOKEN_PATH", None)
        if path is not None:
            os.environ["HF_TOKEN_PATH"] = path
        os.environ.update(hidden)


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return a JSON value unchanged.

    Raises:
        BadModel: The value is nested too deeply, or contains a text, number or layer count beyond those of any model.
    """
    if depth > DEEPEST:
        raise BadModel(f"{where} is nested more than {DEEPEST} levels deep. Copy the model again.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            refuse_many_layers(str(key), inner, where)
            plain(inner, f"{where}, {str(key)[:80]}", depth + 1)
    elif isinstance(value, list):
        for inner in value:
            plain(inner, where, depth + 1)
    elif isinstance(value, str) and len(value) > LONGEST:
        raise BadModel(
            f"{where} is a text of {len(value)} characters, expected at most {LONGEST}. Copy the model again."
        )
    elif isinstance(value, int) and abs(value) > LARGEST and "model_max_length" not in where:
        raise BadModel(f"{where} is {float(value):.3g}, expected at most {LARGEST:.0e}. Copy the model again.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadModel(f"{where} is {value}, expected a finite number. Copy the model again.")
    return value


def refuse_many_layers(key: str, value: Any, where: str) -> None:
    """Raise `BadModel` for an excessive number of layers or blocks, which would exhaust the memory."""
    numbers = value if isinstance(value, list) else [value]
    if COUNTS_OF_LAYERS.search(key) and any(isinstance(n, int) and n > MOST_LAYERS for n in numbers):
        raise BadModel(f"{where}, {key} is {value}, expected at most {MOST_LAYERS}. Copy the model again.")


def mapping(value: Any, where: str) -> Settings:
    """Return a value that must be a mapping; None is an empty mapping."""
    if value is not None and not isinstance(value, Mapping):
        raise BadModel(f"{where} is a {type(value).__name__}, expected a mapping. Copy the model again.")
    return dict(value or {})


def only(keys: frozenset[str] | set[str], content: Settings) -> Settings:
    """Return the entries with keys in a list."""
    return {key: value for key, value in content.items() if key in keys}


def refuse_unknown(unknown: set[str], known: frozenset[str] | set[str], where: str) -> None:
    """Raise `BadModel` for keys that would change the model but are not passed on to the library."""
    if unknown:
        raise BadModel(
            f"{where} contains {', '.join(sorted(unknown))[:200]}, which is not passed on. "
            f"It may contain: {', '.join(sorted(known))}."
        )


def named(value: Any, where: str) -> str:
    """Return the name of an architecture or a class after checking that it is neither a path nor a repository."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise BadModel(f"{where} is {str(value)[:80]!r}, expected the name of an architecture of the library.")
    return value


def transformers_config(content: Settings, where: str) -> Settings:
    """Keep the settings that the configuration class of a transformers family has, except those that name code or files."""
    from transformers import CONFIG_MAPPING

    kind = content.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise BadModel(f"{where}: model_type is {str(kind)[:80]!r}, which is unknown to transformers.")
    allowed = _of_class(CONFIG_MAPPING[kind], content, where)
    architectures = content.get("architectures")
    if architectures is not None:
        if not isinstance(architectures, list):
            raise BadModel(f"{where}: architectures is a {type(architectures).__name__}, expected a list of names.")
        allowed["architectures"] = [named(name, f"{where}, architectures") for name in architectures]
    return {**allowed, "model_type": kind}


def _of_class(kind: Any, content: Settings, where: str) -> Settings:
    parts = getattr(kind, "sub_configs", {})
    keys = (set(kind().to_dict()) | set(getattr(kind, "attribute_map", {})) | {"num_labels"}) - REFUSED_KEYS
    allowed = only(keys, content)
    for name, inner in parts.items():
        for key in (name, f"{name}_dict"):  # Older files contain the part twice.
            if content.get(key) is not None:
                part = mapping(content[key], f"{where}, {key}")
                allowed[key] = _of_class(inner, part, f"{where}, {key}") if hasattr(inner, "attribute_map") else {}
    return allowed


def processor_config(content: Settings, where: str) -> Settings:
    """Pass on the settings of image and video processors: those in `PROCESSOR_KEYS`, and any number."""
    allowed = _of_processor(content)
    for part in ("image_processor", "video_processor"):
        if part in allowed:
            allowed[part] = _of_processor(mapping(allowed[part], f"{where}, {part}"))
    for holder in (allowed, allowed.get("image_processor", {}), allowed.get("video_processor", {})):
        for key in ("image_processor_type", "feature_extractor_type", "video_processor_type", "processor_class"):
            if holder.get(key) is not None:
                named(holder[key], f"{where}, {key}")
    return allowed


def _of_processor(content: Settings) -> Settings:
    # Numbers name neither code nor files, and most families have options of their own, such as rescale_offset.
    numbers = {key for key, value in content.items() if value is not None and '"' not in json.dumps(value)}
    return only(PROCESSOR_KEYS | (numbers - REFUSED_KEYS), content)


def tokenizer_config(content: Settings, where: str) -> Settings:
    """Pass on the settings of tokenizers."""
    allowed = only(TOKENIZER_KEYS, content)
    if allowed.get("tokenizer_class") is not None:
        named(allowed["tokenizer_class"], f"{where}, tokenizer_class")
    return allowed


def special_tokens(content: Settings, where: str) -> Settings:
    """Pass on special or added tokens: texts, or mappings of plain values."""
    return content


TOKENIZER_RULES: Mapping[str, Rule] = {
    "tokenizer_config.json": tokenizer_config,
    "special_tokens_map.json": special_tokens,
    "added_tokens.json": special_tokens,
}
TRANSFORMERS_RULES: Mapping[str, Rule] = {
    "config.json": transformers_config,
    "preprocessor_config.json": processor_config,
    "processor_config.json": processor_config,
    "video_preprocessor_config.json": processor_config,
    **TOKENIZER_RULES,
}


def timm_config(content: Settings, where: str) -> Settings:
    """Pass on the architecture, its sizes, and how its frames are prepared.

    Raises:
        BadModel: An argument of the architecture is not in `TIMM_ARGUMENTS`, and ignoring it would change the network.
    """
    named(content.get("architecture"), f"{where}, architecture")
    arguments = mapping(content.get("model_args"), f"{where}, model_args")
    refuse_unknown(set(arguments) - TIMM_ARGUMENTS, TIMM_ARGUMENTS, f"{where}: model_args")
    allowed = only({"architecture", "num_classes", "num_features", "global_pool"}, content)
    if arguments:
        allowed["model_args"] = arguments
    if "pretrained_cfg" in content:
        inner = mapping(content["pretrained_cfg"], f"{where}, pretrained_cfg")
        return {**allowed, "pretrained_cfg": only(TIMM_PRETRAINED_KEYS, inner)}
    return {**only(TIMM_PRETRAINED_KEYS, content), **allowed}


def open_clip_config(content: Settings, where: str) -> Settings:
    """Pass on the fields of open_clip's own configuration classes.

    Towers do not download weights, and the only option of a tokenizer is the cleaning of texts.

    Raises:
        BadModel: A key is not passed on and would change the network or its texts, or a tower is not a name in its
            library.
    """
    from dataclasses import fields

    from open_clip.model import CLIPTextCfg, CLIPVisionCfg

    model = mapping(content.get("model_cfg"), f"{where}, model_cfg")
    refuse_unknown(set(model) - OPEN_CLIP_MODEL_KEYS, OPEN_CLIP_MODEL_KEYS, f"{where}: model_cfg")
    for part, kind in (("vision_cfg", CLIPVisionCfg), ("text_cfg", CLIPTextCfg)):
        model[part] = mapping(model.get(part), f"{where}, {part}")
        known = {field.name for field in fields(kind)}
        refuse_unknown(set(model[part]) - known, known, f"{where}: {part}")
    vision, text = model["vision_cfg"], model["text_cfg"]
    if vision.get("timm_model_name") is not None:
        named(vision["timm_model_name"], f"{where}, timm_model_name")
    vision.pop("timm_model_pretrained", None)
    if text.get("hf_model_name") is not None:
        text["hf_model_pretrained"] = False
    options = mapping(text.get("tokenizer_kwargs"), f"{where}, tokenizer_kwargs")
    refuse_unknown(
        set(options) - OPEN_CLIP_TOKENIZER_OPTIONS, OPEN_CLIP_TOKENIZER_OPTIONS, f"{where}: tokenizer_kwargs"
    )
    tokenizer = text.get("hf_tokenizer_name")
    if tokenizer and (not isinstance(tokenizer, str) or not REPOSITORY.fullmatch(tokenizer)):
        named(tokenizer, f"{where}, hf_tokenizer_name")
    prepared = mapping(content.get("preprocess_cfg"), f"{where}, preprocess_cfg")
    keys = {"size", "mode", "mean", "std", "interpolation", "resize_mode", "fill_color"}
    return {"model_cfg": model, "preprocess_cfg": only(keys, prepared)}
