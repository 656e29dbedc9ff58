"""Run analyses of a model from its embeddings."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cardiobench.core.io import sha256_of_json
from cardiobench.core.libraries import as_text, library_warnings, merged
from cardiobench.data.spec import Task
from cardiobench.embeddings.elsewhere import NO_ENCODER, GivenEmbeddings
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol, Perturbation, collapse_warnings
from cardiobench.protocols.base import TaskData
from cardiobench.report.plots import save_figures
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.context import PATIENT_IS_RECORD
from cardiobench.results.paths import folder_name, result_path
from cardiobench.results.provenance import stamp
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.answered import save_answered
from cardiobench.runner.cell import KEY_DIGITS, SCORED, AnalysisCell, profile_fact
from cardiobench.runner.compute import check_applies
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import encode_missing
from cardiobench.runner.evaluate import answer_recordings
from cardiobench.runner.parallel import compute_apart, settle
from cardiobench.runner.plan import DatasetPlan, plan_dataset
from cardiobench.runner.recent import parts_of
from cardiobench.runner.references import first_patients, limited_references


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
        outcomes = compute_apart(cells, run_analysis, context, f"analyses of {model.name}")
        for n, cell in enumerate(cells):
            if record := settle(cell, outcomes.get(n), run_analysis, context):
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
        own = [one for one in results if one.task == cell.subject and one.model["name"] == cell.model.name]
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
            if isinstance(model.encoder, GivenEmbeddings) and protocol.perturbations(members):
                context.summary.not_applicable.append((model.name, subject, protocol.name, NO_ENCODER))
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
    for group in groups.values():
        output = group[0].protocol.compare_models(list(map(open_analysis, group))) if len(group) > 1 else None
        if output:
            context.summary.add(*save_comparison(output, group))


def run_analysis(cell: AnalysisCell) -> tuple[AnalysisResult, list[Path]]:
    """Run an analysis, score its predictions, and save results and figures.

    Returns:
        Result and paths of the written files.

    Raises:
        NotApplicable: The protocol does not apply to the model.
    """
    started = time.perf_counter()
    check_applies(cell)
    analysis = open_analysis(cell)
    output = cell.protocol.analyze(analysis, cell.model.encoder)
    output = replace(output, warnings=(*collapse_warnings(analysis), *output.warnings))
    written: list[Path] = []
    for one in output.predictions:
        scored = cell.score_cell(one.task, one.variant)
        answered = answer_recordings(scored, analysis.data(one.task), one.output)
        written += save_answered(scored, answered, started)[1]
    names = [(one.task.name, one.variant) for one in output.predictions]
    if names:
        output = replace(output, options={**output.options, SCORED: names})
    result, files = _save(output, [cell], cell.path, cell.key)
    return result, [*files, *written]


def save_comparison(output: AnalysisOutput, cells: Sequence[AnalysisCell]) -> tuple[AnalysisResult, list[Path]]:
    """Save the results of an analysis across models next to the model folders.

    Returns:
        Result and paths of the written files.
    """
    first = cells[0]
    names = "+".join(sorted(folder_name(cell.model.name) for cell in cells))
    digest = hashlib.sha256(names.encode()).hexdigest()[:12]
    path = result_path(first.config.output_dir / "across" / digest, first.label, first.subject)
    return _save(output, cells, path, sha256_of_json(sorted(cell.key for cell in cells))[:KEY_DIGITS])


def open_analysis(cell: AnalysisCell) -> Analysis:
    """Return the data of a cell for the protocol: embeddings, labels and references, read on demand."""

    def open_task(task: Task, perturbation: Perturbation | None) -> TaskData:
        plan = cell.plan(task, perturbation)
        rows = first_patients(plan.dataset.task_rows(task), cell.config.limit)
        rows = rows if perturbation is None else perturbation.rows(rows)
        rows = rows[~rows["id"].isin(cell.unreadable.get(task.dataset, frozenset()))].reset_index(drop=True)
        embeddings = plan.store.load(rows["id"], rows["fingerprint"])
        model = cell.model
        data = TaskData(task, rows, embeddings, model.pooling, cell.config.prompts, model.several_vectors)
        if not cell.protocol.keeps_training:
            return data
        return replace(data, work=cell.work, parts_of=partial(parts_of, model, plan.dataset))

    return Analysis(
        cell.subject,
        cell.tasks,
        cell.model.facts,
        cell.config.seed,
        cell.config.resamples,
        open_task,
        lambda task: limited_references(cell.plan(task).dataset, task, cell.config.limit),
    )


def _save(
    output: AnalysisOutput, cells: Sequence[AnalysisCell], path: Path, key: str
) -> tuple[AnalysisResult, list[Path]]:
    first, libraries = cells[0], _libraries(cells)
    suite = {"suite": first.config.suite} if first.config.suite else {}
    facts = {**suite, **profile_fact(first.config), **first.provenance(), "key": key, "libraries": as_text(libraries)}
    result = AnalysisResult(
        protocol=first.protocol.name,
        subject=first.subject,
        tasks=tuple(task.name for task in first.tasks),
        values=output.values,
        tables=output.tables,
        options={**first.protocol.get_params(), **output.options},
        models=tuple(cell.model.facts for cell in cells),
        datasets=tuple(_dataset_facts(first)),
        generated=any(dataset.generated for dataset in first.datasets.values()),
        seen_in_pretraining={name: first.model.saw(name) for name in first.datasets},
        warnings=(*output.warnings, *_warnings(cells), *library_warnings(libraries)),
        stamp=stamp(seed=first.config.seed, resamples=first.config.resamples, **facts),
    )
    result.save(path)
    return result, [*result.files(path), *save_figures(result, path)]


def _libraries(cells: Sequence[AnalysisCell]) -> dict[str, tuple[str, ...]]:
    """Return the library versions used for the inputs of the cells, including perturbed recordings."""
    plans = [plan for cell in cells for plan in (*cell.plans.values(), *cell.perturbed.values())]
    return merged(one for plan in plans for one in plan.store.library_sets)


def _dataset_facts(cell: AnalysisCell) -> list[dict[str, Any]]:
    return [{**dataset.facts, "limit": cell.config.limit} for dataset in cell.datasets.values()]


def _warnings(cells: Sequence[AnalysisCell]) -> list[str]:
    first = cells[0]
    generated = [name for name, dataset in first.datasets.items() if dataset.generated]
    limit = first.config.limit
    return [
        *dict.fromkeys(warning for cell in cells for warning in cell.model.warnings),
        *([f"generated recordings, which say nothing about patients: {', '.join(generated)}"] if generated else []),
        *([PATIENT_IS_RECORD] if any(dataset.spec.patient_is_record for dataset in first.datasets.values()) else []),
        *([f"only the first {limit} patients of each split were used"] if limit else []),
    ]
