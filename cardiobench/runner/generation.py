"""Choose the store of embeddings that a model still gives: where it drifted away from one, a new one is started, and said."""

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

from cardiobench.core.libraries import library_versions
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.models.registry import BY_FILES
from cardiobench.runner.context import RunContext
from cardiobench.runner.processes import share

if TYPE_CHECKING:
    from cardiobench.embeddings.extract import RecordingSource

OF_CUSTOM, OF_UNGUARDED = 2, 1
"""Recordings that are encoded again: of a model of the user's own, and of one of the Hub that no golden vectors guard."""


class StorePlan(Protocol):
    """A plan of inputs read from a store."""

    @property
    def store(self) -> EmbeddingStore:
        """The store."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the store holds everything that the run needs."""
        ...


Plan = TypeVar("Plan", bound=StorePlan)


def current_plan(
    model: LoadedModel,
    source: "RecordingSource",
    plan_of: Callable[[int], Plan],
    context: RunContext,
) -> Plan:
    """Return the plan for the first generation of a store whose vectors the model reproduces, or that is empty.

    Parameters, buffers and code of a user's own model are in its key; two stored recordings are encoded again for what they
    cannot show, such as weights that are loaded late. Another model without golden vectors is asked for one recording where
    its store grows under libraries that no shard of it was computed with.

    Args:
        model: Loaded model.
        source: Recordings of the dataset.
        plan_of: Plan by generation.
        context: Run context.
    """
    plan_of = cache(plan_of)
    plan = plan_of(0)
    checked = OF_CUSTOM if model.custom else OF_UNGUARDED if _unguarded(model) else 0
    if not checked:
        return plan
    accelerator = context.accelerator
    generation = 0
    if accelerator.is_main_process:
        generation = _generation(model, source, plan_of, checked, context)
    if accelerator.num_processes > 1:
        [generation] = share([generation])
    return plan_of(generation) if generation else plan


def _generation(
    model: LoadedModel,
    source: "RecordingSource",
    plan_of: Callable[[int], StorePlan],
    checked: int,
    context: RunContext,
) -> int:
    said = ""
    for generation in count():
        plan = plan_of(generation)
        store = plan.store
        if not any(store.folder.glob("*.arrow")):
            break
        if checked == OF_UNGUARDED and (plan.complete or store.agrees_with(library_versions(store.media))):
            return generation
        from cardiobench.embeddings.repeat import drift

        found = drift(model, source, store, checked, context.accelerator.device)
        if found is None:
            return generation
        said = (
            f"! {model.name} no longer gives the embeddings in {store.folder}: those of {found.id} differ by "
            f"{found.difference:.2g} of their root mean square. All recordings are encoded again into a new store."
        )
    if said:
        context.console.print(said)
    return generation


def _unguarded(model: LoadedModel) -> bool:
    """Return whether a model has weights and is none of those whose adapters are tested against golden vectors."""
    return bool(model.weight_files) and (model.card is None or model.card.adapter == BY_FILES)
