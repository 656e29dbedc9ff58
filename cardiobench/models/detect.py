"""Choice of the loader for a model's files: the first rule that matches, without guessing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cardiobench.core import extensions
from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.models.base import Encoder
from cardiobench.models.blocks.signal_settings import POOLINGS, SIGNAL_KEYS, signal_settings
from cardiobench.models.cards import ModelCard, card, list_models
from cardiobench.models.files import ModelFiles
from cardiobench.models.frames import FrameSettings, frame_settings
from cardiobench.models.registry import adapter
from cardiobench.models.safe_folder import library_errors
from cardiobench.models.stated import OWN, Stated

RULES = (
    "a registered name",
    "a file of a format that an extension loads, without other weights -> that extension",
    "open_clip_config.json -> open_clip",
    "config.json with 'architecture' -> timm",
    "config.json with the 'model_type' of a registered model -> its adapter, without remote code",
    "config.json with a 'model_type' of transformers -> transformers",
    "config.json with 'auto_map' -> the model's own code, if it is trusted",
    "cardiobench.json with 'like', the id of a registered model -> its adapter",
    "only weights -> the adapter whose network has these keys",
)
FRAME_KEYS = ("colour", "zoom", "border", "frames", "stride", "start", "nifti")
OWN_KEYS = ("like", "pooling", "variant", *FRAME_KEYS, *SIGNAL_KEYS)
WEIGHTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")


@dataclass(frozen=True)
class LoaderMatch:
    """A loader with the rule that selected it.

    Attributes:
        rule: Rule in words; printed and stamped.
        adapter: Function or class that makes the encoder.
        load: Function (pooling, variant) that reads the weights and makes the encoder.
        poolings: Available poolings, the default first; () if there is no choice.
        variants: Available variants of the preprocessing, the default first; () if there is no choice.
        card: Registered model of the adapter; None for a loader selected only by the files.
        facts: Pairs (subject, description) about the network that its file states, for `doctor`.
    """

    rule: str
    adapter: Callable[..., Encoder]
    load: Callable[[str, str], Encoder]
    poolings: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    card: ModelCard | None = None
    facts: tuple[tuple[str, str], ...] = ()


def detect(source: ModelFiles, facts: Stated | None = None) -> LoaderMatch:
    """Return the loader that fits a model's files.

    Args:
        source: Files of the model; `code` states whether the model's own code may run.
        facts: Preprocessing facts of the model's card, which take precedence over a `cardiobench.json` next to the
            weights.

    Raises:
        BadModel: No loader fits; the message lists files and rules.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a model with weights", "models", "torch") from error

    if match := _by_format(source, facts):
        return match
    settings = _own_facts(source)
    frames = frame_settings(settings if facts is None else facts, source.name)
    config = source.json("config.json")
    kind = config.get("model_type")
    if "open_clip_config.json" in source.files:
        from cardiobench.models import from_open_clip

        rule = "the folder has open_clip_config.json -> open_clip"
        no_text = "" if facts is None else str(facts.get("no_text", ""))
        return _by_files(rule, source, frames, from_open_clip.load, (), no_text=no_text)
    if "architecture" in config and kind is None:
        from cardiobench.models import from_timm

        rule = f"config.json has architecture '{config['architecture']}' -> timm"
        with library_errors(source.name):
            poolings = from_timm.poolings(source)
        return _by_files(rule, source, frames, from_timm.load, poolings)
    if isinstance(kind, str) and (name := _of_type(kind)):
        return _like(source, name, f"config.json has model_type '{kind}'")
    if isinstance(kind, str) and _known_to_transformers(kind):
        from cardiobench.models import from_transformers

        rule = f"config.json has model_type '{kind}' -> transformers"
        return _by_files(rule, source, frames, from_transformers.load, from_transformers.poolings(config))
    if "auto_map" in config:
        return _own_code(source, frames)
    if "like" in settings:
        return _like(source, str(settings["like"]), f"{OWN} states like '{settings['like']}'")
    return _by_keys(source)


def _by_format(source: ModelFiles, facts: Stated | None) -> LoaderMatch | None:
    """Return the loader that an extension has for the format of the only weights file; None if there is none."""
    file = file_of_extension(source.files)
    if file is None:
        return None
    loader = extensions.contributions("loaders")[Path(file).suffix.lower()]
    return extensions.resolve(loader)(source, file, source.stated if facts is None else facts)


def file_of_extension(files: Sequence[str]) -> str | None:
    """Return the only file of a format that an extension loads; None if there is none, or other weights."""
    if any(Path(file).suffix in WEIGHTS for file in files):
        return None
    loaders = extensions.contributions("loaders")
    found = [file for file in files if Path(file).suffix.lower() in loaders]
    return found[0] if len(found) == 1 else None


def _by_files(
    rule: str,
    source: ModelFiles,
    frames: FrameSettings,
    load: Callable[..., Encoder],
    poolings: tuple[str, ...],
    **options: Any,
) -> LoaderMatch:
    _check_all_read(source, ("pooling", *(SIGNAL_KEYS if options.get("signal") else FRAME_KEYS)), rule)
    poolings = _first(poolings, "pooling", source)

    def make(pooling: str, variant: str) -> Encoder:
        with library_errors(source.name):
            return load(source, pooling=pooling, frames=frames, **options)

    return LoaderMatch(rule, load, make, poolings)


def _of_type(model_type: str) -> str | None:
    """Return the registered model whose card states this `model_type`; None if there is none."""
    return next((name for name in list_models() if card(name).model_type == model_type), None)


def _known_to_transformers(model_type: str) -> bool:
    try:
        from transformers import CONFIG_MAPPING
    except ImportError as error:
        raise MissingExtra("a transformers model", "models", "transformers") from error
    return model_type in CONFIG_MAPPING


def _own_code(source: ModelFiles, frames: FrameSettings) -> LoaderMatch:
    """Return the loader that runs the model's own code; no other function lets such code run."""
    if not source.code:
        raise BadModel(
            f"{source.name} brings its own Python code (auto_map in config.json). It is not run unless you ask for it: "
            f"read the code, then pass --trust-remote-code (trust_remote_code=True)."
        )
    from cardiobench.models import from_transformers

    rule = "config.json has auto_map and its code was trusted -> transformers with the model's own code"
    signal = signal_settings(_own_facts(source), source.name)
    poolings = POOLINGS if signal else ()
    return _by_files(rule, source, frames, from_transformers.load, poolings, own_code=True, signal=signal)


def _own_facts(source: ModelFiles) -> Stated:
    """Return the settings of the `cardiobench.json` next to the weights and of the user.

    Raises:
        BadModel: A key is unknown.
    """
    source.stated.check_keys(OWN_KEYS, source.name)
    return source.stated


def _check_all_read(source: ModelFiles, read: Collection[str], rule: str) -> None:
    """Refuse settings that the chosen loader does not read, which would change nothing; raises `BadModel`."""
    if ignored := [key for key in _own_facts(source) if key not in read]:
        raise BadModel(
            f"{source.name}: {source.stated.where(ignored)} states {', '.join(ignored)}, but this loader reads only "
            f"{', '.join(read)} ({rule}). Leave the others out."
        )


def _like(source: ModelFiles, name: str, why: str) -> LoaderMatch:
    """Return the adapter of a registered model, for other weights of the same network."""
    model_card = card(name)
    return registered(
        replace(model_card, id=source.name, revision=None, seen=(), published=()),
        source,
        f"{why} -> the adapter of {model_card.id}",
    )


def registered(model_card: ModelCard, source: ModelFiles, rule: str) -> LoaderMatch:
    """Return the loader that applies a card's adapter to the given files."""
    _check_all_read(source, ("like", "pooling", "variant"), rule)
    make = adapter(model_card.adapter)
    poolings, variants = model_card.poolings, model_card.variants
    poolings, variants = _first(poolings, "pooling", source), _first(variants, "variant", source)

    def build(pooling: str, variant: str) -> Encoder:
        with library_errors(source.name):
            return make(model_card, source, pooling=pooling, variant=variant)

    return LoaderMatch(rule, make, build, poolings, variants, model_card)


def _first(names: tuple[str, ...], what: str, source: ModelFiles) -> tuple[str, ...]:
    """Return the names with the one that is stated for the model first, which makes it the default."""
    stated = _own_facts(source)
    if (wanted := stated.get(what)) is None:
        return names
    if wanted not in names:
        there = f"choose one of: {', '.join(names)}" if names else "leave it out, because there is no choice"
        raise BadModel(f"{source.name}: {stated.where([what])} requests {what} '{wanted}'; {there}.")
    return (wanted, *(name for name in names if name != wanted))


def _by_keys(source: ModelFiles) -> LoaderMatch:
    """Return the adapter whose network has the tensor names of the weights."""
    from cardiobench.models.weights import read_shapes

    seen = {}
    for file in source.files:
        if Path(file).suffix in WEIGHTS and _matching_name(file):
            source.fetch([file])
            seen[file] = list(read_shapes(source.folder / file))
    for file, keys in seen.items():
        for model in map(card, list_models()):
            if _all_occur(model.weight_keys, keys):
                # A file whose name differs from that in the card is passed to the adapter as its only file.
                known = Path(file).name in model.weights
                files = source if known else replace(source, files=(file,), single=True)
                return _like(
                    files, model.id, f"{file} has keys {' and '.join(f'{start}*' for start in model.weight_keys)}"
                )
    raise BadModel(_nothing_fits(source, seen))


def _all_occur(beginnings: Sequence[str], keys: Sequence[str]) -> bool:
    """Return whether each prefix is one of a tensor's name; False without prefixes."""
    return bool(beginnings) and all(any(key.startswith(start) for key in keys) for start in beginnings)


def _matching_name(file: str) -> bool:
    return not Path(file).name.startswith(("optimizer", "scheduler", "training_args", "rng_state"))


def _nothing_fits(source: ModelFiles, seen: Mapping[str, list[str]]) -> str:
    if not source.files:
        return f"{source.name}: {source.folder} has no files. Give a folder with weights and their configuration."
    keys = "".join(f" The first keys of {file} are {', '.join(names[:3])}." for file, names in list(seen.items())[:3])
    for file, names in seen.items():
        for model in map(card, list_models()):
            if _all_occur(model.part_keys, names):
                first = next(iter(model.weights))
                keys += f" {file} is a part of {model.id}: give the folder that also contains {first}."
    beside = " If the configuration is beside the file, give the folder." if source.single else ""
    return (
        f"no loader fits {source.name}. Files seen: {', '.join(source.files)}.{keys}{beside} "
        f"Rules tried, in order: {'; '.join(RULES)}. Registered models, each with its adapter: {', '.join(list_models())}."
    )
