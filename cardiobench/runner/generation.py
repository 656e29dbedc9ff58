"""Select the store generation that a model still reproduces, or start a new one."""

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
"""Number of recordings to encode again, for user models and for Hub models without golden vectors."""


class StorePlan(Protocol):
    """Plan of inputs from one store."""

    @property
    def source(self) -> "RecordingSource":
        """Recordings, with the fingerprints under which they are stored."""
        ...

    @property
    def store(self) -> EmbeddingStore:
        """Embedding store."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the store has all required vectors."""
        ...


Plan = TypeVar("Plan", bound=StorePlan)


def current_plan(
    model: LoadedModel,
    plan_of: Callable[[int], Plan],
    context: RunContext,
) -> Plan:
    """Return the plan for the first store generation that is empty or reproduced by the model.

    The key of a user model covers parameters, buffers and code. Two stored recordings are encoded again to detect
    changes that it misses, such as weights loaded later. For other models without golden vectors, one recording is
    checked when the store grows with new library versions.

    Args:
        model: Loaded model.
        plan_of: Function from generation to plan.
        context: Run context.
    """
    plan_of = cache(plan_of)
    accelerator = context.accelerator
    # The others then find the digests of changed recordings in the cache, instead of reading them as well.
    with accelerator.main_process_first():
        plan = plan_of(0)
    checked = OF_CUSTOM if model.custom else OF_UNGUARDED if _unguarded(model) else 0
    if not checked:
        return plan
    generation = 0
    if accelerator.is_main_process:
        generation = _generation(model, plan_of, checked, context)
    if accelerator.num_processes > 1:
        [generation] = share([generation])
    return plan_of(generation) if generation else plan


def _generation(
    model: LoadedModel,
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

        found = drift(model, plan.source, store, checked, context.accelerator.device)
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
    """Return whether a model has weights and no adapter with golden-vector tests."""
    return bool(model.weight_files) and (model.card is None or model.card.adapter == BY_FILES)
