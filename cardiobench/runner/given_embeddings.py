"""Read external embeddings and check them against the recordings of a run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from cardiobench.core.config import RunConfig, flag_of
from cardiobench.core.errors import BadConfig
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.embeddings.elsewhere import GivenEmbeddings, chosen_name
from cardiobench.embeddings.split_audit import audit_splits
from cardiobench.embeddings.vector_files import read_vectors
from cardiobench.models.base import Encoder
from cardiobench.results.record import NOT_SEEN
from cardiobench.scoring.external_model import describe_model

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def read_given(config: RunConfig, source: "Path | pd.DataFrame | None" = None) -> dict[str, Encoder]:
    """Return a mapping from name to external embeddings in the settings; empty without any.

    Args:
        config: Settings of the run.
        source: Data frame to use instead of the file in the settings.

    Raises:
        BadConfig: No tasks are given, or the name is invalid.
        BadData: The file does not contain valid embeddings.
    """
    chosen = config.embeddings if source is None else source
    if chosen is None:
        if config.model_name:
            raise BadConfig(
                f"{flag_of(RunConfig, 'model_name')} describes the file of {flag_of(RunConfig, 'embeddings')} or --predictions. Leave it out."
            )
        return {}
    if not (config.tasks or config.suite):
        raise BadConfig("--embeddings needs --tasks, because the file does not name any task.")
    table = read_vectors(chosen)
    name = chosen_name(config.model_name, table.source)
    asked = dict.fromkeys(one.partition("/")[0] for one in config.tasks)
    seen: dict[str, bool | None] = {}
    for dataset in asked:
        if dataset in catalog.list_datasets() and (tasks := catalog.spec(dataset).all_tasks):
            said = describe_model(tasks[0], model_name=name, seen_in_pretraining=config.seen_in_pretraining)
            seen[dataset] = said["seen_in_pretraining"]
    return {name: cast(Encoder, GivenEmbeddings(name, table, seen))}


def only_given(config: RunConfig, encoders: Mapping[str, Encoder]) -> bool:
    """Return whether a run needs no recordings, because all embeddings are external."""
    return bool(config.models) and all(isinstance(encoders.get(name), GivenEmbeddings) for name in config.models)


def check_given(encoders: Mapping[str, Encoder], datasets: Mapping[str, OpenDataset]) -> dict[str, Encoder]:
    """Check external embeddings before the run, and add audit findings to their warnings.

    Raises:
        BadData: The file or its ids are invalid.
        BadConfig: The run has several datasets, but the file does not distinguish their recordings.
    """
    checked = dict(encoders)
    for name, encoder in encoders.items():
        if isinstance(encoder, GivenEmbeddings):
            checked[name] = _checked(encoder, datasets)
    return checked


def _checked(encoder: GivenEmbeddings, datasets: Mapping[str, OpenDataset]) -> GivenEmbeddings:
    table = encoder.table
    table.check()
    if len(datasets) > 1 and not table.names_datasets:
        raise BadConfig(
            f"{table.source} does not say which of {', '.join(datasets)} each recording belongs to. Add a column `dataset`, or evaluate "
            "one dataset at a time."
        )
    if unknown := sorted(set(table.datasets) - set(catalog.list_datasets())):
        raise BadConfig(f"{table.source} names datasets that do not exist: {', '.join(unknown)}.")
    warnings = [NOT_SEEN]
    for name, dataset in datasets.items():
        listed = dataset.table.listed
        warnings += audit_splits(table.of(name), list(listed["id"]), list(listed["split"]), name)
    return replace(encoder, warnings=tuple(warnings))
