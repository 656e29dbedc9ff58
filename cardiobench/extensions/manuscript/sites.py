"""Score each site of a task, or each dataset with the same target, and combine them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadConfig, BadData, BadPredictions, MissingData, first_n
from cardiobench.core.registry import look_up
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.extensions.manuscript.meta import FEWEST, Summary, summarize
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.number import Number
from cardiobench.report.contests import contest_of, model_names, predictions_of
from cardiobench.report.overview import ranked
from cardiobench.results.collect import Problem, ResultEntry, collect
from cardiobench.results.estimate import Estimate
from cardiobench.scoring.ranks import Contest
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.groups import in_order
from cardiobench.tasks.task import Group

UNKNOWN = "unknown"
COLUMNS = ("model", "protocol", "site", "score", "95 % interval", "n", "patients", "in the summary")
EXPLAINED = (
    "Summary: random effects over sites (Paule and Mandel; interval of Hartung, Knapp, Sidik and Jonkman). Prediction interval: "
    "where the score of a further site lies, if it is like these (Nagashima et al. 2019). Shares are combined on the logit scale, errors on the log scale."
)


@dataclass(frozen=True)
class SiteScores:
    """Scores of one model at all sites.

    Attributes:
        model: Name of the model.
        protocol: Protocol and variant.
        number: Facts about the ranking metric.
        unit: Unit of the label.
        sites: Site -> score.
        left_out: Site -> reason why it is not in the summary.
        summary: Summary; None with `reason`.
        reason: Reason for a missing summary or prediction interval; empty otherwise.
        generated: Whether the recordings are generated.
    """

    model: str
    protocol: str
    number: Number
    unit: str
    sites: dict[str, Estimate]
    left_out: dict[str, str]
    summary: Summary | None
    reason: str = ""
    generated: bool = False

    @property
    def caption(self) -> str:
        """Caption of the forest plot."""
        patients = sum(one.n_patients for one in self.sites.values())
        return (
            f"{self.model}, {self.protocol}, by site: lines are 95 % intervals over patients, n = {patients} patients of "
            f"{len(self.sites)} sites; diamonds: the summary and, for a further site, the prediction interval; hollow "
            "circles: not in the summary."
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells for `COLUMNS`: sites, then the summary and the prediction interval."""
        key = self.model, self.protocol
        found: list[tuple[str, ...]] = [
            (
                *key,
                site,
                *self._shown(one.value, one.low, one.high),
                str(one.n),
                str(one.n_patients),
                self.left_out.get(site, "yes"),
            )
            for site, one in self.sites.items()
        ]
        if self.summary is not None:
            own = self.summary
            tau = "< 0.01" if 0 < own.tau < 0.005 else f"{own.tau:.2f}"
            heterogeneity = f"I² {100 * own.i2:.0f} %, tau {tau} ({own.scale})"
            found.append((*key, "summary", *self._shown(own.value, own.low, own.high), "–", "–", heterogeneity))
            if not math.isnan(own.next_low):
                ends = f"{self.number.text(own.next_low)} – {self.number.text(own.next_high)}"
                found.append((*key, "a further site", "–", ends, "–", "–", "prediction interval"))
        return found

    def _shown(self, value: float, low: float, high: float) -> tuple[str, str]:
        ends = "none" if math.isnan(low) else f"{self.number.text(low)} – {self.number.text(high)}"
        return self.number.text(value), ends


def of_column(
    folders: Sequence[Path], name: str, column: str, data_dir: Path | None = None, protocol: str = ""
) -> tuple[list[SiteScores], tuple[Problem, ...]]:
    """Return the scores of each model at the sites that a column of the dataset names.

    Args:
        folders: Folders of results.
        name: Name of the task.
        column: Column of the dataset, or of the stored predictions.
        data_dir: Data of the dataset; None for the default.
        protocol: Protocol and variant; empty for all.

    Raises:
        BadConfig: There is no such column, or fewer than two sites.
        BadData: A patient is at several sites.
        MissingData: No result can be used.
    """
    (task,) = look_up([name], catalog.task)
    entries, problems = _entries(folders, protocol, lambda entry: entry.result.task == task.name, task.name)
    found, sites = list[SiteScores](), None
    for model, entry in _named(entries):
        try:
            answers = predictions_of(entry)
        except BadPredictions as error:
            problems += (Problem(str(entry.path), "no predictions", str(error), entry.setting),)
            continue
        if column in answers.frame:
            of_row = answers.frame[column]
        else:
            sites = _column(task.name, column, data_dir) if sites is None else sites
            of_row = answers.frame["id"].map(sites)
        found.append(
            _scored(model, entry, answers, of_row.astype("object").where(of_row.notna(), UNKNOWN).astype(str), column)
        )
    if not found:
        raise MissingData(f"no result of {task.name} has predictions ({problems[-1].message}).")
    return found, problems


def of_target(folders: Sequence[Path], target: str, protocol: str = "") -> tuple[list[SiteScores], tuple[Problem, ...]]:
    """Return the scores of each model on all datasets with a target, which count as sites.

    Raises:
        BadConfig: A model has results of fewer than two datasets.
        MissingData: There is no result of the target.
    """
    entries, problems = _entries(
        folders, protocol, lambda entry: entry.result.task.partition("/")[2] == target, f"*/{target}"
    )
    grouped: dict[tuple[str, str, str, bool], dict[str, ResultEntry]] = {}  # Generated data never meets real data.
    for name, entry in _named(entries):
        result = entry.result
        key = name, contest_of(result)[1], result.metric, result.generated
        grouped.setdefault(key, {})[result.task.partition("/")[0]] = entry
    for group in grouped.values():
        problems += _without_same_recordings(group)
    several = {key: group for key, group in grouped.items() if len(group) > 1}
    if not several:
        named = sorted({name for group in grouped.values() for name in group})
        raise BadConfig(
            f"no model has results of {target} on two datasets ({first_n(named)}; generated ones count apart), so there is one "
            "site. Give results of several datasets, or --site-column."
        )
    found = []
    for (model, condition, _, generated), group in several.items():
        first = next(iter(group.values())).result
        scores = {name: entry.result.score for name, entry in group.items()}
        found.append(_summarized(model, condition, first.number(), first.unit, scores, generated=generated))
    return found, problems


def _entries(
    folders: Sequence[Path], protocol: str, chosen: Callable[[ResultEntry], bool], what: str
) -> tuple[list[ResultEntry], tuple[Problem, ...]]:
    """Return the ranked results that are chosen, and problems; raise `MissingData` if there are none."""
    collection = collect(folders)
    of_task = [entry for entry in collection.entries if chosen(entry) and ranked(entry.result)]
    entries = [entry for entry in of_task if protocol in ("", contest_of(entry.result)[1])]
    if not entries:
        known = sorted({contest_of(entry.result)[1] for entry in of_task})
        where, tasks = " ".join(map(str, folders)), sorted({entry.result.task for entry in collection.entries})
        if protocol and known:
            raise MissingData(
                f"no ranked result of {what} in {where} is by {protocol}; there are {', '.join(known)}. Choose one with --protocol."
            )
        there = f"; there are results of {first_n(tasks)}" if tasks else ""
        raise MissingData(f"no ranked result of {what} in {where}{there}. Run the evaluation first.")
    return entries, collection.problems


def _named(entries: Sequence[ResultEntry]) -> list[tuple[str, ResultEntry]]:
    """Return results with the names of their models, which differ if a model was run in several ways."""
    groups: dict[Contest, list[ResultEntry]] = {}
    for entry in entries:
        groups.setdefault(contest_of(entry.result), []).append(entry)
    return [pair for group in groups.values() for pair in zip(model_names(group), group, strict=True)]


def _without_same_recordings(group: dict[str, ResultEntry]) -> tuple[Problem, ...]:
    """Remove datasets whose recordings are those of another dataset of a group, and return them as problems."""
    known = [name for name in group if name in catalog.list_datasets()]
    problems = []
    for name in known:
        for other in catalog.spec(name).replaces:
            if (lost := group.pop(other, None)) is not None:
                why = f"the recordings of {other} are among those of {name}"
                problems.append(Problem(str(lost.path), "same recordings", why, lost.setting))
    return tuple(problems)


def _column(task: str, column: str, data_dir: Path | None) -> "pd.Series[str]":
    """Return the site of each unit, from the rows of a dataset."""
    own = catalog.task(task)
    frame = open_dataset(own.dataset, data_dir, allow_missing=True, need_media=False).table.listed
    if column not in frame:
        raise BadConfig(
            f"{own.dataset} has no column '{column}'. Give --site-column one of: {', '.join(map(str, frame.columns))}."
        )
    rows = frame[frame[own.unit_column].notna()]
    units = rows[own.unit_column].astype(str)
    differing = rows.groupby(units)[column].nunique()
    if (differing > 1).any():
        raise BadData(
            f"{column} differs within units of {task}: {first_n(differing.index[differing > 1])}. Give another column."
        )
    return rows.assign(unit=units).drop_duplicates("unit").set_index("unit")[column]


def _scored(model: str, entry: ResultEntry, answers: TableAnswers, site: "pd.Series[str]", column: str) -> SiteScores:
    """Score the rows of each site by the ranking metric."""
    result, task = entry.result, answers.task
    check_patients(answers.patients, site.to_numpy(), column)
    group = next((one for one in task.groups if one.column == column), Group(column, column))
    names = in_order(group, site.unique())
    if len(set(names) - {UNKNOWN}) < 2:
        raise BadConfig(
            f"{column} has one value, {names[0]}, in {task.name}, so there is one site. Give another column."
        )
    sample, clusters = answers.sample(), Clusters.of(answers.patients)
    metric = next((load_metric(name) for name in task.metrics if result.metric in load_metric(name).numbers), None)
    metric = metric or task.rules.compared(load_metric(task.metrics[0]), (sample,))
    sampler = Sampler(sample, clusters, sample.present_classes(len(task.classes)))
    scores = {}
    for name in names:
        rows = np.flatnonzero((site == name).to_numpy())
        part = sampler.take(rows)
        if (reason := _reason(part, task.classes)) != "":
            scores[name] = Estimate(math.nan, math.nan, math.nan, len(rows), part.clusters.count, reason)
        else:
            scores[name] = estimate_metric(metric, part, [result.metric])[result.metric]
    return _summarized(
        model,
        contest_of(result)[1],
        result.number(),
        result.unit,
        scores,
        generated=result.generated,
    )


def _reason(part: Sampler, classes: Sequence[str]) -> str:
    """Return why the rows of a site have no score, given the classes of the task; empty if they have one."""
    if part.clusters.count < 2:
        return f"{part.clusters.count} patient"
    if classes:
        here = part.sample.present_classes(len(classes))
        if not part.sample.multilabel and here.sum() < 2:
            return "one class"
        if lacking := [name for name, absent in zip(classes, part.present & ~here, strict=True) if absent]:
            what = "labels occur in no row or in all rows" if part.sample.multilabel else "classes do not occur"
            return f"{len(lacking)} of {int(part.present.sum())} {what}: {first_n(lacking)}"
    return ""


def check_patients(patients: np.ndarray, site: np.ndarray, column: str) -> None:
    """Raise `BadData` if a patient is at several sites, because their scores are then not independent."""
    several = pd.Series(site).groupby(np.asarray(patients)).nunique()
    if (shared := several.index[several > 1]).size:
        raise BadData(
            f"{len(shared)} patients are at several values of {column}, such as {first_n(shared, 3)}; sites are combined as "
            "independent. Give a column with one value per patient, or leave these patients out."
        )


def _summarized(
    model: str, protocol: str, number: Number, unit: str, scores: dict[str, Estimate], *, generated: bool
) -> SiteScores:
    """Combine the sites that have a score and a standard error over enough patients."""
    left_out = {}
    for name, one in scores.items():
        if math.isnan(one.value):
            left_out[name] = f"no: {one.reason}"
        elif one.n_patients < MIN_PATIENTS:
            left_out[name] = f"no: {one.n_patients} patients, {MIN_PATIENTS} needed"
        elif name == UNKNOWN:
            left_out[name] = "no: site not known"
        elif math.isnan(one.se):
            left_out[name] = f"no: {one.reason or 'no standard error'}"
    used = [one for name, one in scores.items() if name not in left_out]
    found = SiteScores(model, protocol, number, unit, scores, left_out, None, generated=generated)
    if len(used) < 2:
        return replace(found, reason=f"no summary: {len(used)} of {len(scores)} sites can be combined, 2 needed")
    values, errors, patients = (
        np.array([getattr(one, name) for one in used]) for name in ("value", "se", "n_patients")
    )
    low, high = number.range
    scale = "logit" if (low, high) == (0, 1) else "log" if low == 0 and (values > 0).all() else "identity"
    summary = summarize(values, errors, patients, scale)
    reason = "" if len(used) >= FEWEST else f"no prediction interval: {len(used)} sites, {FEWEST} needed"
    return replace(found, summary=summary, reason=reason)
