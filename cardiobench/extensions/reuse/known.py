"""Find published results that can be reused in a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cardiobench.core.errors import BadConfig, first_n
from cardiobench.core.io import to_plain
from cardiobench.hub.commit import MAIN
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.leaderboard.answers import read_answers, read_refits
from cardiobench.leaderboard.rebuild import Rules
from cardiobench.leaderboard.source import is_repository, read_entries
from cardiobench.leaderboard.verify import check, read_submission
from cardiobench.results.collect import ResultEntry
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import OLDER_RULES
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.context import RunContext
from cardiobench.scoring.predictions import Predictions

Published = tuple[Sequence[ResultEntry], Mapping[str, bytes]]
"""Results with newest first, and a mapping from path to content of prediction files."""


def known_results(cells: Sequence[Cell], context: RunContext) -> Mapping[str, Callable[[], None]]:
    """Return a mapping from cell key to a function that recomputes some answers of a published result, and saves it if they agree.

    Print one line for each result that is found, reused or rejected.

    Args:
        cells: Cells of one model without a local result.
        context: Run context, whose settings name the dataset of results and the trusted owners.

    Raises:
        HubError: The dataset does not exist, or the Hub is unreachable.
    """
    repository, say = str(context.config.reuse), context.console.print
    entries, answers = published(context)
    found: dict[str, Callable[[], None]] = {}
    for cell in cells:
        for entry in entries:
            if not _same_question(entry, cell):
                continue
            if reason := why_not(entry, cell, answers):
                say(f"not reused from {repository}: {_named(entry, cell)}: {reason}")
                continue
            found[cell.key] = partial(save, entry, cell, answers, context)
            break
    if cells:
        say(
            f"{cells[0].model.name}: {len(found)} of {len(cells)} results that are not here are in {repository}, "
            f"computed by {', '.join(context.config.reuse_from)}"
        )
    return found


def _named(entry: ResultEntry, cell: Cell) -> str:
    return f"{cell.model.name}, {cell.subject}, {cell.label}, run by {entry.pushed_by}"


def published(context: RunContext) -> Published:
    """Read the trusted owners' results of the configured dataset once per run, reporting other owners and unreadable files.

    Raises:
        BadConfig: The repository name is not a dataset name.
        HubError: The dataset does not exist, or the Hub is unreachable.
    """
    repository = str(context.config.reuse)
    key = ("published results", repository)
    if not is_repository(repository):
        raise BadConfig(f"--reuse {repository!r} is not a dataset of results on the Hub. Give it as org/name.")
    if key not in context.shared:
        files = read_submission(repository, MAIN)
        entries, problems = read_entries(files.data)
        for problem in problems:
            context.console.print(f"not reused from {repository}: {problem.file}: {problem.message}")
        trusted = [entry for entry in entries if entry.pushed_by in context.config.reuse_from]
        if others := sorted({entry.pushed_by for entry in entries} - set(context.config.reuse_from)):
            context.console.print(
                f"not reused from {repository}: {len(entries) - len(trusted)} results of {first_n(others)}; "
                "name owners that you trust with --reuse-from"
            )
        newest = sorted(trusted, key=lambda entry: str(entry.result.stamp.get("date")), reverse=True)
        context.shared[key] = newest, files.answers
    known: Published = context.shared[key]
    return known


def why_not(entry: ResultEntry, cell: Cell, answers: Mapping[str, bytes]) -> str:
    """Return why a published result cannot be reused; empty if it can.

    A result can be reused if its key matches (all relevant inputs are equal) and scoring its predictions again confirms
    its numbers.
    """
    if different := _difference(entry, cell):
        return different
    checked = check(entry, answers, cell.config.data_dir)
    if checked.problems:
        return f"its scores cannot be reproduced: {checked.problems[0]}"
    return checked.not_verifiable and f"it cannot be verified: {checked.not_verifiable}"


def save(entry: ResultEntry, cell: Cell, answers: Mapping[str, bytes], context: RunContext) -> None:
    """Recompute some answers and save a verified result in place of a local one, naming its owner; save nothing if the answers differ."""
    from cardiobench.extensions.reuse.recompute import NotRecomputed, disagreement

    repository, say, what = context.config.reuse, context.console.print, _named(entry, cell)
    result, rules = entry.result, Rules(entry.result)
    content = answers[predictions_path(result, entry.pushed_by)]
    table, refits = read_answers(content, cell.task), read_refits(content, cell.task, result.refits)
    references = rules.references(cell.dataset)
    frame = Predictions.join(references, table, cell.task, source=entry.pushed_by, allow_missing=True).frame
    kept = refits and refits.take(frame["id"])
    try:
        if reason := disagreement(cell, frame, result, context):
            say(f"not reused from {repository}: {what}: {reason}")
            return
        checked = "some of its answers were recomputed here and agree"
    except NotRecomputed as error:
        checked = f"its answers were not recomputed here: {error}"
    note = f"reused from {repository}, run by {entry.pushed_by}; its predictions were scored again here; {checked}"
    source = {"dataset": repository, "owner": entry.pushed_by}
    # The model's facts are those of the run; the key states that the published ones are equal.
    named = replace(
        result,
        model=to_plain(cell.model.facts),
        seen_in_pretraining=cell.model.saw(cell.dataset.spec.name),
        stamp=stamp_of_run(result.stamp, str(context.config.suite or ""), reused=source, recordings=cell.recordings),
        warnings=(*result.warnings, note),
    )
    save_scored(named, frame, cell.path, refits=kept.columns if kept else {})
    say(f"reused from {repository}: {what}; {checked}")


def stamp_of_run(stamp: Mapping[str, Any], suite: str, **facts: Any) -> dict[str, Any]:
    """Return the stamp of a published result with further facts, and with the suite of this run in place of its owner's.

    The suite is no part of the key, and results of another suite would be listed apart.
    """
    own = {"suite": suite} if suite else {}
    return {**{name: value for name, value in stamp.items() if name != "suite"}, **own, **facts}


def _same_question(entry: ResultEntry, cell: Cell) -> bool:
    result = entry.result
    return (result.model["name"], result.task, result.label) == (cell.model.name, cell.subject, cell.label)


def _difference(entry: ResultEntry, cell: Cell) -> str:
    """Return the first input that differs between a published result and a cell; empty if all match."""
    result, stamp = entry.result, entry.result.stamp
    if result.outdated:
        return OLDER_RULES
    pairs: Mapping[str, tuple[Any, Any]] = {
        "model revision": (result.model.get("revision"), cell.model.revision),
        "data version": (result.dataset.get("version"), cell.dataset.spec.version),
        "data": (result.dataset.get("digest"), cell.dataset.table.digest),
        "rules": (stamp.get("code"), to_plain(cell.code)),
    }
    for name, (theirs, ours) in pairs.items():
        if theirs != ours:
            return f"another {name}: {_text(theirs, ours)} there, {_text(ours, theirs)} here"
    if stamp.get("key") != cell.key:
        return f"other settings: its key is {stamp.get('key')}, and that of this run {cell.key}"
    return ""


def _text(one: Any, other: Any) -> str:
    """Format a value; for two mappings, only differing entries."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return ", ".join(f"{name} {one[name]}" for name in one if one[name] != other.get(name)) or "nothing more"
    return str(one)
