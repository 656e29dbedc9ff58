"""Run analyses of a model from its embeddings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cardiobench.data.spec import Task
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import AnalysisProtocol, Perturbation
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.analysis import AnalysisCell, open_analysis, save_comparison
from cardiobench.runner.compute import compute_all
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import encode_missing
from cardiobench.runner.plan import DatasetPlan, plan_dataset
from cardiobench.tasks.task import lacks_metrics


def analyze_model(
    model: LoadedModel,
    protocols: Iterable[AnalysisProtocol],
    plans: Mapping[str, DatasetPlan],
    unreadable: Mapping[str, frozenset[str]],
    context: RunContext,
) -> list[AnalysisCell]:
    """Run all analyses of one model, in parallel where embeddings suffice, after encoding perturbed recordings.

    Args:
        model: Loaded model.
        protocols: Analysis protocols.
        plans: Mapping from dataset to plan with the model's embeddings.
        unreadable: Mapping from dataset to ids of recordings that could not be read or encoded.
        context: Run context.

    Returns:
        Cells with results, for comparisons between models; empty except on the main process.
    """
    cells: list[AnalysisCell] = []
    for protocol, subject, members, changed in plan_subjects(model, protocols, plans, context):
        perturbed: dict[tuple[str, str], DatasetPlan] = {}
        lost = {task.dataset: unreadable[task.dataset] for task in members}
        for name, jobs in changed.items():
            lost[name] |= encode_missing(model, jobs, context, clean=plans[name])
            perturbed |= {(name, perturbation.key): plan for perturbation, plan in jobs.items()}
        cells.append(AnalysisCell(model, protocol, context.config, subject, members, plans, perturbed, lost))
    done: list[AnalysisCell] = []
    if context.accelerator.is_main_process:
        for line in prices(cells, context.summary.results):
            context.console.print(line)
        records = compute_all(cells, context, f"analyses of {model.name}")
        for cell, record in zip(cells, records, strict=True):
            if record:
                done.append(cell)
                for one in cell.scores(record):
                    context.summary.add(ScoreResult.load(one.path), earlier=context.summary.is_earlier(record))
    context.accelerator.wait_for_everyone()
    return done


def prices(cells: Iterable[AnalysisCell], results: Sequence[ScoreResult]) -> list[str]:
    """Return lines about the cost of pending analyses.

    Args:
        cells: Analysis cells.
        results: Existing results, whose durations are used for the estimate.
    """
    lines: list[str] = []
    for cell in cells:
        model = cell.model.name, cell.model.revision
        own = [one for one in results if (one.model["name"], one.model.get("revision")) == model]
        own = [one for one in own if one.task == cell.subject]
        seconds = {one.label: float(one.stamp["seconds"]) for one in own}
        said = cell.protocol.price(open_analysis(cell), cell.model.encoder, seconds)
        if said and (cell.config.overwrite or not cell.load_cached()):
            lines += said
    return lines


def plan_subjects(
    model: LoadedModel,
    protocols: Iterable[AnalysisProtocol],
    plans: Mapping[str, DatasetPlan],
    context: RunContext,
) -> Iterator[tuple[AnalysisProtocol, str, tuple[Task, ...], dict[str, dict[Perturbation, DatasetPlan]]]]:
    """Yield (protocol, subject, tasks, perturbed) for each analysis of one model.

    `perturbed` maps dataset to perturbation to plan. Plans are made on demand, so that recordings encoded for an
    earlier analysis are reused.
    """
    real, generated = (
        [task for plan in plans.values() for task in plan.tasks if plan.dataset.generated == kind]
        for kind in (False, True)
    )
    for protocol in protocols:
        context.summary.not_applicable += [
            (
                model.name,
                task.name,
                protocol.name,
                f"{protocol.name} describes recordings, not {task.rules.wanted(task)}",
            )
            for task in (*real, *generated)
            if task.rules.answer not in protocol.forms
        ]
        described = ([task for task in tasks if task.rules.answer in protocol.forms] for tasks in (real, generated))
        for subject, members in unmixed_subjects(protocol, *described).items():
            if context.config.shard and "/" not in subject and subject not in plans:
                continue  # Some datasets of this label belong to other shards.
            if model.vectors and protocol.perturbations(members):
                context.summary.not_applicable.append((model.name, subject, protocol.name, model.vectors.no_encoder))
                continue
            names = dict.fromkeys(task.dataset for task in members)
            perturbed = {name: _plan_perturbed(model, protocol, plans[name], members, context) for name in names}
            yield protocol, subject, members, {name: jobs for name, jobs in perturbed.items() if jobs}


def unmixed_subjects(
    protocol: AnalysisProtocol, real: Sequence[Task], generated: Sequence[Task]
) -> dict[str, tuple[Task, ...]]:
    """Return the subjects of an analysis, without mixing real and generated recordings.

    If a subject, such as a label across datasets, has both, only the real ones are used.
    """
    return {**protocol.subjects(generated), **protocol.subjects(real)}


def _plan_perturbed(
    model: LoadedModel, protocol: AnalysisProtocol, plan: DatasetPlan, tasks: Sequence[Task], context: RunContext
) -> dict[Perturbation, DatasetPlan]:
    members = [task for task in tasks if task.dataset == plan.dataset.spec.name]
    return {
        perturbation: plan_dataset(
            model, plan.dataset, members, context.config, perturbation, generation=plan.store.generation
        )
        for perturbation in protocol.perturbations(members)
    }


def compare_models(cells: Sequence[AnalysisCell], context: RunContext) -> None:
    """Compare models with the same analysis of the same subject, if the protocol supports this."""
    groups: dict[tuple[str, str], list[AnalysisCell]] = {}
    for cell in cells:
        groups.setdefault((cell.label, cell.subject), []).append(cell)
    for (label, subject), group in groups.items():
        protocol = group[0].protocol
        if len(group) > 1 and (told := lacks_metrics("the comparison of models", protocol.comparison_formulas)):
            context.summary.not_applicable.append((", ".join(cell.model.name for cell in group), subject, label, told))
            continue
        output = protocol.compare_models(list(map(open_analysis, group))) if len(group) > 1 else None
        if output:
            context.summary.add(*save_comparison(output, group))
