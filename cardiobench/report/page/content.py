"""Build the page content as plain dictionaries for the template."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cardiobench.data import catalog
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.report import costs, noise, task_means
from cardiobench.report.beside_references import beside_references
from cardiobench.report.overview import (
    MARKS,
    NOT_APPLICABLE,
    OverviewTable,
    ScoreCell,
    find_task,
    overview_tables,
    ranked,
)
from cardiobench.report.page import naming
from cardiobench.report.plots.draw import ReportFigures, side_by_side
from cardiobench.report.plots.figure import SavedFigure
from cardiobench.results import formatting as tables
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.anchors import anchors
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import Verdict
from cardiobench.scoring.unpaired import decide_unpaired


def page_content(
    collection: Collection, figures: ReportFigures, examples: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, Any]:
    """Return the complete page content for the template.

    Args:
        collection: Results, analyses and problems.
        figures: Figures from `draw_report`.
        examples: Mapping from task to (title, link) of pages with the worst examples.
    """
    by_task: dict[str, list[ResultEntry]] = {}
    by_model: dict[str, list[ResultEntry]] = {}
    for entry in collection.entries:
        by_task.setdefault(entry.result.task, []).append(entry)
        by_model.setdefault(entry.result.model["name"], []).append(entry)
    analyses = [
        (record, analysis_part([record], figures.of("analysis", str(path)))) for path, record in collection.analyses
    ]
    several = [
        analysis_part(records, figures.of("side_by_side", name)) for name, records in side_by_side(collection).items()
    ]
    beside = beside_references(collection.entries)
    overview = overview_tables(collection.entries)
    shared = tables.data_warnings(collection.results)
    return {
        "overview_tables": overview,
        "mean_columns": task_means.COLUMNS,
        "means": task_means.mean_rows(collection.entries),
        **signs_in_use(overview),
        "counts": counts(collection),
        "noise": noise.false_verdicts(collection.results),
        "exploratory_meaning": noise.EXPLORATORY,
        "floor_meaning": tables.FLOOR_MEANING,
        "above_meaning": Verdict.ABOVE.meaning,
        "minute": sorted(
            (minute_row(entries) for _, entries in sorted(by_task.items())), key=lambda row: row["generated"]
        ),
        "tasks": [
            task_part(entries, figures.of("task", name), examples.get(name, ()), shared)
            | {"analyses": [part for r, part in analyses if r.subject == name and len(r.models) == 1]}
            for name, entries in sorted(by_task.items())
        ],
        "models": [
            model_part(name, entries, figures.of("model", name), [one.text for one in beside if one.model == name])
            | {
                "analyses": [
                    part | {"figures": (), "at_task": True} if record.subject in by_task else part
                    for record, part in analyses
                    if name in _names(record)
                ]
            }
            for name, entries in sorted(by_model.items())
        ],
        "data_warnings": shared,
        "costs": costs.cost_rows(collection.results),
        "cost_columns": costs.COLUMNS,
        "across": [part for record, part in analyses if len(record.models) > 1] + several,
        "problems": [*collection.problems, *figures.problems],
        "note": figures.note,
        "protocols": sorted({result.label for result in collection.results}),
    }


def signs_in_use(overview: Sequence[OverviewTable]) -> dict[str, Any]:
    """Return the marks used in the overview in the order of `MARKS`, and whether any cell is not applicable."""
    cells = [cell for table in overview for row in table.rows for cell in row.cells]
    used = {mark for cell in cells if isinstance(cell, ScoreCell) for mark in cell.marks}
    return {
        "marks": {name: sign for name, sign in MARKS.items() if name in used},
        "not_applicable": any(isinstance(cell, str) and cell.startswith(NOT_APPLICABLE) for cell in cells),
    }


def _names(record: AnalysisResult) -> list[str]:
    return [str(model["name"]) for model in record.models]


def counts(collection: Collection) -> dict[str, Any]:
    """Return the counts in the page header: verdicts and flags of the scores on patients, or of all if there are none."""
    results = collection.results
    real = [result for result in results if not result.generated]
    flagged = real or results
    words: Counter[Verdict] = Counter(result.verdict.word for result in real)
    return {
        "models": len({result.model["name"] for result in results}),
        "tasks": len({result.task for result in real}),
        "scores": len(real),
        "generated": len(results) - len(real),
        "verdicts": [(verdict, words[verdict]) for verdict in Verdict],
        "collapsed": sum(result.collapsed for result in flagged),
        "seen": sum(bool(result.seen_in_pretraining) for result in flagged),
        "exploratory": sum(result.verdict.exploratory and not result.outdated for result in flagged),
    }


def minute_row(entries: Sequence[ResultEntry]) -> dict[str, Any]:
    """Return the best result of a task, its uncertainty, the number of models that cannot be told apart from it, and the weakest group."""
    by_result = {id(entry.result): entry for entry in entries}
    results = tables.ordered([entry.result for entry in entries])
    best = best_result(results)
    others = [one for one in results if one is not best and not one.collapsed and ranked(one)]
    standings = decide_unpaired(list(map(str, range(1 + len(others)))), [{one.task: one} for one in (best, *others)])
    near = {
        one.model["name"]
        for one, apart in zip(others, standings.better[0, 1:] | standings.better[1:, 0], strict=True)
        if not apart
    }
    near -= {best.model["name"]}
    return {
        **naming.score_row(by_result[id(best)]),
        "task": best.task,
        "metric": tables.metric_name(best),
        "near": len(near),
        "generated": best.generated,
        "weak": widest_gap(best),
    }


def best_result(results: Sequence[ScoreResult]) -> ScoreResult:
    """Return the first result that is not collapsed, or the first of all."""
    return next((result for result in results if not result.collapsed), results[0])


def widest_gap(result: ScoreResult) -> str:
    """Describe the subgroup gap with the largest excess, with the worst group if there is a gap."""
    gaps = {name: breakdown for name, breakdown in result.groups.items() if not math.isnan(breakdown.gap.excess)}
    if not gaps:
        return "no groups scored"
    name = max(gaps, key=lambda name: gaps[name].gap.excess)
    gap, column = gaps[name].gap, name.replace("_", " ")
    if not (worst := tables.worst_group(gaps[name], result)):
        return f"{column}: no gap"
    value, expected = tables.difference(gap.value, result), tables.number(gap.expected, result)
    return f"{column}: {worst} worst, gap {value} ({expected} expected), p = {tables.p_value(gap.p_adjusted)}"


def task_part(
    entries: Sequence[ResultEntry],
    figures: Sequence[SavedFigure],
    examples: Sequence[tuple[str, str]],
    shared: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return a task's section without its analyses.

    Args:
        entries: Results of the task.
        figures: Figures of the task.
        examples: Titles and addresses of pages with examples.
        shared: Mapping from dataset to warnings that the page gives once for all its tasks.
    """
    results = tables.ordered([entry.result for entry in entries])
    by_result = {id(entry.result): entry for entry in entries}
    first = results[0]
    said = [sentence for one in results for sentence in shared.get(str(one.dataset.get("name")), ())]
    task, others = find_task(first.task), anchors(first.task)
    return {
        "name": first.task,
        "title": first.task
        if task is None or catalog.spans_datasets(task)
        else f"{catalog.spec(task.dataset).title}: {task.target}",
        "description": task.description if task else "This version of cardiobench does not know the task.",
        "metric": tables.metric_name(first),
        "better": "higher is better" if first.higher_is_better else "lower is better",
        "floors": [
            (name.replace("_", " "), tables.number(floor.value, first), _prediction(floor.prediction), floor.reason)
            for name, floor in first.floors.items()
            if name != "best_uninformed"
        ],
        "floor": f"{tables.floor(first)} ({first.floor.reached_by or first.floor.reason}): {tables.FLOOR_MEANING}",
        "ceilings": () if first.generated else others.ceilings,
        "metrics": naming.metric_table(results),
        "further": naming.further_table(results),
        "generated": first.generated,
        "data": f"{first.dataset.get('name')}, version {first.dataset.get('version') or 'unknown'}"
        + (", synthetic twin" if first.dataset.get("twin") else ""),
        "rows": [naming.score_row(by_result[id(result)]) for result in results],
        "elsewhere": tables.ELSEWHERE
        if len({result.external or result.given_embeddings for result in results}) == 2
        else "",
        "published": [naming.published_row(row, first) for row in others.published if row.metric == first.metric],
        "figures": figures,
        "groups": [
            row
            for row in naming.group_rows(results)
            if row["sure"] or row["model"] == best_result(results).model["name"]
        ],
        "warnings": [(one.sentence, ", ".join(one.who)) for one in tables.warnings(results, said)],
        "notes": tables.notes(results),
        "examples": examples,
    }


def _prediction(prediction: str | float | None) -> str | None:
    return f"{prediction:.2f}" if isinstance(prediction, float) else prediction


def model_part(
    name: str, entries: Sequence[ResultEntry], figures: Sequence[SavedFigure], references: Sequence[str]
) -> dict[str, Any]:
    """Return a model's section without its analyses."""
    results = [entry.result for entry in entries]
    card = find_card(name)
    preprocessing = [naming.indented_json(spec) for r in results if (spec := r.model.get("preprocessing"))]
    return {
        "name": name,
        "card": card_rows(card) if card else [],
        "preprocessing": list(dict.fromkeys(preprocessing)),
        "figures": figures,
        "gaps": [row for row in naming.group_rows(results) if row["sure"]],
        "stamp": naming.stamp_rows(results),
        "references": references,
        "covered": len({result.task for result in results}),
        "rows": [naming.score_row(entry) | {"task": entry.result.task} for entry in entries],
    }


def card_rows(card: ModelCard) -> list[tuple[str, str]]:
    """Return facts of a model card as pairs of name and value."""
    return [
        ("modality", " + ".join(card.modalities)),
        ("pretraining data", card.pretraining_data),
        ("datasets of this benchmark in it", card.seen_text),
        ("licence", card.licence),
        ("access", card.access),
        ("pinned revision", card.revision or "none"),
        ("embedding", naming.indented_json(dict(card.embedding)) if card.embedding else "see preprocessing"),
        ("text tower", "yes" if card.text else "no"),
        ("own heads", ", ".join(card.native) or "none"),
    ]


def analysis_part(records: Sequence[AnalysisResult], figures: Sequence[SavedFigure]) -> dict[str, Any]:
    """Return the values of an analysis for one or several models."""
    several = len(records) > 1

    def of_model(record: AnalysisResult, text: str) -> str:
        return f"{', '.join(_names(record))}: {text}" if several else text

    return {
        "protocol": records[0].protocol,
        "subject": records[0].subject,
        "at_task": False,
        "models": ", ".join(name for record in records for name in _names(record)),
        "rows": [
            (of_model(record, name), value, interval, n)
            for record in records
            for _, _, _, name, value, interval, n, _ in tables.analysis_rows(record)
        ],
        "marks": [of_model(record, mark) for record in records for mark in tables.analysis_flags(record)],
        "warnings": list(dict.fromkeys(sentence for record in records for sentence in record.warnings)),
        "figures": figures,
    }
