"""What stands on the page, part by part, as plain dictionaries that the template and the Markdown twin read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cardiobench.data import catalog
from cardiobench.models.cards import find_card
from cardiobench.report.overview import MARKS, find_task, overview_tables
from cardiobench.report.page import naming as words
from cardiobench.report.plots.style import SavedFigure
from cardiobench.results import formatting as tables
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Collection, Entry, Problem
from cardiobench.results.published import published_scores


@dataclass
class ReportFigures:
    """Pictures by what they are about.

    Attributes:
        of: ("task" or "model", name) -> pictures of results.
        records: number of the record -> its figures.
        beside: records of several models that are shown side by side, and their figures.
        problems: what could not be drawn.
        note: why there are none at all.
    """

    of: dict[tuple[str, str], tuple[SavedFigure, ...]] = field(default_factory=dict)
    records: dict[int, tuple[SavedFigure, ...]] = field(default_factory=dict)
    beside: list[tuple[tuple[AnalysisResult, ...], tuple[SavedFigure, ...]]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    note: str = ""


def content(
    collection: Collection, drawings: ReportFigures, examples: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, Any]:
    """Everything that the page says.

    Args:
        collection: results, records and problems.
        drawings: pictures.
        examples: task -> (title, link) of pages with the worst items.
    """
    by_task, by_model = grouped(collection.entries)
    records = list(enumerate(record for _, record in collection.analyses))
    return {
        "overview_tables": overview_tables(collection.entries),
        "marks": MARKS,
        "counts": counts(collection),
        "minute": [minute_row(own) for own in by_task.values()],
        "tasks": [
            task_part(name, own, drawings, [(n, r) for n, r in records if r.subject == name], examples.get(name, ()))
            for name, own in by_task.items()
        ],
        "models": [
            model_part(name, own, drawings, [(n, r) for n, r in records if name in model_names(r)])
            for name, own in sorted(by_model.items())
        ],
        "across": [record_part(r, drawings.records.get(n, ())) for n, r in records if len(r.models) > 1]
        + [beside_part(own, drawn) for own, drawn in drawings.beside],
        "problems": [*collection.problems, *drawings.problems],
        "note": drawings.note,
        "protocols": sorted({result.label for result in collection.results}),
    }


def grouped(entries: Sequence[Entry]) -> tuple[dict[str, list[Entry]], dict[str, list[Entry]]]:
    """The entries by task and by model."""
    by_task: dict[str, list[Entry]] = {}
    by_model: dict[str, list[Entry]] = {}
    for entry in entries:
        by_task.setdefault(entry.result.task, []).append(entry)
        by_model.setdefault(entry.result.model["name"], []).append(entry)
    return dict(sorted(by_task.items())), by_model


def model_names(record: AnalysisResult) -> list[str]:
    """Names of the models that a record is about."""
    return [str(model.get("name")) for model in record.models]


def counts(collection: Collection) -> dict[str, int]:
    """What a reader wants to know first."""
    results = collection.results
    verdicts = [result.beats_floor.verdict for result in results]
    return {
        "models": len({result.model["name"] for result in results}),
        "tasks": len({result.task for result in results}),
        "scores": len(results),
        "above": verdicts.count("yes"),
        "tied": verdicts.count("tied"),
        "below": verdicts.count("no"),
        "collapsed": sum(result.collapsed for result in results),
        "seen": sum(bool(result.seen_in_pretraining) for result in results),
        "problems": len(collection.problems),
    }


def minute_row(entries: Sequence[Entry]) -> dict[str, Any]:
    """The best result of a task, how sure it is, who is within its interval, and where it fails."""
    results = tables.ordered([entry.result for entry in entries])
    best = next((result for result in results if not result.collapsed), results[0])
    near = {
        result.model["name"]
        for result in results
        if result.model["name"] != best.model["name"]
        and not (result.score.high < best.score.low or result.score.low > best.score.high)
        and not result.collapsed
    }
    gaps = [(breakdown.gap.value, name, breakdown.worst) for name, breakdown in best.groups.items()]
    gap = max((gap for gap in gaps if gap[0] == gap[0]), default=None)
    return {
        **words.score_row(next(entry for entry in entries if entry.result is best)),
        "task": best.task,
        "metric": tables.metric_name(best),
        "near": len(near),
        "weak": f"{gap[1]} {gap[2]}: {tables.number(gap[0], best)} behind the best group"
        if gap
        else "no groups scored",
    }


def task_part(
    name: str,
    entries: Sequence[Entry],
    drawings: ReportFigures,
    records: Sequence[tuple[int, AnalysisResult]],
    examples: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """A task's part of the page."""
    task, results = find_task(name), tables.ordered([entry.result for entry in entries])
    by_result = {id(entry.result): entry for entry in entries}
    first = results[0]
    printed = [row for row in published_scores(name) if row.metric == first.metric]
    return {
        "name": name,
        "title": f"{catalog.spec(task.dataset).title}: {task.name.partition('/')[2]}" if task else name,
        "description": task.description if task else "This version of cardiobench does not know the task.",
        "metric": tables.metric_name(first),
        "better": "higher is better" if first.higher_is_better else "lower is better",
        "floors": [
            (floor.replace("_", " "), tables.number(found.value, first), _answer(found.prediction), found.reason)
            for floor, found in first.floors.items()
        ],
        "data": f"{first.dataset.get('name')}, version {first.dataset.get('version') or 'unknown'}"
        + (", synthetic twin" if first.dataset.get("twin") else ""),
        "rows": [words.score_row(by_result[id(result)]) for result in results],
        "published": [words.published_row(row, first) for row in printed],
        "pictures": drawings.of.get(("task", name), ()),
        "groups": words.group_rows(results),
        "warnings": [(text, who) for _, text, who in tables.warnings(results)],
        "records": [
            record_part(record, drawings.records.get(number, ()))
            for number, record in records
            if len(record.models) == 1
        ],
        "examples": examples,
    }


def _answer(prediction: str | float | None) -> str | None:
    return f"{prediction:.2f}" if isinstance(prediction, float) else prediction


def model_part(
    name: str, entries: Sequence[Entry], drawings: ReportFigures, records: Sequence[tuple[int, AnalysisResult]]
) -> dict[str, Any]:
    """A model's part of the page."""
    results = [entry.result for entry in entries]
    card = find_card(name)
    preprocessing = {
        words.facts(result.model.get("preprocessing")): None for result in results if result.model.get("preprocessing")
    }
    return {
        "name": name,
        "card": card_rows(card) if card else [],
        "preprocessing": list(preprocessing),
        "pictures": drawings.of.get(("model", name), ()),
        # A study of one task stands with its task; here are the others, such as representation.
        "records": [
            record_part(record, drawings.records.get(n, ()) if "/" not in record.subject else ())
            for n, record in records
        ],
        "gaps": words.group_rows(results),
        "stamp": words.stamp_rows(results),
        "covered": len({result.task for result in results}),
        "rows": [words.score_row(entry) | {"task": entry.result.task} for entry in entries],
    }


def card_rows(card) -> list[tuple[str, str]]:
    """Facts of a model card."""
    return [
        ("modality", " + ".join(card.modalities)),
        ("pretraining data", card.pretraining_data),
        ("datasets of this benchmark in it", ", ".join(card.seen) or "none"),
        ("licence", card.licence),
        ("access", card.access),
        ("pinned revision", card.revision or "none"),
        ("embedding", words.facts(dict(card.embedding)) if card.embedding else "see preprocessing"),
        ("text tower", "yes" if card.text else "no"),
        ("own heads", ", ".join(card.native) or "none"),
    ]


def record_part(record: AnalysisResult, drawn: Sequence[SavedFigure]) -> dict[str, Any]:
    """What a study found."""
    return {
        "protocol": record.protocol,
        "subject": record.subject,
        "at_task": bool(find_task(record.subject)) and not drawn,
        "models": ", ".join(model_names(record)),
        "rows": tables.analysis_rows(record),
        "marks": tables.analysis_flags(record),
        "warnings": record.warnings,
        "pictures": drawn,
    }


def beside_part(records: Sequence[AnalysisResult], drawn: Sequence[SavedFigure]) -> dict[str, Any]:
    """What a study found of several models, one after the other."""
    parts = [record_part(record, drawn) for record in records]
    return {
        **parts[0],
        "at_task": False,
        "models": ", ".join(part["models"] for part in parts),
        "rows": [(*row[:3], f"{row[2]}: {row[3]}", *row[4:]) for part in parts for row in part["rows"]],
        "marks": [f"{part['models']}: {mark}" for part in parts for mark in part["marks"]],
        "warnings": list(dict.fromkeys(sentence for part in parts for sentence in part["warnings"])),
    }
