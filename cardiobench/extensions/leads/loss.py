"""Compute the paired loss of lead sets relative to twelve leads from stored results."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.core.conditions import join_parts, parse_condition, split_parts
from cardiobench.core.errors import BadData
from cardiobench.core.io import sha256_of_json, to_plain
from cardiobench.core.versions import component_version
from cardiobench.extensions.leads.lead_set import NAME, LeadSet, is_lead_set, parse_leads
from cardiobench.report.contests import predictions_of
from cardiobench.report.plots import save_figures
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import ResultEntry
from cardiobench.results.paths import predictions_path, result_path
from cardiobench.results.provenance import stamp
from cardiobench.results.score_result import Estimate, ScoreResult
from cardiobench.runner.cells.base import KEY_DIGITS
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.scoring.compare import compare

COMPONENT = "loss of leads"
VERSION = 2

TWELVE = "12 leads"
SAME = ("name", "version", "digest", "limit")
"""Facts of the dataset that compared results must share."""


@dataclass(frozen=True)
class LeadResult:
    """Stored result of a lead set.

    Attributes:
        asked: Lead set; None for twelve leads.
        path: Path of the result.
        result: Loaded result.
    """

    asked: LeadSet | None
    path: Path
    result: ScoreResult


def compare_lead_sets(cells: Iterable[Cell], context: RunContext) -> None:
    """Save losses for each task with results of twelve and fewer leads."""
    by_path: dict[Path, list[Cell]] = {}
    for cell in cells:
        by_path.setdefault(result_path(cell.folder, NAME, cell.task.name), []).append(cell)
    for path, members in by_path.items():
        groups = [found for one in _plain_labels(members) for found in [_lead_sets(members[0], one)] if len(found) > 1]
        if groups:
            record, files = _load_or_compare(path, groups, members[0], context)
            context.summary.add(record, files, earlier=not files)


def _plain_labels(cells: Iterable[Cell]) -> list[str]:
    """Return protocols and variants without lead sets."""
    return list(dict.fromkeys(split_label(cell.label)[0] for cell in cells))


def split_label(label: str) -> tuple[str, LeadSet | None]:
    """Split a variant into protocol with variant and lead set; None for twelve leads."""
    parts, asked = split_parts(label), None
    for part in parts[1:]:
        one = parse_condition(part)
        if one and one.name == NAME and is_lead_set(one.value):
            asked = parse_leads(one.value)
            parts.remove(part)
    return join_parts(parts), asked


def _lead_sets(cell: Cell, plain: str) -> list[LeadResult]:
    """Return comparable results of a task and protocol, from twelve leads to the fewest.

    The list is empty without a result of twelve leads.
    """
    found = [one for one in _results(cell) if split_label(one.result.label)[0] == plain]
    whole = next((one for one in found if one.asked is None), None)
    if whole is None:
        return []
    fewer = [one for one in found if one.asked is not None and _alike(one.result, whole.result)]
    fewer.sort(key=lambda one: (-one.asked.independent, -len(one.asked.leads), one.asked.leads, one.asked.zeros))  # type: ignore[union-attr]
    return [whole, *fewer]


def _results(cell: Cell) -> Iterator[LeadResult]:
    if not cell.folder.is_dir():  # No protocol has a result.
        return
    for folder in sorted(cell.folder.iterdir()):
        path = result_path(cell.folder, folder.name, cell.task.name)
        if not path.is_file() or folder.name == NAME:
            continue
        try:
            result = ScoreResult.load(path)
        except BadData:  # The file is an analysis or is damaged; the report lists damaged files.
            continue
        yield LeadResult(split_label(result.label)[1], path, result)


def _alike(one: ScoreResult, other: ScoreResult) -> bool:
    """Return whether two results share data, draws and rules, so that only the leads differ."""
    facts = [
        [one_.dataset.get(name) for name in SAME] + [one_.rules, one_.stamp.get("seed"), one_.stamp.get("code")]
        for one_ in (one, other)
    ]
    return to_plain(facts[0]) == to_plain(facts[1])


def _load_or_compare(
    path: Path, groups: list[list[LeadResult]], cell: Cell, context: RunContext
) -> tuple[AnalysisResult, list[Path]]:
    keys = [(one.result.stamp.get("key"), one.result.stamp.get("recordings")) for group in groups for one in group]
    key = sha256_of_json([component_version(compare_lead_sets), keys, cell.config.resamples, cell.config.seed])[
        :KEY_DIGITS
    ]
    cached = None if context.config.overwrite else AnalysisResult.load_cached(path, key)
    if cached is not None:
        return cached.in_suite(context.config.suite, path), []
    rows = [row for group in groups for row in compared(group, cell.config.resamples, cell.config.seed)]
    first = groups[0][0].result
    record = AnalysisResult(
        protocol=NAME,
        subject=cell.task.name,
        tasks=(cell.task.name,),
        values={
            f"{row['by']}, {row['leads']} ({row['taken']}): loss of {first.metric}": row["loss"]
            for row in rows
            if row["count"] < 12
        },
        tables={NAME: pd.DataFrame([_flat(row) for row in rows])},
        models=(first.model,),
        datasets=(first.dataset,),
        generated=first.generated,
        seen_in_pretraining={str(first.dataset["name"]): first.seen_in_pretraining},
        warnings=tuple(dict.fromkeys(text for group in groups for text in group[0].result.warnings)),
        stamp=stamp(key=key, seed=cell.config.seed, resamples=cell.config.resamples),
    )
    record.save(path)
    return record, [*record.files(path), *save_figures(record, path)]


def compared(group: list[LeadResult], resamples: int, seed: int) -> list[dict[str, Any]]:
    """Return scores and losses relative to twelve leads; positive losses are worse.

    Args:
        group: Results of one task and protocol, twelve leads first.
        resamples: Number of bootstrap resamples.
        seed: Random seed of the bootstrap.
    """
    whole, rows = group[0].result, []
    answers = [predictions_of(ResultEntry(one.path, one.result, predictions_path(one.path))) for one in group]
    for one, fewer in zip(group, answers, strict=True):
        score = one.result.score
        loss = Estimate(0.0, 0.0, 0.0, score.n, score.n_patients)
        if one.asked is not None:
            first, second = (answers[0], fewer) if whole.higher_is_better else (fewer, answers[0])
            found = compare(first, second, resamples=resamples, seed=seed)
            loss = Estimate(found.difference, found.low, found.high, found.n, found.n_patients)
        rows.append(
            {"by": split_label(one.result.label)[0], **_leads_of(one), "score": score, "loss": loss, "whole": whole}
        )
    return rows


def _leads_of(one: LeadResult) -> dict[str, Any]:
    if one.asked is None:
        return {"leads": TWELVE, "count": 12, "taken": "all", "no_new_information": ""}
    facts = one.result.options
    return {
        "leads": " ".join(one.asked.leads),
        "count": one.asked.independent,
        "taken": facts.get("leads_taken", ""),
        "no_new_information": facts.get("leads_computed", ""),
    }


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a table row with interval columns, metric, unit, direction and floor."""
    whole: ScoreResult = row["whole"]
    ends = {f"{name}{end}": getattr(row[name], part) for name in ("score", "loss") for end, part in ENDS.items()}
    plain = {name: row[name] for name in ("by", "leads", "count", "taken", "no_new_information")}
    facts = {"n": row["loss"].n, "patients": row["loss"].n_patients, "floor": whole.floor.value, "metric": whole.metric}
    return plain | ends | facts | {"unit": whole.unit, "better": "higher" if whole.higher_is_better else "lower"}


ENDS = {"": "value", "_low": "low", "_high": "high"}
