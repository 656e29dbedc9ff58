"""Choose a model from folders of results."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cardiobench.core.command import command
from cardiobench.core.errors import BadConfig, BadPredictions, MissingData, first_n
from cardiobench.data import catalog
from cardiobench.extensions.choose.answer import ModelChoice, Tested
from cardiobench.extensions.choose.candidates import Candidate, find_candidates
from cardiobench.extensions.choose.constraints import Constraints, check_modality, check_views, common_card, refusals
from cardiobench.extensions.choose.decide import cheapest, decide
from cardiobench.extensions.choose.operating_point import OperatingPoint, operating_point
from cardiobench.report.contests import count_pairs, model_names, predictions_of, ranked_results, suite_tasks
from cardiobench.report.ranks import MAX_PAIRS, compare_all_pairs
from cardiobench.results.collect import Collection, ResultEntry, collect
from cardiobench.results.formatting import verdict
from cardiobench.results.verdict import Rank
from cardiobench.tasks.task import unscorable

NO_LIMITS = Constraints()
SENSITIVITY = 0.9
FEW = 50
"""Number of validation patients below which most models cannot be distinguished."""


def choose(
    folders: Sequence[Path],
    *,
    suite: str = "",
    task: str = "",
    protocol: str = "",
    constraints: Constraints = NO_LIMITS,
    sensitivity: float | None = None,
    prevalence: float = float("nan"),
    guarded: bool = False,
) -> tuple[ModelChoice, Collection]:
    """Choose a model on the validation patients of one task or of a suite's primary tasks.

    Args:
        folders: Folders of results.
        suite: Suite that supplies the tasks; empty for a single task.
        task: Task name.
        protocol: Protocol and variant; empty selects the only protocol found, or `probe`.
        constraints: Required properties of the model.
        sensitivity: Target sensitivity for binary tasks; None for 0.9.
        prevalence: Prevalence in the target population.
        guarded: Whether the threshold is chosen by the lower bound of the sensitivity.

    Raises:
        MissingData: There is no result for the task or suite.
        BadConfig: There are several protocols and none was chosen, a constraint or `prevalence` applies to no task, or
            a view is unknown.
    """
    wanted = _tasks(suite, task)
    check_modality(constraints, wanted)
    _check_classes(wanted, sensitivity, prevalence, guarded=guarded)
    lacking = {name: reason for name in wanted if (reason := unscorable(catalog.task(name)))}
    wanted = tuple(name for name in wanted if name not in lacking)
    if not wanted:
        raise MissingData(f"{first_n(lacking.values())}, so there is no choice on {suite or task}.")
    collection = collect(folders, suite)
    of_tasks = [entry for entry in collection.entries if entry.result.task in wanted and not entry.result.external]
    if not of_tasks:
        asked = ("--suite", suite) if suite else ("--tasks", task)
        unusable = [f"{one.file}: {one.message}" for one in collection.problems]
        raise MissingData(
            f"no usable result of {suite or task} in {' '.join(map(str, folders))}. Run: {command('eval', '--model', 'A', 'B', *asked)}"
            + (f" (files that cannot be used: {len(unusable)}, first {unusable[0]})" if unusable else "")
        )
    label = _protocol(of_tasks, protocol)
    entries = [entry for entry in of_tasks if entry.result.label == label]
    found, unfit = find_candidates(entries, wanted)
    check_views(constraints.views, found)
    excluded: dict[str, list[str]] = {name: [reason] for name, reason in unfit.items()}
    kept: list[Candidate] = []
    limits = replace(constraints, card=common_card(found)) if constraints.min_rate is not None else constraints
    for one in found:
        if reasons := refusals(one, limits):
            excluded[one.name] = reasons
        else:
            kept.append(one)
    tasks = tuple(name for name in wanted if all(name in one.validation for one in found)) if found else tuple(wanted)
    decision = decide({name: {one.name: one.validation[name] for one in kept} for name in tasks if kept}, label)
    chosen = cheapest(kept, decision.best)
    points, notes = _points(
        chosen, tasks, SENSITIVITY if sensitivity is None else sensitivity, prevalence, guarded=guarded
    )
    left = [name for name in wanted if name not in tasks]
    notes += [f"{reason}: left out" for reason in lacking.values()]
    notes += [f"no model has answers for the validation patients of {', '.join(left)}: left out"] if left else []
    suites = sorted({entry.suite or "no suite" for entry in entries})
    if len(suites) > 1:
        notes.append(f"results of {' and '.join(suites)} were compared, whose options may differ: give --suite")
    if any(entry.result.generated for entry in entries):
        notes.append("the recordings are generated, so the choice does not apply to patients")
    few = [one.patients for one in decision.rankings if one.patients < FEW]
    notes += [f"chosen on {min(few)} validation patients, too few to tell most models apart"] if few else []
    tested, reasons = _tested(chosen, kept, entries, tasks)
    notes += reasons
    if chosen is not None:
        notes += [
            f"{chosen.name} on the test patients of {name}: {verdict(chosen.entries[name].result)}"
            for name in tasks
            if chosen.entries[name].result.verdict.word.rank is not Rank.WINS
        ]
    if not kept:
        notes.append(
            "no model is left: drop or relax a constraint, or evaluate more models with a protocol that trains"
        )
    if kept and chosen is None and decision.best:
        notes.append("no cost of the best models is known, so none is chosen as the cheapest: encode them again")
    return ModelChoice(
        tasks, label, limits, excluded, tuple(kept), decision, chosen, tuple(points), tuple(notes), tuple(tested)
    ), collection


def _tested(
    chosen: Candidate | None, kept: Sequence[Candidate], entries: Sequence[ResultEntry], tasks: Sequence[str]
) -> tuple[list[Tested], list[str]]:
    """Compare the chosen model with the other candidates on the test patients, as `cardiobench compare` does.

    Returns:
        Comparisons, and sentences on those that were not made and those that contradict the choice.
    """
    if chosen is None or len(kept) < 2:
        return [], []
    of_tasks = [entry for entry in entries if entry.result.task in tasks]
    if (count := count_pairs(of_tasks)) > MAX_PAIRS:
        return [], [f"not compared on the test patients here, with up to {count} pairs: run `cardiobench compare`"]
    names, found = {_key(one, task): one.name for one in kept for task in tasks}, []
    pairs, left_out, _ = compare_all_pairs(of_tasks, tasks=tasks)
    shown = {(entry.result.task, name): str(entry.path) for name, entry in _named(of_tasks)}
    for pair in pairs:
        task = pair.contest[0]
        first, second = (names.get(shown.get((task, model), "")) for model in (pair.a, pair.b))
        if pair.beside or first is None or second is None or chosen.name not in (first, second):
            continue
        found.append(Tested(task, second if first == chosen.name else first, pair, first == chosen.name))
    notes = [
        f"on the test patients of {one.task}, {one.other} is better than the chosen {chosen.name}, which validation patients did not show"
        for one in found
        if one.outcome == "worse"
    ]
    return found, [*left_out, *notes]


def _key(one: Candidate, task: str) -> str:
    return str(one.entries[task].path)


def _named(entries: Sequence[ResultEntry]) -> list[tuple[str, ResultEntry]]:
    """Return each result with the name that comparisons give to its model."""
    return [pair for group in ranked_results(entries).values() for pair in zip(model_names(group), group, strict=True)]


def _tasks(suite: str, task: str) -> tuple[str, ...]:
    if bool(suite) == bool(task):
        raise BadConfig("give either --suite NAME or --task TASK.")
    if task:
        return (catalog.task(task).name,)
    return suite_tasks(suite)


def _check_classes(
    tasks: Sequence[str], sensitivity: float | None, prevalence: float, *, guarded: bool = False
) -> None:
    """Refuse settings of the operating point where no task has two classes, and a bound that no threshold reaches."""
    given = {
        "sensitivity": None if sensitivity is None else f" {sensitivity:g}",
        "prevalence": None if math.isnan(prevalence) else f" {prevalence:g}",
        "guarded": "" if guarded else None,
    }
    if guarded and sensitivity == 1:
        raise BadConfig(
            "--guarded --sensitivity 1: no number of patients has a lower bound of 1. Give a fraction below 1."
        )
    for name, value in given.items():
        if value is not None and not any(catalog.task(one).rules.two_classes for one in tasks):
            raise BadConfig(
                f"--{name}{value} applies to tasks of two classes, and {', '.join(tasks)} has none. Leave it out."
            )


def _protocol(entries: Sequence[ResultEntry], asked: str) -> str:
    labels = sorted({entry.result.label for entry in entries})
    if asked:
        if asked not in labels:
            raise MissingData(
                f"no result by the protocol {asked}; there are {', '.join(labels)}. Choose one with --protocol."
            )
        return asked
    if len(labels) > 1 and "probe" not in labels:
        raise BadConfig(
            f"there are results by {', '.join(labels)}, which are never ranked together. Choose one with --protocol."
        )
    return "probe" if "probe" in labels else labels[0]


def _points(
    chosen: Candidate | None, tasks: Sequence[str], sensitivity: float, prevalence: float, *, guarded: bool = False
) -> tuple[list[OperatingPoint], list[str]]:
    """Return operating points of the chosen model and the reasons for missing ones."""
    points, notes = [], []
    for name in tasks if chosen else ():
        assert chosen is not None, "no task without a model"
        if not catalog.task(name).rules.two_classes:
            continue
        try:
            test = predictions_of(chosen.entries[name])
            points.append(operating_point(chosen.validation[name], test, sensitivity, prevalence, guarded=guarded))
        except BadPredictions as error:
            notes.append(f"no operating point: {error}")
    return points, notes
