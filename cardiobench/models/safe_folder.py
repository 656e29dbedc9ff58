"""Folders with all files that a library may read of a model: checked settings, tokenizer data and digested weights.

Libraries read settings from a folder, and some settings name code, other files or other repositories. Libraries
therefore get a temporary folder instead of the model's own, in which JSON files have plain values and no refused keys,
and which contains only the resolved weights. This is also the only place that admits a model's own code.
"""

import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
DEEPEST = 12  # Levels of nesting, so that a deep file cannot exhaust the stack.
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
# Keys that name code, kernels, arguments of a library's loader, or other weights, files or repositories. They are
# refused in all letter cases and at any depth; a library reads some of them only from a part of its configuration.
REFUSED_KEYS = frozenset({
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "allow_all_kernels",
    "attn_implementation", "attribute_map", "auto_map", "backbone", "backbone_config", "backbone_kwargs", "base_model_pp_plan",
    "base_model_tp_plan", "chat_template", "configuration_files", "custom_generate", "custom_load", "custom_pipelines",
    "device_map", "distributed_config", "experts_implementation", "fast_tokenizer_files", "feature_cls", "features_only",
    "fix_mistral_regex", "fusion_config", "gguf_file", "hf_hub_filename", "hf_hub_id", "init_inputs", "jumanpp_kwargs",
    "kernel_config", "kwargs_filter", "local_files_only", "mecab_kwargs", "name_or_path", "peft_config", "pretrained",
    "pretrained_cfg_overlay", "pretrained_custom_load", "pretrained_filter_fn", "pretrained_model_args",
    "pretrained_strict", "quantization_config", "response_schema", "response_template", "state_dict", "sub_configs",
    "sub_configs_defaults", "sudachi_kwargs", "tesseract_config", "tp_plan", "transformers_weights", "trust_remote_code",
    "use_kernels", "use_pretrained_backbone", "use_timm_backbone",
})  # fmt: skip
REFUSED_ENDINGS = ("_implementation", "_implementation_internal", "_pretrained")
# Keys refused unless their value is a number, as a `drop_path` is: they name a file, a folder, a repository or an address.
PLACES = re.compile(
    r"(^|_)(cache|checkpoint|dir|file|filename|files|folder|font|merges|path|paths|repo|repository|revision|source|subfolder|"
    r"token_path|uri|url|urls|vocab)$"
)
# Keys whose value is the name of an architecture or class of the library, at any depth.
NAMES = frozenset({
    "architecture", "feature_extractor_type", "image_processor_type", "processor_class", "timm_model_name",
    "tokenizer_class", "video_processor_type",
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
            f"{where} is a text of {len(value)} characters; expected at most {LONGEST}. Copy the model again."
        )
    elif isinstance(value, int) and abs(value) > LARGEST and "max_len" not in where and "max_length" not in where:
        raise BadModel(f"{where} is {float(value):.3g}; expected at most {LARGEST:.0e}. Copy the model again.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadModel(f"{where} is {value}; expected a finite number. Copy the model again.")
    return value


def refuse_many_layers(key: str, value: Any, where: str) -> None:
    """Raise `BadModel` for an excessive number of layers or blocks, which would exhaust the memory."""
    numbers = value if isinstance(value, list) else [value]
    if COUNTS_OF_LAYERS.search(key) and any(isinstance(n, int) and n > MOST_LAYERS for n in numbers):
        raise BadModel(f"{where}, {key} is {value}; expected at most {MOST_LAYERS}. Copy the model again.")


def mapping(value: Any, where: str) -> Settings:
    """Return a value that must be a mapping; None is an empty mapping."""
    if value is not None and not isinstance(value, Mapping):
        raise BadModel(f"{where} is a {type(value).__name__}; expected a mapping. Copy the model again.")
    return dict(value or {})


def only(keys: Collection[str], content: Settings) -> Settings:
    """Return the entries with keys in a list."""
    return {key: value for key, value in content.items() if key in keys}


def refuse_unknown(unknown: Collection[str], known: Collection[str], where: str) -> None:
    """Raise `BadModel` for keys that would change the model but are not passed on to the library."""
    if unknown:
        raise BadModel(
            f"{where} contains {', '.join(sorted(unknown))[:200]}, which is not passed on. "
            f"It may contain: {', '.join(sorted(known))}."
        )


def named(value: Any, where: str) -> str:
    """Return the name of an architecture or a class after checking that it is neither a path nor a repository."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise BadModel(f"{where} is {str(value)[:80]!r}; expected the name of an architecture of the library.")
    return value


def has_text(value: Any) -> bool:
    """Return whether a JSON value is a text or contains one, as a key or as a value."""
    return '"' in json.dumps(value)


def is_refused(key: str, value: Any, methods: Collection[str] = ()) -> bool:
    """Return whether a setting may name code, kernels, weights, files or a repository, or replaces a method."""
    name = key.casefold()
    if name in REFUSED_KEYS or name.endswith(REFUSED_ENDINGS) or key in methods:
        return True
    # No library reads a private text from a file, but it sets an attribute of this name.
    return (name.startswith("_") or PLACES.search(name) is not None) and (value is None or has_text(value))


def without_refused(value: Any, where: str, methods: Collection[str] = (), depth: int = 0) -> Any:
    """Return a JSON value without the refused keys of all its mappings, also of those in lists.

    Args:
        value: JSON value.
        where: File and key, for messages.
        methods: Names of methods of the object that receives the settings as attributes; these are refused too.
        depth: Number of levels above this value.

    Raises:
        BadModel: It is nested too deeply, or the name of an architecture or class is a path or a repository.
    """
    if depth > DEEPEST:
        raise BadModel(f"{where} is nested more than {DEEPEST} levels deep. Copy the model again.")
    if isinstance(value, list):
        return [without_refused(inner, where, methods, depth + 1) for inner in value]
    if not isinstance(value, Mapping):
        return value
    kept = {}
    for key, inner in value.items():
        if key in NAMES and inner is not None:
            named(inner, f"{where}, {key}")
        if not is_refused(key, inner, methods):
            kept[key] = without_refused(inner, f"{where}, {key[:80]}", methods, depth + 1)
    return kept


def transformers_config(content: Settings, where: str) -> Settings:
    """Pass on the settings of a known family of transformers, except refused keys and names of methods."""
    from transformers import CONFIG_MAPPING

    kind = content.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise BadModel(f"{where}: model_type is {str(kind)[:80]!r}, which is unknown to transformers.")
    methods = {name for name in dir(CONFIG_MAPPING[kind]) if callable(getattr(CONFIG_MAPPING[kind], name, None))}
    # Settings become attributes of an object; a key that is no name of an attribute cannot be read from it.
    allowed = {key: value for key, value in without_refused(content, where, methods).items() if key.isidentifier()}
    for name in getattr(CONFIG_MAPPING[kind], "sub_configs", {}):
        for key in (name, f"{name}_dict"):  # Older files contain the part twice.
            if content.get(key) is not None:
                mapping(content[key], f"{where}, {key}")
    architectures = content.get("architectures")
    if architectures is not None:
        if not isinstance(architectures, list):
            raise BadModel(f"{where}: architectures is a {type(architectures).__name__}; expected a list of names.")
        allowed["architectures"] = [named(name, f"{where}, architectures") for name in architectures]
    return allowed


def processor_config(content: Settings, where: str) -> Settings:
    """Pass on the settings of image and video processors: numbers, and texts that are plain words such as "bicubic"."""
    allowed = without_refused(content, where)
    for part in ("image_processor", "video_processor"):
        if part in allowed:
            allowed[part] = _of_processor(mapping(allowed[part], f"{where}, {part}"))
    return _of_processor(allowed)


def _of_processor(content: Settings) -> Settings:
    """Leave out lists of texts, and texts that could be a file or a repository; no processor needs them."""
    return {
        key: value
        for key, value in content.items()
        if isinstance(value, Mapping) or not has_text(value) or (isinstance(value, str) and re.fullmatch(r"\w+", value))
    }


def tokenizer_config(content: Settings, where: str) -> Settings:
    """Pass on the settings of tokenizers and their special tokens, except refused keys."""
    return without_refused(content, where)


def added_tokens(content: Settings, where: str) -> Settings:
    """Pass on added tokens, a mapping from text to id."""
    if not all(isinstance(number, int) for number in content.values()):
        raise BadModel(f"{where} is not a mapping from token to id. Copy the model again.")
    return content


TOKENIZER_RULES: Mapping[str, Rule] = {
    "tokenizer_config.json": tokenizer_config,
    "special_tokens_map.json": tokenizer_config,
    "added_tokens.json": added_tokens,
}
TRANSFORMERS_RULES: Mapping[str, Rule] = {
    "config.json": transformers_config,
    "preprocessor_config.json": processor_config,
    "processor_config.json": processor_config,
    "video_preprocessor_config.json": processor_config,
    **TOKENIZER_RULES,
}


def timm_config(content: Settings, where: str) -> Settings:
    """Pass on the architecture, its arguments, and how its frames are prepared.

    Raises:
        BadModel: An argument of the architecture names weights or options of the loader; ignoring it would change the
            network.
    """
    from dataclasses import fields

    from timm.models import PretrainedCfg

    named(content.get("architecture"), f"{where}, architecture")
    arguments = mapping(content.get("model_args"), f"{where}, model_args")
    kept = without_refused({key: value for key, value in arguments.items() if key != "pretrained_cfg"}, where)
    refuse_unknown(set(arguments) - set(kept), kept, f"{where}: model_args")
    allowed = only({"architecture", "num_classes", "num_features", "global_pool"}, without_refused(content, where))
    if arguments:
        allowed["model_args"] = kept
    known = {field.name for field in fields(PretrainedCfg)} - {"architecture", "label_names", "label_descriptions"}
    if "pretrained_cfg" in content:
        inner = mapping(content["pretrained_cfg"], f"{where}, pretrained_cfg")
        return {**allowed, "pretrained_cfg": only(known, without_refused(inner, where))}
    return {**only(known, without_refused(content, where)), **allowed}


def open_clip_config(content: Settings, where: str) -> Settings:
    """Pass on the fields of open_clip's own configuration classes.

    Towers do not download weights, and the only option of a tokenizer is the cleaning of texts.

    Raises:
        BadModel: A key is not passed on and would change the network or its texts, or a tower is not a name in its
            library.
    """
    from dataclasses import fields
    from inspect import signature

    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg
    from open_clip.tokenizer import HFTokenizer, SimpleTokenizer
    from open_clip.transform import PreprocessCfg

    model = mapping(content.get("model_cfg"), f"{where}, model_cfg")
    known = {"custom_text", *signature(CLIP).parameters} - {"cast_dtype", "output_dict"}
    refuse_unknown(set(model) - known, known, f"{where}: model_cfg")
    for part, kind in (("vision_cfg", CLIPVisionCfg), ("text_cfg", CLIPTextCfg)):
        inner = mapping(model.get(part), f"{where}, {part}")
        known = {field.name for field in fields(kind)}
        refuse_unknown(set(inner) - known, known, f"{where}: {part}")
        options = mapping(inner.get("tokenizer_kwargs"), f"{where}, tokenizer_kwargs")
        offered = {*signature(HFTokenizer).parameters, *signature(SimpleTokenizer).parameters} - {"kwargs"}
        offered = {key for key in offered if not is_refused(key, "")}
        refuse_unknown({key for key in options if key not in offered}, offered, f"{where}: tokenizer_kwargs")
        model[part] = without_refused(inner, f"{where}, {part}")
    text = model["text_cfg"]
    if text.get("hf_model_name") is not None:
        text["hf_model_pretrained"] = False
    tokenizer = text.get("hf_tokenizer_name")
    if tokenizer and (not isinstance(tokenizer, str) or not REPOSITORY.fullmatch(tokenizer)):
        named(tokenizer, f"{where}, hf_tokenizer_name")
    prepared = mapping(content.get("preprocess_cfg"), f"{where}, preprocess_cfg")
    return {
        "model_cfg": model,
        "preprocess_cfg": only({field.name for field in fields(PreprocessCfg)}, without_refused(prepared, where)),
    }
