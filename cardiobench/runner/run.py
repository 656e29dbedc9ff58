"""A run: plan, encode, evaluate, analyze, summarize."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.core.config import RunConfig, absolute, to_yaml
from cardiobench.core.console import Console
from cardiobench.core.errors import BadData, BadModel, CardioBenchError, NotApplicable, UnwritableOutput
from cardiobench.core.io import sha256_of_json, write_text
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel, TextEncoder
from cardiobench.protocols import choose, protocol
from cardiobench.protocols.analysis import AnalysisProtocol
from cardiobench.protocols.base import PredictionProtocol
from cardiobench.protocols.zero_shot import no_text_tower
from cardiobench.runner.analyze import AnalysisCell, compare_models, load_cached_analysis, run_analysis
from cardiobench.runner.context import RunContext, RunSummary
from cardiobench.runner.encode import encode_missing
from cardiobench.runner.evaluate import Cell, evaluate_cell, load_cached
from cardiobench.runner.plan import (
    DATASET_COLUMNS,
    PLAN_COLUMNS,
    DatasetPlan,
    dataset_rows,
    model_lines,
    open_datasets,
    plan_dataset,
    plan_rows,
    resolve_tasks,
)

if TYPE_CHECKING:
    from accelerate import Accelerator


def run(config: RunConfig, console: Console | None = None) -> RunSummary:
    """Evaluate models on tasks; running the same configuration again finishes what is missing.

    Args:
        config: the settings.
        console: where plan and progress are printed; silent when None.

    Raises:
        CardioBenchError: the request is wrong as a whole: an unknown name, data or a model that is not there.
    """
    if config.prompts and not config.prompts.is_file():
        raise BadData(
            f"there is no prompt set {config.prompts}. Give --prompts a JSON file like a dataset's prompts.json."
        )
    names = choose(config.protocols)
    for name in config.options:
        if name not in names:
            raise CardioBenchError(f"--option sets {name}, which is not run. Add it to --protocols, or leave it out.")
    protocols = [protocol(name, config) for name in names]
    tasks = resolve_tasks(config.tasks)
    sources, absent = open_datasets(tasks, config)
    check_writable(config.output_dir)
    accelerator = start_processes()
    console = console or Console(main=False)
    console.main = console.main and accelerator.is_main_process
    context = RunContext(config, accelerator, RunSummary(is_main_process=accelerator.is_main_process), console)
    if accelerator.is_main_process:
        context.summary.config_file = write_settings(config)
    console.table("data", DATASET_COLUMNS, dataset_rows(sources))
    if absent:
        console.print(f"no data here for: {', '.join(absent)} (cardiobench list says where to ask for it)")
    studies: list[AnalysisCell] = []
    for name in config.models:
        for pooling in config.poolings or (None,):
            try:
                model = load(name, config, accelerator.device, pooling)
            except (BadModel, NotApplicable) as error:
                if len(config.models) == 1:
                    raise
                context.summary.failures.append((name, "", "model", str(error)))
                context.console.failure(name, str(error))
            else:
                studies += run_model(model, tasks, sources, protocols, context)
    if accelerator.is_main_process:
        across_models(studies, context)
        finalize(context)
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return context.summary


def write_settings(config: RunConfig) -> Path:
    """Write the file that repeats a run, `<output>/runs/<digest of the settings>/run.yaml`."""
    text = to_yaml(absolute(config))
    return write_text(text, config.output_dir / "runs" / sha256_of_json(text)[:12] / "run.yaml")


def start_processes() -> "Accelerator":
    """The accelerator of this process; refuses to work alone where it was started as one of several."""
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if accelerator.num_processes != started:
        raise CardioBenchError(
            f"{started} processes were started, but accelerate sees {accelerator.num_processes}: each would do all the work. "
            "On a machine without GPUs launch with: accelerate launch --multi_gpu --num_processes N -m cardiobench.eval ..."
        )
    return accelerator


def load(name: str, config: RunConfig, device, pooling: str | None = None) -> LoadedModel:
    """The encoder of that name, on the device; `NotApplicable` when prompts were given for a model that cannot read."""
    from cardiobench.models.load import load_model

    model = load_model(
        name,
        revision=config.revision,
        weights=config.weights,
        pooling=pooling,
        variant=config.variant,
        precision=config.precision,
        trust_remote_code=config.trust_remote_code,
        device=device,
    )
    if config.prompts and not isinstance(model.encoder, TextEncoder):
        raise NotApplicable(f"{no_text_tower(model.encoder)}. Leave --prompts out, or choose a model with text.")
    return model


def run_model(
    model: LoadedModel,
    tasks: Sequence[Task],
    sources: dict[str, OpenDataset],
    protocols: Sequence[PredictionProtocol | AnalysisProtocol],
    context: RunContext,
) -> list[AnalysisCell]:
    """All tasks of one model: every dataset is encoded once, then every protocol works from the stored embeddings.

    Returns:
        The studies that were made, for comparisons between models.
    """
    plans: dict[str, DatasetPlan] = {}
    for name, source in sources.items():
        asked = [task for task in tasks if task.dataset == name]
        if source.spec.modality in model.modalities:
            plans[name] = plan_dataset(model, source, asked, context.config)
        elif len(context.config.models) == 1 and context.config.tasks:
            reason = f"the model takes {' and '.join(model.modalities)}, {name} is {source.spec.modality}"
            context.summary.not_applicable += [
                (model.name, task.name, p.name, reason) for task in asked for p in protocols
            ]
    for line in model_lines(model):
        context.console.print(line)
    context.console.table("plan", PLAN_COLUMNS, plan_rows(list(plans.values())))
    answering = [p for p in protocols if isinstance(p, PredictionProtocol)]
    unread: dict[str, frozenset[str]] = {}
    for name, plan in plans.items():
        unread[name] = encode_missing(model, {None: plan}, context)
        if context.accelerator.is_main_process:
            cells = [
                Cell(model, plan, task, protocol, variant, unread[name], context.config)
                for task in plan.tasks
                for protocol in answering
                for variant in protocol.variants(task)
            ]
            evaluate_cells(cells, context)
        context.accelerator.wait_for_everyone()
    return [
        cell
        for p in protocols
        if isinstance(p, AnalysisProtocol)
        for cell in run_studies(model, p, plans, unread, context)
    ]


def run_studies(
    model: LoadedModel,
    protocol: AnalysisProtocol,
    plans: dict[str, DatasetPlan],
    unread: dict[str, frozenset[str]],
    context: RunContext,
) -> list[AnalysisCell]:
    """One study of one model on all its subjects; returns those that the model took part in."""
    made = []
    tasks = [task for plan in plans.values() for task in plan.tasks]
    for subject, members in protocol.subjects(tasks).items():
        datasets = list(dict.fromkeys(task.dataset for task in members))
        changed: dict[tuple[str, str], DatasetPlan] = {}
        lost = {name: unread[name] for name in datasets}
        for name in datasets:
            own = [task for task in members if task.dataset == name]
            disturbed = {
                change: plan_dataset(model, plans[name].source, own, context.config, change)
                for change in protocol.perturbations(own)
            }
            if disturbed:
                lost[name] |= encode_missing(model, disturbed, context, plans[name])
                changed |= {(name, change.key): plan for change, plan in disturbed.items()}
        cell = AnalysisCell(model, protocol, subject, members, plans, changed, lost, context.config)
        if context.accelerator.is_main_process and look(cell, context):
            made.append(cell)
        context.accelerator.wait_for_everyone()
    return made


def look(cell: AnalysisCell, context: RunContext) -> bool:
    """One study: keep the record that is there if nothing that matters has changed, else make it; whether there is one."""
    found = None if context.config.overwrite else load_cached_analysis(cell.path, cell.key)
    try:
        record, files = (found, []) if found else run_analysis(cell)
    except NotApplicable as error:
        context.summary.not_applicable.append((cell.model.name, cell.subject, cell.protocol.name, str(error)))
        return False
    context.summary.analyses.append(record)
    context.summary.files += files
    return True


def across_models(cells: Sequence[AnalysisCell], context: RunContext) -> None:
    """Studies that compare models, where two or more took part in the same one."""
    together: dict[tuple[str, str], list[AnalysisCell]] = {}
    for cell in cells:
        together.setdefault((cell.protocol.name, cell.subject), []).append(cell)
    for group in together.values():
        if len(group) > 1 and (compared := compare_models(group)):
            record, files = compared
            context.summary.analyses.append(record)
            context.summary.files += files


def evaluate_cells(cells: Sequence[Cell], context: RunContext) -> None:
    """The cells of one model on one dataset, one after the other; those that are a lot of work, many at once."""
    from cardiobench.runner.parallel import run_parallel

    heavy: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.protocol.runs_in_parallel:
            heavy.setdefault(cell.protocol.name, []).append(cell)
        else:
            answer(cell, context)
    for shipped in heavy.values():
        run_parallel(shipped, context)


def answer(cell: Cell, context: RunContext) -> None:
    """One protocol on one task: keep the result that is there if nothing that matters has changed, else make it."""
    cached = None if context.config.overwrite else load_cached(cell)
    if cached:
        context.summary.results.append(cached)
        return
    try:
        result, files = evaluate_cell(cell)
    except NotApplicable as error:
        context.summary.not_applicable.append((cell.model.name, cell.task.name, cell.label, str(error)))
    else:
        context.summary.results.append(result)
        context.summary.files += files


def finalize(context: RunContext) -> None:
    """Write the report and the list of failures; then push to the Hub where it was asked for."""
    from cardiobench.report.markdown import write_markdown
    from cardiobench.results.collect import collect
    from cardiobench.results.failures import write_failures

    folder, summary = context.config.output_dir, context.summary
    if summary.failures:
        summary.files.append(write_failures(summary.failures, folder))
    if summary.results:
        summary.files += write_markdown(collect([folder]), folder)
    if context.config.push_to_hub:
        from cardiobench.hub.after_run import push_all

        summary.failures += [
            (name, "", "push", why) for name, why in push_all(summary.results, folder, context.console)
        ]


def check_writable(folder: Path) -> None:
    """Refuse an output folder that cannot be written to, before any work is done."""
    probe = folder / f".write-test-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise UnwritableOutput(
            f"{folder} cannot be written to ({error.strerror}). Choose another folder with --output-dir."
        ) from None
