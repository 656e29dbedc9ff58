"""Settings of `--profile paper` that the user left open; `docs/papers.md` lists every published setting."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from cardiobench.core.config import RunConfig
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.base import BaseProtocol

AnyProtocol = TypeVar("AnyProtocol", bound=BaseProtocol)

PAPER = "paper"
PAPER_PROBE = "paper_probe"
"""Variant of the preprocessing that the released probe of arXiv:2510.00520 trains on: one whole frame in RGB."""
SEED = 42
OWN = "own"
"""Name of a model's own pooling among those of a run."""
POOLINGS = ("last", "max")
"""Poolings of an ECG model's tokens in arXiv:2601.21830; an echo model offers no last token."""


def apply_profile(config: RunConfig) -> RunConfig:
    """Return the settings with the published seed, under profile "paper" and where no seed was given."""
    if config.profile != PAPER or config.seed != 0:
        return config
    return replace(config, seed=SEED)


def model_choices(name: str, config: RunConfig) -> list[tuple[str | None, str | None]]:
    """Return the pairs (pooling, preprocessing variant) that a model is run with; None for the model's own default."""
    poolings = [None if pooling == OWN else pooling for pooling in config.poolings]
    if config.profile != PAPER:
        return [(pooling, config.variant) for pooling in poolings or (None,)]
    from cardiobench.models.load import plan_model

    plan = plan_model(
        name, revision=config.revision, weights=config.weights, trust_remote_code=config.trust_remote_code
    )
    published = POOLINGS if set(POOLINGS) <= set(plan.poolings) else (None,)
    offered: list[str | None] = [variant for variant in (PAPER, PAPER_PROBE) if variant in plan.variants]
    variants = [config.variant] if config.variant else offered or [None]
    return [(pooling, variant) for variant in variants for pooling in poolings or published]


def select_protocols(protocols: Sequence[AnyProtocol], variants: Collection[str], variant: str) -> list[AnyProtocol]:
    """Return the protocols that a variant of a model's preprocessing is for: the published probe has one of its own.

    Args:
        protocols: of the run.
        variants: that the run uses of this model.
        variant: one of them.
    """
    if {PAPER, PAPER_PROBE} <= set(variants):
        return [one for one in protocols if (one.name == "probe") == (variant == PAPER_PROBE)]
    return list(protocols)


def profile_warning(model: LoadedModel, variant: str | None, config: RunConfig) -> LoadedModel:
    """Return the model, with a warning where no published preprocessing of it is known."""
    if config.profile != PAPER or variant in (PAPER, PAPER_PROBE) or not model.weight_files:
        return model
    sentence = f"profile paper: the papers define no preprocessing of {model.name}; its own default is used"
    return replace(model, warnings=(*model.warnings, sentence))
