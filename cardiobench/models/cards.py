"""Registry of models: cards `<org>__<model>.md` in `model_cards/` or a user folder, with facts and a description."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from cardiobench.core import extensions, plugins
from cardiobench.core.errors import BadModel, one_line
from cardiobench.core.front_matter import split_card
from cardiobench.core.registry import unknown_name
from cardiobench.models.stated import Stated

REQUIRED = ("id", "revision", "adapter", "modalities", "licence", "access", "preprocessing", "pretraining_data", "seen")
OPTIONAL = (
    "published",
    "weights",
    "embedding",
    "poolings",
    "variants",
    "native",
    "given",
    "public_weights",
    "hub",
    "aliases",
    "weight_keys",
    "part_keys",
    "model_type",
    "package",
    "seen_unknown",
    "parameters",
    "flops",
)
FAST_LOADER = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # The C loader is ten times faster, but not always available.
MOST_MARKS = 1000
"""Maximum number of nesting marks for the fast loader, which would crash on thousands of levels."""
SHA256 = re.compile(r"[0-9a-f]{8,64}")
LISTS = (
    *("modalities", "seen", "seen_unknown", "published", "poolings", "variants", "native", "given", "aliases"),
    *("weight_keys", "part_keys"),
)
COMMIT = re.compile(r"[0-9a-f]{40}")
Text = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class ModelCard:
    """The card of a model: facts known without reading weights.

    Attributes:
        id: `org/name`.
        revision: Pinned commit on the Hub; None if there is none.
        adapter: Name in `cardiobench.models.registry.ADAPTERS`, or `module:function` that returns another encoder.
        modalities: "echo", "ecg" or both.
        licence: Licence of the weights.
        access: Source of the weights, and the steps to get them.
        preprocessing: Facts about all steps between recording and network.
        pretraining_data: Pretraining data in words.
        seen: Datasets of this benchmark that were in the pretraining data.
        published: Scores published by others, each a mapping with its source.
        weights: Mapping from file name to SHA-256 in hexadecimal, at least its first 8 digits, or None if unknown;
            empty for a model without weights.
        embedding: Embedding facts: `dim`, `parts` in words, and `text: true` if prompts are supported, or `text:` with
            the only variant that supports prompts.
        poolings: Poolings of the network's tokens (`cardiobench.models.pooling`); the first is the default.
        variants: Variants of the preprocessing; the first is the default.
        native: Targets predicted by the model's own heads, such as `ef`.
        given: Facts in the input besides the recording, such as age; tasks that predict one of them do not apply.
        public_weights: Whether the weights can be downloaded; if not, the body states what is needed.
        aliases: Other current or former ids of the same model on the Hub.
        weight_keys: Prefixes of tensor names that occur together only in weights of this network. Such a file is loaded by
            the adapter of this card, whatever its name.
        part_keys: Prefixes that occur together in a file of this model that cannot be loaded alone.
        model_type: The `model_type` in `config.json` of such weights, if no library knows it.
        package: Python package that contains the weights, as `name==version`. Its installed files are used unless others
            are given.
        seen_unknown: Datasets of this benchmark for which it is unknown whether they were in the pretraining data.
        parameters: Number of trained parameters used for encoding a recording with default settings, 0 for a model without a
            network; None if not stated.
        flops: Floating-point operations for encoding one part of a recording with default settings, counted as in
            `cardiobench.embeddings.cost`; None if not stated.
        hub: Whether the id is a repository on the Hub; if not, files are given with `--weights`.
        body: Text of the card in Markdown.
    """

    id: str
    revision: str | None
    adapter: str
    modalities: tuple[str, ...]
    licence: str
    access: str
    preprocessing: Mapping[str, Any]
    pretraining_data: str
    seen: tuple[str, ...]
    published: tuple[Mapping[str, Any], ...] = ()
    weights: Mapping[str, str | None] = field(default_factory=dict)
    embedding: Mapping[str, Any] = field(default_factory=dict)
    poolings: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    public_weights: bool = True
    hub: bool = True
    aliases: tuple[str, ...] = ()
    weight_keys: tuple[Text, ...] = ()
    part_keys: tuple[Text, ...] = ()
    model_type: Text | None = None
    package: Annotated[str, Field(pattern=r"^[\w.-]+==[\w.]+$")] | None = None
    seen_unknown: tuple[str, ...] = ()
    parameters: int | None = None
    flops: int | None = None
    body: str = ""

    def stated(self, variant: str = "") -> Stated:
        """Return the preprocessing facts as settings, overridden by those of a variant."""
        return Stated({f"the card of {self.id}": {**self.preprocessing, **self.preprocessing.get(variant, {})}})

    def saw(self, dataset: str) -> bool | None:
        """Return whether a dataset was in the pretraining data; None where that is not known."""
        return None if dataset in self.seen_unknown else dataset in self.seen

    @property
    def seen_text(self) -> str:
        """Datasets of this benchmark that were in the pretraining data, and those for which this is unknown."""
        return seen_text(self.seen, self.seen_unknown)

    @property
    def text(self) -> bool:
        """Return whether the model has a text tower in the same space, in at least one variant."""
        return bool(self.embedding.get("text"))

    def text_in(self, variant: str) -> str:
        """Return whether prompts can be used in a variant: "yes", "no text tower", or the variant that supports them."""
        text = self.embedding.get("text")
        return "yes" if text in (True, variant) else f"with --variant {text}" if text else "no text tower"


def read_card(path: Path) -> ModelCard:
    """Read a model card from a file.

    Raises:
        BadModel: The front matter or a required key is missing, a key is unknown, or a value has the wrong type.
    """
    if not path.is_file():
        raise BadModel(f"model card {path} is not a file. Remove it from the folder.")
    try:
        front, body = split_card(path.read_text(encoding="utf-8"))
        facts = yaml.load(front, Loader=_loader(front)) if front else None
    except (yaml.YAMLError, OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadModel(f"model card {path} cannot be read: {one_line(error)}") from None
    if not isinstance(facts, dict):
        raise BadModel(
            f"model card {path} has no YAML front matter. Begin the file with settings between two '---' lines."
        )
    missing = [key for key in REQUIRED if key not in facts]
    unknown = sorted(set(map(str, facts)) - {*REQUIRED, *OPTIONAL})
    if missing or unknown:
        raise BadModel(
            f"model card {path}: missing keys {missing}, unknown keys {unknown}. "
            f"Required: {', '.join(REQUIRED)}. Optional: {', '.join(OPTIONAL)}."
        )
    facts = {key: value for key, value in facts.items() if value is not None or key == "revision"}
    try:
        TypeAdapter(ModelCard).validate_python(facts)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadModel(f"model card {path}: {where}: {first['msg']}. Correct it as in model_cards/.") from None
    for key in LISTS:
        facts[key] = tuple(facts.get(key) or ())
    for key in ("weights", "embedding"):
        facts[key] = dict(facts.get(key) or {})
    strange = {
        name: digest for name, digest in facts["weights"].items() if digest and not SHA256.fullmatch(str(digest))
    }
    if strange:
        raise BadModel(f"model card {path}: not a SHA-256 (8 to 64 hexadecimal digits in quotes): {strange}.")
    revision = facts["revision"]
    if revision is not None and not COMMIT.fullmatch(str(revision)):
        raise BadModel(
            f"model card {path}: revision {revision} is not a full commit hash. Give 40 hexadecimal digits, or null."
        )
    return ModelCard(**facts, body=body.strip())


def _loader(text: str) -> Any:
    return FAST_LOADER if sum(map(text.count, "[{-?:")) < MOST_MARKS else yaml.SafeLoader


def _cards() -> Mapping[str, ModelCard]:
    brought = [Path(next(iter(package.__path__))) for package in extensions.hooks("cards")]
    return _cards_in((*plugins.folders("model_cards"), *brought))


@cache
def _cards_in(folders: tuple[Path, ...]) -> Mapping[str, ModelCard]:
    paths = [path for folder in folders for path in sorted(folder.glob("*__*.md"))]
    return plugins.by_name("model", ((card.id, card) for card in map(read_card, paths)))


def seen_text(seen: Sequence[str], unknown: Sequence[str]) -> str:
    """Return the names of datasets that a model has seen, and of those for which this is unknown."""
    texts = (", ".join(seen) or "none", f"unknown: {', '.join(unknown)}" if unknown else "")
    return "; ".join(filter(None, texts))


def list_models(modality: str | None = None) -> list[str]:
    """Return the names of the registered models, optionally only those that accept echo or ECG recordings.

    >>> "cardiobench/constant" in list_models("ecg")
    True
    """
    return [name for name, card in _cards().items() if modality is None or modality in card.modalities]


def find_card(name: str) -> ModelCard | None:
    """Return the card of a registered model by name or alias, ignoring case; None if there is none.

    For an alias, the card describes the repository of that name, whose commit and checksums are unknown.
    """
    for known, card in _cards().items():
        if name.lower() == known.lower():
            return card
        for alias in card.aliases:
            if name.lower() == alias.lower():
                return replace(card, id=alias, revision=None, weights=dict.fromkeys(card.weights), aliases=())
    return None


def card(name: str) -> ModelCard:
    """Return the card of a registered model.

    Raises:
        UnknownName: No model with this name is registered; the message has the most similar name.
    """
    match = find_card(name)
    if match is None:
        raise unknown_name("model", name, _cards())
    return match
