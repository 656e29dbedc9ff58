"""Find the requested models and tasks of a run without a result, and say why there is none."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cardiobench.core.command import command
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import first_n
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.runner.context import RunSummary

SHOWN = 3
"""Number of reasons, or of datasets, in the sentence."""
IN_TABLE = "the table of what is not applicable has the reasons"
"""Reason of an inapplicable combination in a sentence below the table of these combinations."""


@dataclass(frozen=True)
class Requested:
    """Models and tasks that a request names, each of which needs a score or an analysis.

    Tasks of a suite and tasks that are only chosen because their data is here need none, and neither do the models that
    a protocol adds. A job of a job array sees only a part of the run, so nothing is needed of it.

    Attributes:
        models: Models by the name in the request.
        tasks: Mapping from requested task or dataset to the names of tasks of which one must have a result.
        described: Whether `cardiobench doctor` can describe the models, which are not objects or external embeddings.
        protocols: Protocols of the run.
        rows: Tasks that the request names, directly or by their dataset.
    """

    models: tuple[str, ...]
    tasks: Mapping[str, frozenset[str]]
    described: tuple[str, ...]
    protocols: tuple[str, ...]
    rows: frozenset[str]


def requested(config: RunConfig, tasks: Sequence[Task], own: Collection[str], protocols: Iterable[str]) -> Requested:
    """Return what a request names.

    Args:
        config: Settings before those of its suite are applied.
        tasks: All tasks of the run.
        own: Models given as objects or external embeddings.
        protocols: Names of the protocols of the run.
    """
    named = {name: _tasks_of(name, tasks) for name in config.tasks}
    rows = frozenset().union(*({name} if "/" in name else members for name, members in named.items()))
    if config.shard:
        return Requested((), {}, (), (), rows)
    described = tuple(name for name in config.models if name not in own)
    return Requested(config.models, named, described, tuple(protocols), rows)


def _tasks_of(name: str, tasks: Sequence[Task]) -> frozenset[str]:
    if "/" not in name:
        return frozenset(task.name for task in tasks if task.dataset == name)
    task = catalog.task(name)
    members = catalog.members(task) if catalog.spans_datasets(task) else ()
    return frozenset((name, *(one.name for one in members)))


@dataclass(frozen=True)
class DatasetsOfRun:
    """What the datasets and the models of a run are.

    Attributes:
        modalities: Mapping from dataset to modality, of all tasks of the run.
        absent: Datasets that are not here.
        taken: Mapping from requested model to the modalities of its card; all for a model without one.
    """

    modalities: Mapping[str, str]
    absent: Collection[str]
    taken: Mapping[str, Collection[str]]


def no_result(
    request: Requested, answered: Collection[tuple[str, str]], summary: RunSummary, datasets: DatasetsOfRun
) -> str:
    """Return which requested models and tasks have no result, why, and what to do; empty if all have one.

    Args:
        request: What the request names.
        answered: Pairs (model, task) of scores and analyses.
        summary: Summary of the run, with the combinations that do not apply and the loaded models.
        datasets: Datasets of the run.
    """
    with_model, with_task = {model for model, _ in answered}, {task for _, task in answered}
    models = {
        name: _model_reason(name, request, summary, datasets)
        for name in request.models
        if not {name, _loaded_name(name, summary)} & with_model
    }
    tasks = {
        name: _task_reason(members, request, summary, datasets)
        for name, members in request.tasks.items()
        if not members & with_task
    }
    # Without any model, the reasons of the models are those of the tasks.
    found = models if models and len(models) == len(request.models) else {**models, **tasks}
    if not found:
        return ""
    by_reason: dict[str, list[str]] = {}
    for name, reason in found.items():
        by_reason.setdefault(reason.rstrip("."), []).append(name)
    parts = [
        f"{first_n(names, SHOWN)} {'has' if len(names) == 1 else 'have'} no result: {reason}"
        for reason, names in by_reason.items()
    ]
    return f"{'; '.join(parts)}. {_action(models, request, summary, datasets)}"


def _loaded_name(name: str, summary: RunSummary) -> str:
    return summary.loaded.get(name, (name, ()))[0]


def _model_reason(name: str, request: Requested, summary: RunSummary, datasets: DatasetsOfRun) -> str:
    names = {name, _loaded_name(name, summary)}
    failed = [reason for model, _, kind, reason in summary.failures if model in names and kind == "model"]
    refused = [reason for model, _, _, reason in summary.not_applicable if model in names]
    if failed or refused:
        return first_n(dict.fromkeys(failed or refused), SHOWN)
    taken, fitting = _taken(name, summary, datasets), _fitting(name, summary, datasets)
    if not fitting:
        kinds = dict.fromkeys(datasets.modalities.values())
        others = f"{first_n(datasets.modalities, SHOWN)} {'is' if len(datasets.modalities) == 1 else 'are'}"
        return f"the model takes {' and '.join(taken)}, and {others} {' and '.join(kinds)}"
    if all(one in datasets.absent for one in fitting):
        return f"there is no data here for {first_n(fitting, SHOWN)}"
    return f"{', '.join(request.protocols)} gives none on the data of this run"


def _taken(name: str, summary: RunSummary, datasets: DatasetsOfRun) -> Collection[str]:
    return summary.loaded[name][1] if name in summary.loaded else datasets.taken[name]


def _fitting(name: str, summary: RunSummary, datasets: DatasetsOfRun) -> list[str]:
    """Return the datasets of the run with a modality that the model takes, here or not."""
    taken = _taken(name, summary, datasets)
    return [one for one, modality in datasets.modalities.items() if modality in taken]


def _task_reason(members: frozenset[str], request: Requested, summary: RunSummary, datasets: DatasetsOfRun) -> str:
    refused = [reason for _, task, _, reason in summary.not_applicable if task in members]
    if refused:
        return first_n(dict.fromkeys(refused), SHOWN)
    names = dict.fromkeys(one.partition("/")[0] for one in sorted(members))
    kinds = {datasets.modalities[name] for name in names if name in datasets.modalities}
    if kinds and not kinds & {kind for _, taken in summary.loaded.values() for kind in taken}:
        return f"no model of this run takes {' or '.join(sorted(kinds))}"
    return f"{', '.join(request.protocols)} gives none on it"


def _action(models: Collection[str], request: Requested, summary: RunSummary, datasets: DatasetsOfRun) -> str:
    fitting = [one for name in models for one in _fitting(name, summary, datasets)]
    if fitting and all(one in datasets.absent for one in fitting):
        return f"`{command('list')}` says where to ask for the data."
    if described := next((name for name in models if name in request.described), ""):
        return f"`{command('doctor', '--model', described)}` lists the tasks and protocols that it supports."
    return f"`{command('list')}` lists all tasks and models."
