"""Model cards are the registry: `<org>__<model>.md` in `model_cards/` or a folder of the user; facts, then plain words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from cardiobench.core import extensions, plugins
from cardiobench.core.errors import BadModel
from cardiobench.core.registry import unknown_name

REQUIRED = ("id", "revision", "adapter", "modalities", "licence", "access", "preprocessing", "pretraining_data", "seen")
OPTIONAL = (
    "published",
    "weights",
    "embedding",
    "poolings",
    "variants",
    "native",
    "public_weights",
    "hub",
    "aliases",
    "seen_unknown",
    "parameters",
)
FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # Ten times as fast, where PyYAML has it.
MOST_MARKS = 1000
"""Marks that may open a level, up to which the fast loader reads a card: thousands of levels would end the interpreter."""
SHA256 = re.compile(r"[0-9a-f]{8,64}")
LISTS = ("modalities", "seen", "seen_unknown", "published", "poolings", "variants", "native", "aliases")
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class ModelCard:
    """The card of a model: its facts before any weight is read.

    Attributes:
        id: `org/name`.
        revision: Pinned commit on the Hub; None where there is none to pin.
        adapter: Name in `cardiobench.models.load.ADAPTERS`, or `module:function` of another encoder.
        modalities: "echo", "ecg" or both.
        licence: Licence of the weights.
        access: Source of the weights, and the steps to get them.
        preprocessing: Facts about everything between the recording and the network.
        pretraining_data: Pretraining data in words.
        seen: Datasets of this benchmark that were in the pretraining data.
        published: Scores that others published, each a mapping with its source.
        weights: File name -> SHA-256 in hexadecimal, or its first 8 digits or more, or None where it is not known;
            empty for a model without weights of its own.
        embedding: Embedding facts: `dim`, `parts` in words, and `text: true` where prompts can be compared with it,
            or `text:` and the name of the one variant in which they can.
        poolings: Ways from the network's tokens to a vector (`cardiobench.models.pooling`); the first is the default.
        variants: Named ways of preprocessing; the first is the default.
        native: Targets of tasks that the model's own heads answer, such as `ef`.
        public_weights: False where nobody can download them; the body says what would be needed.
        aliases: Other ids on the Hub under which the authors keep or kept the same model.
        seen_unknown: Datasets of this benchmark of which nobody outside knows whether they were in the pretraining data.
        parameters: Number of trained parameters that encoding a recording uses, read by the defaults; None where it is not
            stated.
        hub: False for an id that is no repository of the Hub: its files are given with `--weights`.
        body: The card itself, Markdown.
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
    public_weights: bool = True
    hub: bool = True
    aliases: tuple[str, ...] = ()
    seen_unknown: tuple[str, ...] = ()
    parameters: int | None = None
    body: str = ""

    def saw(self, dataset: str) -> bool | None:
        """Return whether a dataset was in the pretraining data; None where that is not known."""
        return None if dataset in self.seen_unknown else dataset in self.seen

    @property
    def seen_text(self) -> str:
        """The datasets of this benchmark that were in the pretraining data, and those of which it is not known."""
        return seen_text(self.seen, self.seen_unknown)

    @property
    def text(self) -> bool:
        """Return whether the model has a text tower in the same space, be it in one variant only."""
        return bool(self.embedding.get("text"))

    def text_in(self, variant: str) -> str:
        """Return whether prompts can be used in a variant: "yes", "no text tower", or the variant that supports them."""
        text = self.embedding.get("text")
        return "yes" if text in (True, variant) else f"with --variant {text}" if text else "no text tower"


def read_card(path: Path) -> ModelCard:
    """Read the model card in a file.

    Raises:
        BadModel: No front matter, a required key that is missing, a key that no card has, or a value of another type.
    """
    if not path.is_file():
        raise BadModel(f"model card {path} is no file. Take it out of the folder.")
    try:
        start, _, rest = path.read_text(encoding="utf-8").partition("---\n")
        front, closed, body = rest.partition("\n---\n")
        facts = yaml.load(front, Loader=_loader(front)) if not start and closed else None
    except (yaml.YAMLError, OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadModel(f"model card {path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(facts, dict):
        raise BadModel(f"model card {path} has no YAML front matter between two '---' lines.")
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
        raise BadModel(f"model card {path}: no SHA-256 (8 to 64 hexadecimal digits in quotes): {strange}.")
    revision = facts["revision"]
    if revision is not None and not COMMIT.fullmatch(str(revision)):
        raise BadModel(
            f"model card {path}: revision {revision} is no full commit hash. Give 40 hexadecimal digits, or null."
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
    """Return names of datasets that a model has seen, and those of which nobody outside knows."""
    texts = (", ".join(seen) or "none", f"not known: {', '.join(unknown)}" if unknown else "")
    return "; ".join(filter(None, texts))


def list_models(modality: str | None = None) -> list[str]:
    """Return the names of the registered models, of all or of those that take echo or ECG recordings."""
    return [name for name, card in _cards().items() if modality is None or modality in card.modalities]


def find_card(name: str) -> ModelCard | None:
    """Return the card of a registered model by its name or an alias, whatever the letter case; None when there is none.

    Under an alias the card is about the repository of that name: its commit and checksums are not known.
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
        UnknownName: No model of that name is registered; says which name is nearest.
    """
    match = find_card(name)
    if match is None:
        raise unknown_name("model", name, _cards())
    return match
