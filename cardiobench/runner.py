"""The whole story of a run: plan what is missing, embed it, answer, score, save."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.answer import Cell, finished, work
from cardiobench.config import RunConfig
from cardiobench.data.source import Source
from cardiobench.data.spec import Task
from cardiobench.errors import BadData, BadModel, CardioBenchError, NotApplicable, UnwritableOutput
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.plan import DatasetPlan, open_sources, plan_dataset, resolve_tasks
from cardiobench.protocols import list_protocols, protocol
from cardiobench.protocols.base import EvalProtocol
from cardiobench.protocols.zero_shot import no_text_tower
from cardiobench.report.console import Console
from cardiobench.report.result import Result

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        results: finished ones, new and kept.
        not_applicable: (model, task, protocol, reason).
        failures: (model, dataset, recording or "model", reason).
        files: written by this run.
    """

    results: list[Result] = field(default_factory=list)
    not_applicable: list[tuple[str, str, str, str]] = field(default_factory=list)
    failures: list[tuple[str, str, str, str]] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 = done, 1 = something failed."""
        return 1 if self.failures else 0


@dataclass(frozen=True)
class Run:
    """What every step of a run needs to know."""

    config: RunConfig
    accelerator: "Accelerator"
    outcome: Outcome
    say: Console


def run(config: RunConfig) -> Outcome:
    """Evaluate models on tasks; running the same configuration again finishes what is missing.

    Raises:
        CardioBenchError: the request is wrong as a whole: an unknown name, data or a model that is not there.
    """
    if config.prompts and not config.prompts.is_file():
        raise BadData(
            f"there is no prompt set {config.prompts}. Give --prompts a JSON file like a dataset's prompts.json."
        )
    protocols = [protocol(name) for name in config.protocols or list_protocols()]
    tasks = resolve_tasks(config.tasks)
    sources, absent = open_sources(tasks, config)
    check_writable(config.output_dir)
    accelerator = start_processes()
    job = Run(config, accelerator, Outcome(), Console(main=accelerator.is_main_process))
    job.say.sources(sources, absent)
    for name in config.models:
        try:
            encoder = load(name, config, accelerator.device)
        except (BadModel, NotApplicable) as error:
            if len(config.models) == 1:
                raise
            job.outcome.failures.append((name, "", "model", str(error)))
            job.say.failure(name, str(error))
        else:
            run_model(encoder, tasks, sources, protocols, job)
    if accelerator.is_main_process:
        conclude(job)
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return job.outcome


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


def load(name: str, config: RunConfig, device) -> Encoder:
    """The encoder of that name, on the device; `NotApplicable` when prompts were given for a model that cannot read."""
    from cardiobench.models.load import load_model

    encoder = load_model(name, revision=config.revision, trust_remote_code=config.trust_remote_code)
    if config.prompts and not isinstance(encoder, TextEncoder):
        raise NotApplicable(f"{no_text_tower(encoder)}. Leave --prompts out, or choose a model with text.")
    return encoder.to(device)


def run_model(
    encoder: Encoder, tasks: Sequence[Task], sources: dict[str, Source], protocols: Sequence[EvalProtocol], job: Run
) -> None:
    """All tasks of one model: every dataset is encoded once, then every protocol answers from the stored embeddings."""
    plans = []
    for name, source in sources.items():
        asked = [task for task in tasks if task.dataset == name]
        if source.spec.modality in encoder.modalities:
            plans.append(plan_dataset(encoder, source, asked, job.config))
        elif len(job.config.models) == 1 and job.config.tasks:
            reason = f"the model takes {' and '.join(encoder.modalities)}, {name} is {source.spec.modality}"
            job.outcome.not_applicable += [
                (encoder.name, task.name, p.name, reason) for task in asked for p in protocols
            ]
    job.say.plan(encoder, plans)
    for plan in plans:
        failed = embed(encoder, plan, job)
        job.outcome.failures += [(encoder.name, plan.source.spec.name, name, reason) for name, reason in failed]
        if job.accelerator.is_main_process:
            unread = frozenset(name for name, _ in failed)
            for task in plan.tasks:
                for answerer in protocols:
                    for variant in answerer.variants(task):
                        answer(Cell(encoder, plan, task, answerer, variant, unread, job.config), job)
        job.accelerator.wait_for_everyone()


def embed(encoder: Encoder, plan: DatasetPlan, job: Run) -> list[tuple[str, str]]:
    """Encode what the store lacks, a stride of it on each process.

    Returns:
        (id, reason) of every recording that could not be encoded, the same list on every process.
    """
    from accelerate.utils import gather_object

    from cardiobench.embeddings.extract import default_workers, extract

    accelerator, workers = job.accelerator, job.config.workers
    mine = plan.to_encode[accelerator.process_index :: accelerator.num_processes]
    with job.say.progress(f"{plan.source.spec.name} with {encoder.name}", len(mine)) as advance:
        failed = extract(
            encoder,
            plan.source,
            mine,
            plan.store,
            device=accelerator.device,
            rank=accelerator.process_index,
            batch_size=job.config.batch_size,
            workers=default_workers(accelerator.num_processes) if workers is None else workers,
            advance=advance,
        )
    return sorted((failure.id, failure.reason) for failure in gather_object(failed))


def answer(cell: Cell, job: Run) -> None:
    """One protocol on one task: keep the result that is there if nothing that matters has changed, else make it."""
    kept = None if job.config.overwrite else finished(cell)
    if kept:
        job.outcome.results.append(kept)
        return
    try:
        result, files = work(cell)
    except NotApplicable as error:
        job.outcome.not_applicable.append((cell.encoder.name, cell.task.name, cell.label, str(error)))
    else:
        job.outcome.results.append(result)
        job.outcome.files += files


def conclude(job: Run) -> None:
    """Report, list of failures, table."""
    from cardiobench.report.failures import write_failures
    from cardiobench.report.markdown import find_results, write_page

    folder, outcome = job.config.output_dir, job.outcome
    if outcome.failures:
        outcome.files.append(write_failures(outcome.failures, folder))
    if outcome.results:
        outcome.files += write_page(find_results(folder), folder)
    job.say.outcome(outcome, folder)


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
