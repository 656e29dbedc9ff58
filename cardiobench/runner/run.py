"""Run the benchmark: plan, encode, evaluate, analyze and summarize."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cardiobench.core import plugins
from cardiobench.core.command import command
from cardiobench.core.config import RunConfig, absolute_paths
from cardiobench.core.console import Console
from cardiobench.core.errors import BadConfig, BadData, BadModel, HubError, NotApplicable
from cardiobench.core.io import remove_orphans
from cardiobench.core.registry import look_up
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media.limits import set_limit
from cardiobench.data.prompts import check_prompts
from cardiobench.data.spec import Task
from cardiobench.embeddings.elsewhere import GivenEmbeddings, given_model
from cardiobench.models.base import Encoder, LoadedModel, TextEncoder
from cardiobench.models.files import distinct_models
from cardiobench.models.pooling import KEEP_TOKENS
from cardiobench.protocols import check_installed, choose, protocol, protocol_class
from cardiobench.protocols.analysis import AnalysisProtocol
from cardiobench.protocols.base import BaseProtocol, PredictionProtocol
from cardiobench.protocols.profile import find_profile
from cardiobench.protocols.zero_shot import no_text_tower
from cardiobench.runner.analyze import analyze_model, compare_models
from cardiobench.runner.cells.analysis import AnalysisCell
from cardiobench.runner.cells.frames import FrameCell
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.compute import compute_all
from cardiobench.runner.condition import check_protocols, conditions, tasks_under, under_conditions
from cardiobench.runner.context import RunContext, RunSummary
from cardiobench.runner.encode import encode_inputs, encode_missing
from cardiobench.runner.evaluate import evaluate_cells, make_cells, workers_from_start
from cardiobench.runner.given_embeddings import check_given, only_given, read_given
from cardiobench.runner.hooks import run_hooks
from cardiobench.runner.known import check_reuse, reuse
from cardiobench.runner.names import check_request_names, default_protocols, extra_forms
from cardiobench.runner.no_result import IN_TABLE, DatasetsOfRun, Requested, no_result, requested
from cardiobench.runner.output_folder import check_writable, write_settings
from cardiobench.runner.pairs import protocols_of, with_own_models
from cardiobench.runner.plan import (
    DATASET_COLUMNS,
    dataset_rows,
    open_datasets,
    plan_model,
    real_or_quick,
    resolve_tasks,
)
from cardiobench.runner.pretraining import check_statement, with_statement
from cardiobench.runner.processes import check_shared, share, start_processes, watch
from cardiobench.runner.shard import datasets_of, modalities_of, parse_shard
from cardiobench.runner.summarize import after_run, check_after_run, finalize
from cardiobench.scoring.metrics import check_metrics
from cardiobench.scoring.suites import load_suite

if TYPE_CHECKING:
    import torch


def run(config: RunConfig, console: Console | None = None, encoders: Sequence[Encoder] = ()) -> RunSummary:
    """Evaluate models on tasks; repeating a configuration completes an unfinished run.

    Args:
        config: Run settings.
        console: Console for plan and progress; None to disable it.
        encoders: User models to evaluate in addition to those in the settings.

    Returns:
        Results, failures and files, complete on the main process.

    Raises:
        CardioBenchError: The request is invalid, for example because of an unknown name or missing data.
    """
    given = config
    if config.backend != "loky":
        config = absolute_paths(config)  # Workers of a cluster have other working directories.
    own = {getattr(encoder, "name", type(encoder).__name__): encoder for encoder in encoders} | read_given(config)
    with workers_from_start(config):
        request = resolve(replace(config, models=(*config.models, *own)), own)
    config = request.config
    check_writable(config.output_dir)
    check_after_run(config)
    check_reuse(config)
    accelerator = start_processes(config.device)
    console = console or Console(main=False)
    console.main = console.main and accelerator.is_main_process
    summary = RunSummary(is_main_process=accelerator.is_main_process, asked=request.requested.rows)
    context = RunContext(config, accelerator, summary, console, request.makers)
    if accelerator.is_main_process:
        context.summary.config_file = write_settings(given, request.protocols)
        for folder in (config.output_dir, config.cache_dir):
            remove_orphans(folder)
    print_data(request, console)
    announce_derived(request, console)
    if config.shard:
        console.print(
            f"shard {config.shard}: analyses across datasets or models and the report are left to the run without --shard"
        )
        if not any(datasets_of(name, request.modalities, request.datasets, config.shard) for name in config.models):
            console.print(f"shard {config.shard} is empty: there are fewer model-dataset pairs than shards")
    with watch(accelerator):
        if config.push_to_hub:
            announce_push(request, accelerator.is_main_process, console)
        check_shared(config.cache_dir, accelerator)
        analyses: list[AnalysisCell] = []
        for model, chosen, here in load_models(request, context):
            try:
                analyses += run_model(model, request.tasks, here, chosen, context)
            except BadModel as error:  # This model cannot be encoded; the others continue.
                if len(config.models) == 1:
                    raise
                summary.failures.append((model.name, "", "model", str(error)))
                console.failure(model.name, str(error))
        if accelerator.is_main_process and not config.shard:
            compare_models(analyses, context)
            finalize(context)
        if accelerator.is_main_process:
            after_run(context)
            summary.no_result = unanswered(request, summary.answered(), summary)
            in_table = replace(summary, not_applicable=[(*row[:3], IN_TABLE) for row in summary.not_applicable])
            summary.no_result_below_table = unanswered(request, summary.answered(), in_table)
        summary.no_result, summary.is_empty = share([summary.no_result, not (summary.results or summary.analyses)])
    return context.summary


def unanswered(request: "Request", answered: Collection[tuple[str, str]], summary: RunSummary) -> str:
    """Return which requested models and tasks have no result, why, and what to do; empty if all have one.

    Args:
        request: Resolved request.
        answered: Pairs (model, task) of scores and analyses, existing or planned.
        summary: Summary of the run.
    """
    names = (*request.datasets, *request.absent)
    datasets = DatasetsOfRun({name: catalog.spec(name).modality for name in names}, request.absent, request.modalities)
    return no_result(request.requested, answered, summary, datasets)


def announce_push(request: "Request", is_main_process: bool, console: Console) -> None:
    """Print where the results of each model will be pushed; if the Hub refuses, all processes stop.

    Raises:
        HubError: The results cannot be pushed.
    """
    from cardiobench.hub.after_run import check_before_run

    config = request.config
    given = [name for name, encoder in request.encoders.items() if isinstance(encoder, GivenEmbeddings)]
    local = [name for name, dataset in request.datasets.items() if dataset.spec.local]
    local = local if len(local) == len(request.datasets) else []  # Results on other datasets can be pushed.
    lines, problem = list[str](), ""
    if is_main_process:
        try:
            lines = check_before_run(config.models, config.resamples, given=given, local=local)
        except HubError as error:
            problem = str(error)
    (problem,) = share([problem])
    if problem:
        raise HubError(problem)
    if all(dataset.generated for dataset in request.datasets.values()):
        lines = ["nothing will be pushed: all recordings of this run are generated"]
    for line in lines:
        console.print(line)


def _same(encoder: Encoder) -> Encoder:
    return encoder


@dataclass(frozen=True)
class Request:
    """Resolved and validated request of a run.

    Attributes:
        config: Settings including those of profile and suite.
        protocols: Protocols with options.
        tasks: All requested tasks.
        datasets: Mapping from name to available dataset.
        absent: Mapping from dataset to the reason why its data is missing.
        notes: Lines about generated data in place of real data.
        modalities: Mapping from model name to its modalities.
        encoders: Mapping from name to user model or external embeddings.
        requested: Models and tasks that the request names.
    """

    config: RunConfig
    protocols: Sequence[BaseProtocol]
    tasks: Sequence[Task]
    datasets: Mapping[str, OpenDataset]
    absent: Mapping[str, str]
    notes: Sequence[str]
    modalities: Mapping[str, tuple[str, ...]]
    encoders: Mapping[str, Encoder]
    requested: Requested

    @property
    def makers(self) -> dict[str, Callable[[], Encoder]]:
        """Mapping from name to a function that returns a user model or external embeddings."""
        return {name: partial(_same, one) for name, one in self.encoders.items()}


def resolve(config: RunConfig, encoders: Mapping[str, Encoder] = MappingProxyType({})) -> Request:
    """Resolve all names in the settings before starting work.

    Args:
        config: Run settings.
        encoders: Mapping from name to user model.

    Raises:
        CardioBenchError: A name is unknown, an option is out of range, or data is missing.
    """
    plugins.add_folders(config.datasets_dir, config.models_dir)
    profile = find_profile(config.profile)
    config = profile.apply(config)
    config = replace(config, models=distinct_models(config.models))
    check_request_names(config, encoders)
    check_statement(config, own_encoders=bool(encoders))
    named = config
    config = apply_suite(config)
    if config.shard:
        parse_shard(config.shard)
        if config.push_to_hub:
            raise BadConfig("--push-to-hub cannot be combined with --shard. Push from the final run without --shard.")
    for condition in conditions(config):
        condition.module.check(config, condition.value)
    if config.max_recording_mb is not None:
        set_limit(config.max_recording_mb)
    protocols = make_protocols(config)
    check_protocols(protocols, config)
    tasks = resolve_tasks(config.tasks, config.profile, forms=extra_forms(p.name for p in protocols))
    tasks = tasks_under(tasks, config)
    if config.prompts:
        check_prompts(config.prompts, tasks)
    config = with_own_models(config, protocols, tasks)
    here, absent = open_datasets(tasks, config, need_media=not only_given(config, encoders))
    modalities = modalities_of(config.models, encoders, config.weights)
    datasets, notes = real_or_quick(here, set().union(*modalities.values()), config)
    check_metrics([task for task in tasks if task.dataset in datasets], config.metrics)
    return Request(
        config,
        protocols,
        tasks,
        datasets,
        absent,
        notes,
        modalities,
        check_given(encoders, datasets),
        requested(named, tasks, encoders, [one.name for one in protocols]),
    )


def print_data(request: Request, console: Console) -> None:
    """Print available and missing data."""
    for line in request.notes:
        console.print(line)
    console.table("data", DATASET_COLUMNS, dataset_rows(request.datasets))
    if request.absent:
        console.print(f"no data here for: {', '.join(request.absent)} ({command('list')} says where to ask for it)")


def announce_derived(request: Request, console: Console) -> None:
    """Print which results the run will have beside those of its tasks."""
    taken = set().union(*request.modalities.values())
    datasets = {name: one for name, one in request.datasets.items() if one.spec.modality in taken}
    for hooks in run_hooks():
        for line in hooks.announce(request.tasks, datasets, request.config):
            console.print(line)


def apply_suite(config: RunConfig) -> RunConfig:
    """Return the settings with tasks, protocols and options of their suite; variant-selecting options may be added.

    Raises:
        UnknownName: There is no such suite.
        BadConfig: Tasks, protocols or other options were given with a suite.
    """
    if not config.suite:
        return config
    suite = load_suite(config.suite)
    check_installed(suite.name, suite.protocols)
    changing = [name for name, given in config.options.items() if given.keys() - protocol_class(name).selecting_options]
    beside = [name for name in ("tasks", "protocols") if getattr(config, name)] + ["options"] * bool(changing)
    if beside:
        raise BadConfig(f"--suite {suite.name} fixes {', '.join(beside)}. Leave these flags or the suite out.")
    names = (*suite.options, *config.options)
    options = {name: {**config.options.get(name, {}), **suite.options.get(name, {})} for name in names}
    return replace(config, tasks=suite.tasks, protocols=suite.protocols, options=options)


def make_protocols(config: RunConfig) -> list[BaseProtocol]:
    """Return the protocols of a run with their options.

    Raises:
        CardioBenchError: A name or option is unknown, an option belongs to an unselected protocol, or the prompt set
            does not exist.
    """
    if config.prompts and not config.prompts.exists():
        raise BadData(
            f"there is no prompt set {config.prompts}. Give --prompts a JSON file, or a clone of the repository of the "
            f"echo benchmark or of MERL. A template is written by: {command('prompts', 'DATASET', '--out', 'FILE')}"
        )
    names = choose(config.protocols) if config.protocols else default_protocols(config.tasks)
    if unselected := ", ".join(name for name in config.options if name not in names):
        raise BadConfig(f"{unselected}, named by --option, is not selected. Add it to --protocols or remove it.")
    return look_up(names, lambda name: protocol(name, config))


def load_models(
    request: Request, context: RunContext, *, without_data: bool = False
) -> Iterator[tuple[LoadedModel, Sequence[BaseProtocol], dict[str, OpenDataset]]]:
    """Load the models of a run with each of their poolings, recording failures.

    A pooling that a model does not offer is recorded as not applicable, and its other poolings continue. Of local models
    with the same weights and settings only the first is evaluated.

    Args:
        request: Resolved request.
        context: Run context.
        without_data: Whether to load models for which no dataset is here.

    Yields:
        Model, its protocols, and its datasets.

    Raises:
        BadModel: The only model of the run cannot be loaded.
        NotApplicable: No model supports the requested pooling, variant or prompts.
    """
    config, profile = request.config, find_profile(request.config.profile)
    refusals: list[NotApplicable] = []
    loaded = 0
    contents: dict[tuple[str, str], str] = {}  # Identity of a local model -> its first name in the request.
    for name in config.models:
        datasets = datasets_of(name, request.modalities, request.datasets, config.shard)
        if not (datasets or without_data):
            continue
        settings: set[str] = set()  # `own` and the name of the model's own pooling are equal.
        try:
            for pooling, variant, chosen in profile.model_choices(name, config, request.protocols):
                try:
                    model = load(name, config, lambda: context.accelerator.device, pooling, variant, context.encoders)
                    model = under_conditions(with_statement(model, config), config)
                except NotApplicable as error:
                    refusals.append(error)
                    how = f"--pooling {pooling}" if pooling else ""
                    context.summary.not_applicable.append((name, "every task", how, str(error)))
                    continue
                if model.setting not in settings:
                    settings.add(model.setting)
                    loaded += 1
                    first = contents.setdefault((model.revision, model.setting), name) if model.local else name
                    if first != name:
                        context.summary.loaded[name] = context.summary.loaded[first]
                        context.console.print(
                            f"! {name} has the same weights and settings as {first}, so it is the same model. It is "
                            f"evaluated once, as {context.summary.loaded[first][0]}."
                        )
                        continue
                    context.summary.loaded[name] = model.name, tuple(model.modalities)
                    yield (
                        profile.with_warning(model, variant),
                        protocols_of(model, chosen, request.tasks, context),
                        datasets,
                    )
        except BadModel as error:
            if len(config.models) == 1:
                raise
            context.summary.failures.append((name, "", "model", str(error)))
            context.console.failure(name, str(error))
    if refusals and not loaded and not context.summary.failures:
        raise refusals[0]


def load(
    name: str,
    config: RunConfig,
    device: Callable[[], "torch.device"],
    pooling: str | None = None,
    variant: str | None = None,
    encoders: Mapping[str, Callable[[], Encoder]] = MappingProxyType({}),
) -> LoadedModel:
    """Load a model; determine the device only if there is a network.

    Raises:
        BadModel: The model cannot be loaded completely.
        NotApplicable: The model lacks the pooling, variant or, with prompts, the text tower.
    """
    from cardiobench.models.custom import find_custom, loaded
    from cardiobench.models.load import load_model

    if (given := encoders.get(name)) and isinstance(encoder := given(), GivenEmbeddings):
        return given_model(encoder, pooling)
    if make := given or find_custom(name):
        precision = "fp32" if config.precision == "auto" else config.precision
        model = loaded(make(), f"{name} is a model of the user's own", precision, device(), None if given else make)
        if pooling is None:
            return model
        if pooling != KEEP_TOKENS:
            raise NotApplicable(f"{name} is your own model and has no pooling '{pooling}'. Leave --pooling out.")
        from cardiobench.models.patch_tokens import keep_patches

        return keep_patches(model)
    model = load_model(
        name,
        revision=config.revision,
        weights=config.weights,
        pooling=pooling,
        variant=variant,
        precision=config.precision,
        trust_remote_code=config.trust_remote_code,
        preprocessing=config.preprocessing,
        device=device,
    )
    if config.prompts and not isinstance(model.encoder, TextEncoder):
        raise NotApplicable(f"{no_text_tower(model.encoder)}. Leave --prompts out, or choose a model with text.")
    return model


def run_model(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> list[AnalysisCell]:
    """Run all tasks of one model: encode each dataset once, then run all protocols on stored embeddings.

    Returns:
        Analysis cells with results, for comparisons between models.
    """
    plans = plan_model(model, tasks, datasets, [p.name for p in protocols], context)
    predicting = [p for p in protocols if isinstance(p, PredictionProtocol)]
    analyzing = [p for p in protocols if isinstance(p, AnalysisProtocol)]
    known = reuse(model, plans, predicting, context)
    plans = {name: plan.current() for name, plan in plans.items()} if context.config.reuse else plans
    unreadable: dict[str, frozenset[str]] = {}
    cells: list[Cell] = []
    waiting: list[Cell] = []
    stored = dict(zip(plans, share([plan.complete for plan in plans.values()]), strict=True))
    for name, plan in plans.items():
        skip = name in known and not analyzing
        if not skip and not stored[name]:  # Save results of earlier datasets before encoding this one.
            evaluate_cells(waiting, context)
            waiting = []
        unreadable[name] = frozenset() if skip else encode_missing(model, {None: plan}, context)
        made = make_cells(model, plan, predicting, unreadable[name], context)
        cells, waiting = [*cells, *made], [*waiting, *made]
    evaluate_cells(waiting, context)
    if context.accelerator.is_main_process:
        for hooks in run_hooks():
            hooks.after_model(cells, context)
    run_planned(model, tasks, datasets, protocols, context)
    return analyze_model(model, analyzing, plans, unreadable, context)


def planned_cells(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> Iterator[FrameCell]:
    """Yield the cells that extensions plan, before encoding their frames (`RunHooks.plan`)."""
    for hooks in run_hooks():
        yield from hooks.plan(model, tasks, datasets, protocols, context)


def run_planned(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[BaseProtocol],
    context: RunContext,
) -> None:
    """Encode missing frames of the cells that extensions plan, and compute the cells.

    Args:
        model: Loaded model.
        tasks: All tasks of the run.
        datasets: Mapping from name to available dataset.
        protocols: Protocols of the run.
        context: Run context.
    """
    unreadable: dict[tuple[str, Path], frozenset[str]] = {}  # Try failed frames only once.
    for cell in planned_cells(model, tasks, datasets, protocols, context):
        lost = {}
        for name, one in cell.plan.plans.items():
            place = cell.subject, one.store.folder
            if place not in unreadable:
                wanted = one.encode_input()
                unreadable[place] = encode_inputs([wanted], cell.task.dataset, context, note=", single frames")
            lost[name] = unreadable[place]
        if context.accelerator.is_main_process:
            compute_all([replace(cell, plan=cell.plan.without(lost))], context, cell.subject)
        context.accelerator.wait_for_everyone()
