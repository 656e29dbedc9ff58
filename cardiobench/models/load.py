"""Loading of encoders by name or folder: choice of loader, pooling and preprocessing."""

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.core.io import sha256_of_json
from cardiobench.core.user_code import user_code
from cardiobench.core.versions import is_own
from cardiobench.models.base import Encoder, LoadedModel
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.models.custom import identity
from cardiobench.models.detect import LoaderMatch, detect, registered
from cardiobench.models.files import ModelFiles, given_files, package_files, resolve_model_files
from cardiobench.models.pooling import KEEP_TOKENS
from cardiobench.models.registry import BY_FILES, NO_ADAPTER, adapter

if TYPE_CHECKING:
    import torch

NOTHING: Mapping[str, Any] = MappingProxyType({})
PRECISIONS = ("auto", "fp32", "bf16")


@dataclass(frozen=True)
class ModelPlan:
    """Decisions made before weights are read.

    Attributes:
        name: Model name.
        rule: Rule that chose the loader, in words.
        card: Card of a registered model; None for others.
        source: Model files; None for a model without weights.
        pooling: Pooling of the network's tokens, one of `poolings`; "" if there is no choice.
        variant: Variant of the preprocessing; "" for the default.
        poolings: Available poolings, the default first.
        variants: Available variants, the default first.
        warnings: Sentences added to every result.
        make: Function that builds the encoder.
        adapter: Function or class of the adapter.
        unpinned: Whether the files belong to the latest commit on the Hub, because no revision was given.
        patches: Whether to keep the encoder's patch tokens, which no loader does by itself.
        facts: Pairs (subject, description) about the network that its file states.
    """

    name: str
    rule: str
    card: ModelCard | None
    source: ModelFiles | None
    pooling: str
    variant: str
    poolings: tuple[str, ...]
    variants: tuple[str, ...]
    warnings: tuple[str, ...]
    make: Callable[[], Encoder]
    adapter: Callable[..., Encoder]
    unpinned: bool = False
    patches: bool = False
    facts: tuple[tuple[str, str], ...] = ()


def load_model(
    name_or_path: str,
    *,
    revision: str | None = None,
    weights: str | Path | None = None,
    pooling: str | None = None,
    variant: str | None = None,
    precision: str = "auto",
    trust_remote_code: bool = False,
    preprocessing: Mapping[str, Any] = NOTHING,
    device: "torch.device | str | Callable[[], torch.device] | None" = None,
) -> LoadedModel:
    """Load an encoder from a registered name, a Hub repository or local files.

    Args:
        name_or_path: Registered name (any letter case), `org/name` on the Hub, a folder, or a weights file.
        revision: Branch, tag or commit on the Hub; by default that of the card.
        weights: Folder or file of a model that is not on the Hub.
        pooling: Pooling of the network's tokens, for models with a choice; `tokens` keeps them, for echo
            networks pooled to a bounded number of patches.
        variant: Variant of the preprocessing; "" for the default.
        precision: Precision of the network's arithmetic: fp32, bf16 (autocast), or auto: bf16 for echo networks on a
            GPU.
        trust_remote_code: Whether to run the Python code of a model.
        preprocessing: Facts that replace those of a `cardiobench.json`, such as `fs` and `leads` of an ECG model.
        device: Device of the network, or a function that returns it; the CPU by default. It is not called if PyTorch is
            not imported, because the model then has no network.

    Raises:
        UnknownName: The name is neither registered, nor a folder, nor a Hub name.
        BadModel: No loader fits, or the weights are incomplete.
        NotApplicable: The model has no such pooling or variant.
        MissingExtra: The library that the model needs is not installed.
    """
    plan = plan_model(
        name_or_path,
        revision=revision,
        weights=weights,
        pooling=pooling,
        variant=variant,
        trust_remote_code=trust_remote_code,
        preprocessing=preprocessing,
    )
    with nullcontext() if plan.adapter.__module__.startswith("cardiobench.") else user_code(plan.rule):
        encoder = plan.make()
    if plan.card and revision not in (None, encoder.revision) and plan.source is None:
        raise BadModel(
            f"{plan.name} has only revision '{encoder.revision}', but '{revision}' was requested. Leave the revision out."
        )
    moved_to = "cpu"
    if device is not None and "torch" in sys.modules:
        import torch

        chosen = torch.device(device() if callable(device) else device)
        encoder, moved_to = encoder.to(chosen), str(chosen)
    model = finalize_encoder(encoder, plan, resolve_precision(precision, encoder, plan, moved_to))
    if not plan.patches:
        return model
    from cardiobench.models.patch_tokens import keep_patches

    return keep_patches(model)


def plan_model(
    name_or_path: str,
    *,
    revision: str | None = None,
    weights: str | Path | None = None,
    pooling: str | None = None,
    variant: str | None = None,
    trust_remote_code: bool = False,
    preprocessing: Mapping[str, Any] = NOTHING,
) -> ModelPlan:
    """Plan the work of `load_model`, fetching only small files of a repository, or weights if nothing else can be read."""
    name = str(name_or_path)
    card = find_card(name)
    warnings: tuple[str, ...] = ()
    if card is not None and preprocessing:
        raise BadModel(
            f"{card.id} has its preprocessing in its card. Leave --preprocessing out, or give its files as a folder."
        )
    if card is None:
        if weights is None:
            source = resolve_model_files(name, revision, code=trust_remote_code)
        else:
            source = given_files(name, Path(weights))
        source = replace(source, code=trust_remote_code, facts=dict(preprocessing))
        match = detect(source)
    elif not card.weights:
        source, match = None, _without_weights(card, weights)
    else:
        source = replace(_files_of(card, revision, weights, trust_remote_code), code=trust_remote_code)
        match = _of_card(card, source)
        if not weights and card.revision and revision not in (None, card.revision):
            warnings = (f"revision {revision} was requested, but the card of {card.id} describes {card.revision}",)
    patches = pooling == KEEP_TOKENS and pooling not in match.poolings
    return ModelPlan(
        name=card.id if card else source.name if source else name,
        rule=match.rule,
        card=card,
        source=source,
        pooling=(chosen := _choice(name, "pooling", None if patches else pooling, match.poolings)),
        variant=(named := _choice(name, "variant", variant, match.variants)),
        poolings=match.poolings,
        variants=match.variants,
        warnings=warnings,
        make=lambda: match.load(chosen, named),
        adapter=match.adapter,
        unpinned=source is not None and bool(source.commit) and revision is None and not (card and card.revision),
        patches=patches,
        facts=match.facts,
    )


def _without_weights(card: ModelCard, weights: str | Path | None) -> LoaderMatch:
    if card.adapter == NO_ADAPTER:
        raise BadModel(f"{card.id} cannot be loaded: {card.access}. Its card says what would be needed.")
    if weights is not None:
        raise BadModel(f"{card.id} has no weights, but {weights} was given. Leave --weights out.")
    make = adapter(card.adapter)

    def build(pooling: str, variant: str) -> Encoder:
        chosen = {"pooling": pooling} if card.poolings else {}
        return make(card, **chosen, **({"variant": variant} if card.variants else {}))

    rule = f"'{card.id}' is registered -> {card.adapter}"
    return LoaderMatch(rule, make, build, card.poolings, card.variants, card)


def _files_of(card: ModelCard, revision: str | None, weights: str | Path | None, code: bool) -> ModelFiles:
    """Return the files of a registered model: the given ones, or those of its repository at the pinned revision.

    Raises:
        BadModel: The repository does not exist or cannot be downloaded; the message states the source of the files.
    """
    if weights is not None:
        return replace(given_files(card.id, Path(weights)), checksums=card.weights)
    if card.adapter == NO_ADAPTER:
        raise BadModel(f"{card.id} cannot be loaded: {card.access}. Its card says what would be needed.")
    if card.package:
        return replace(package_files(card.id, card.package, tuple(card.weights)), checksums=card.weights)
    if not card.hub:
        raise BadModel(
            f"{card.id} is not on the Hub. To get it: {card.access}. Then give the folder or file with --weights PATH "
            f"(files: {', '.join(card.weights)})."
        )
    try:
        source = resolve_model_files(card.id, revision or card.revision, code=code)
    except BadModel as error:
        raise BadModel(f"{error} If you already have the files, give them with --weights PATH.") from error
    pinned = revision in (None, card.revision)
    return replace(source, name=card.id, local=False, checksums=card.weights if pinned else {})


def _of_card(card: ModelCard, source: ModelFiles) -> LoaderMatch:
    """Return the loader of a registered model that has weights."""
    if card.adapter == NO_ADAPTER:
        raise BadModel(f"{card.id} has no adapter here, whatever its weights. Its card says what would be needed.")
    if card.adapter != BY_FILES:
        return registered(card, source, f"'{card.id}' is registered -> {card.adapter}")
    match = {name: detect(source, card.stated(name)) for name in card.variants or ("",)}
    first = next(iter(match.values()))
    return replace(
        first,
        rule=f"'{card.id}' is registered; {first.rule}",
        load=lambda pooling, variant: match[variant].load(pooling, ""),
        variants=card.variants,
        card=card,
    )


def _choice(name: str, what: str, wanted: str | None, offered: tuple[str, ...]) -> str:
    """Return the requested pooling or variant, or the default.

    Raises:
        NotApplicable: The model does not have it.
    """
    if wanted is None:
        return offered[0] if offered else ""
    if wanted not in offered:
        offer = f"It offers: {', '.join(offered)}." if offered else f"It has only one: leave --{what} out."
        raise NotApplicable(f"{name} has no {what} '{wanted}'. {offer}")
    return wanted


def resolve_precision(precision: str, encoder: Encoder, plan: ModelPlan, device: str) -> str:
    """Resolve the precision `auto` to fp32 or bf16; return any other one unchanged.

    Raises:
        BadModel: The precision is unknown, or the network has another one that cannot be changed.
    """
    if precision not in PRECISIONS:
        raise BadModel(f"no precision '{precision}'. There are: {', '.join(PRECISIONS)}.")
    if fixed := getattr(encoder, "fixed_precision", ""):
        if precision not in ("auto", fixed):
            raise BadModel(
                f"{plan.name} computes in the precision of its file, not in {precision}. Leave --precision out."
            )
        return fixed
    if precision != "auto":
        return precision
    lowered = device.startswith("cuda") and plan.source is not None and "echo" in encoder.modalities
    return "bf16" if lowered else "fp32"


def finalize_encoder(encoder: Encoder, plan: ModelPlan, precision: str) -> LoadedModel:
    """Return an encoder with the decisions made for it."""
    chosen = {
        "pooling": plan.pooling,
        "variant": plan.variant,
        "precision": precision if precision != "fp32" else "",
    }
    given, local = (dict(plan.source.facts), plan.source.local) if plan.source else ({}, False)
    made_by: tuple[Any, ...] = tuple(dict.fromkeys((type(encoder), plan.adapter)))
    ours = all(map(is_own, made_by))
    named = {**chosen, "preprocessing": sha256_of_json(given)[:8] if given else ""}
    defaults = {"pooling": plan.poolings[:1], "variant": plan.variants[:1], "precision": ("",)}
    return LoadedModel(
        encoder=encoder,
        loaded_by=plan.rule,
        preprocessing={**encoder.preprocessing, **{key: value for key, value in chosen.items() if value}},
        warnings=(*encoder.warnings, *plan.warnings),
        token_pooling=plan.pooling,
        setting="+".join(
            f"{key}-{value}" for key, value in named.items() if value and value not in defaults.get(key, ())
        ),
        precision=precision,
        card=None if local else find_card(encoder.name),
        local=local,
        weight_files=dict(plan.source.used) if plan.source else {},
        configuration=plan.source.configuration() if plan.source else {},
        code=made_by if ours else (),
        custom=() if ours else identity(encoder, plan.adapter),
    )
