"""Plan the cells of one model: read-outs from its tokens and from those of the baselines."""

from collections.abc import Iterator, Mapping, Sequence

from cardiobench.core.command import command
from cardiobench.core.errors import BadData, MissingData, NotApplicable
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.spec import Task
from cardiobench.extensions.dense.protocol import DensePrediction
from cardiobench.extensions.dense.tokens import FramePlan, LabelledFrames, TokenPlan, labelled_frames, plan_tokens
from cardiobench.models.base import LoadedModel
from cardiobench.models.baselines.pixel_patches import pixel_patches
from cardiobench.models.load import load_model
from cardiobench.runner.cells.frames import FrameCell
from cardiobench.runner.context import RunContext

RANDOM_VIT = "cardiobench/random-vit"
NAMED = 5  # Number of unusable labels for which reasons are printed.


def plan_read_outs(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[DensePrediction],
    context: RunContext,
) -> Iterator[FrameCell]:
    """Yield one cell per read-out of a model.

    Each cell reads the tokens of the model (`""`) and of the baselines. Moving clips have separate tokens; their
    baselines use still frames.

    Args:
        model: Loaded model on its device.
        tasks: All tasks of the run; only segmentation and landmark tasks apply.
        datasets: Mapping from name to locally available dataset.
        protocols: Protocol `dense` with its options.
        context: Run context.
    """
    for protocol in protocols:
        for task in tasks:
            plans = _plan_task(model, task, datasets, protocol, context)
            for read_out in protocol.read_outs(task) if plans else ():
                own = plans
                if read_out.further == "clip":
                    try:
                        moving = plan_tokens(model, plans[""].frames, protocol.full, context, moving=True)
                    except NotApplicable as error:
                        label = f"{protocol.name}.{read_out.name}"
                        context.summary.not_applicable.append((model.name, task.name, label, str(error)))
                        continue
                    own = {**plans, "": moving}
                plan = FramePlan(own, context.shared)
                yield FrameCell(model, protocol, context.config, task.name, (task,), plan, read_out.name)


def _plan_task(
    model: LoadedModel,
    task: Task,
    datasets: Mapping[str, OpenDataset],
    protocol: DensePrediction,
    context: RunContext,
) -> dict[str, TokenPlan]:
    """Return still-frame tokens of the model and of the baselines, or note the reason why there are none."""
    if task.dataset not in datasets or datasets[task.dataset].spec.modality not in model.modalities:
        return {}
    try:
        protocol.check(task)
        frames = labelled_frames(datasets[task.dataset], task, protocol.select, context.config.limit)
        plans = {"": plan_tokens(model, frames, protocol.full, context)}
    except (NotApplicable, MissingData) as error:  # The data may have been prepared before masks were stored.
        context.summary.not_applicable.append((model.name, task.name, protocol.name, str(error)))
        return {}
    except BadData as error:  # The whole label table is unreadable; other tasks continue.
        context.summary.failures.append((model.name, task.dataset, task.target, str(error)))
        context.console.failure(task.name, str(error))
        return {}
    for line in rejection_lines(frames):
        context.console.print(line)
    for floor in floor_models(model, context):
        plans[floor.name.rpartition("/")[2]] = plan_tokens(floor, frames, protocol.full, context)
    return plans


def rejection_lines(frames: LabelledFrames) -> list[str]:
    """Return a message with the number of unusable labels and the first few files and reasons."""
    if not frames.rejected:
        return []
    head = f"! {frames.task.name}: {len(frames.rejected)} labelled frames cannot be used"
    more = f" (the first {NAMED}; all: {command('audit', frames.task.dataset)})" if len(frames.rejected) > NAMED else ""
    reasons = dict.fromkeys(label.reason for label in frames.rejected[:NAMED])
    return [f"{head}{more}:", *(f"  {reason}" for reason in reasons)]


def floor_models(model: LoadedModel, context: RunContext) -> list[LoadedModel]:
    """Return the baselines of a model: raw pixels, and an untrained network unless the model is one."""
    untrained = [] if model.name == RANDOM_VIT else [load_model(RANDOM_VIT, device=context.accelerator.device)]
    return [pixel_patches(), *untrained]
