"""Dense tasks of a run: tokens of the labelled frames are stored, then each read-out of the protocol is evaluated."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cardiobench.core.errors import BadData, MissingData, NotApplicable
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.models.baselines.pixel_patches import pixel_patches
from cardiobench.models.load import load_model
from cardiobench.protocols.dense.protocol import DensePrediction
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.answered import save_answered
from cardiobench.runner.cell import TaskCell, load_or_compute
from cardiobench.runner.context import RunContext
from cardiobench.runner.dense_evaluate import answer_frames
from cardiobench.runner.dense_tokens import (
    FramePlan,
    LabelledFrames,
    TokenPlan,
    encode_frames,
    labelled_frames,
    plan_tokens,
)

RANDOM_VIT = "cardiobench/random-vit"
NAMED = 5  # labels that cannot be used, of which a run prints the reason


def run_dense(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[DensePrediction],
    context: RunContext,
) -> None:
    """Run the dense tasks of one model: encode the frames that are lacking, then evaluate each read-out.

    Args:
        model: loaded, on the device.
        tasks: all of the run; those without masks and landmarks do not apply.
        datasets: name -> dataset whose data is here.
        protocols: `dense`, with its options.
        context: of the run.
    """
    unreadable: dict[tuple[str, Path], frozenset[str]] = {}  # frames that failed are tried once
    for protocol, task, variant, plans in plan_read_outs(model, tasks, datasets, protocols, context):
        for one in plans.values():
            if (task.name, one.store.folder) not in unreadable:
                unreadable[task.name, one.store.folder] = encode_frames(one, context)
        if context.accelerator.is_main_process:
            lost = {name: unreadable[task.name, one.store.folder] for name, one in plans.items()}
            plan = FramePlan(plans, lost, context.dense_floors)
            cell = TaskCell(model, protocol, context.config, task.name, (task,), plan, variant)
            load_or_compute(cell, partial(_evaluate, plan=plan, protocol=protocol), context)
        context.accelerator.wait_for_everyone()


def plan_read_outs(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[DensePrediction],
    context: RunContext,
) -> Iterator[tuple[DensePrediction, Task, str, dict[str, TokenPlan]]]:
    """Yield (protocol, task, variant, plans) of each read-out of one model; the arguments are those of `run_dense`.

    The plans are the tokens of the model (`""`) and of the floors. A moving clip has tokens of its own, and the floors of
    stills.
    """
    for protocol in protocols:
        for task in tasks:
            plans = _plan_task(model, task, datasets, protocol, context)
            for read_out in protocol.read_outs(task) if plans else ():
                own = plans
                if read_out.further == "clip":
                    try:
                        moving = plan_tokens(model, plans[""].frames, protocol, context, moving=True)
                    except NotApplicable as error:
                        label = f"{protocol.name}.{read_out.name}"
                        context.summary.not_applicable.append((model.name, task.name, label, str(error)))
                        continue
                    own = {**plans, "": moving}
                yield protocol, task, read_out.name, own


def _plan_task(
    model: LoadedModel,
    task: Task,
    datasets: Mapping[str, OpenDataset],
    protocol: DensePrediction,
    context: RunContext,
) -> dict[str, TokenPlan]:
    """Return the tokens of stills of the model and of the floors; none, with the reason noted, where there are none."""
    if task.dataset not in datasets or datasets[task.dataset].spec.modality not in model.modalities:
        return {}
    try:
        protocol.check(task)
        frames = labelled_frames(datasets[task.dataset], task, protocol, context.config.limit)
        plans = {"": plan_tokens(model, frames, protocol, context)}
    except (NotApplicable, MissingData) as error:  # prepared before masks were kept
        context.summary.not_applicable.append((model.name, task.name, protocol.name, str(error)))
        return {}
    except BadData as error:  # a table of labels as a whole; other tasks go on
        context.summary.failures.append((model.name, task.dataset, task.target, str(error)))
        context.console.failure(task.name, str(error))
        return {}
    for line in rejection_lines(frames):
        context.console.print(line)
    for floor in floor_models(model, context):
        plans[floor.name.rpartition("/")[2]] = plan_tokens(floor, frames, protocol, context)
    return plans


def _evaluate(cell: TaskCell, plan: FramePlan, protocol: DensePrediction) -> tuple[ScoreResult, list[Path]]:
    started = time.perf_counter()
    return save_answered(cell, answer_frames(cell, plan, protocol), started)


def rejection_lines(frames: LabelledFrames) -> list[str]:
    """Return what is said of the labels that cannot be used: how many, and of the first few the file and the reason."""
    if not frames.rejected:
        return []
    head = f"! {frames.task.name}: {len(frames.rejected)} labelled frames cannot be used"
    more = f" (the first {NAMED}; all: cardiobench audit {frames.task.dataset})" if len(frames.rejected) > NAMED else ""
    reasons = dict.fromkeys(label.reason for label in frames.rejected[:NAMED])
    return [f"{head}{more}:", *(f"  {reason}" for reason in reasons)]


def floor_models(model: LoadedModel, context: RunContext) -> list[LoadedModel]:
    """Return what a model is compared with: raw pixels, and a network that was never trained unless it is that one."""
    untrained = [] if model.name == RANDOM_VIT else [load_model(RANDOM_VIT, device=context.accelerator.device)]
    return [pixel_patches(), *untrained]
