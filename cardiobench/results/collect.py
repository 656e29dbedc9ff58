"""Collect results and analyses from folders and list those that cannot be ranked."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cardiobench.core.command import command
from cardiobench.core.errors import BadData, MissingData
from cardiobench.core.io import files_below, read_file
from cardiobench.results.analysis_result import AnalysisResult, is_analysis
from cardiobench.results.consistency import check_consistency
from cardiobench.results.formatting import RUN_BY, tell_apart
from cardiobench.results.paths import PATTERN, predictions_path
from cardiobench.results.record import LONGEST, EditedResult, OtherSchema
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.versions import (
    data_version_key,
    describe_version,
    same_version,
    unknown_coverage,
    version_key,
)


def model_id(name: str) -> str:
    """Return the name of a model without the account that submitted its results."""
    return name.partition(RUN_BY)[0]


_LONGEST_SUITE = 60


@dataclass(frozen=True)
class ResultEntry:
    """Result that can be ranked.

    Attributes:
        path: Path of the file, or location in a dataset of results.
        result: Loaded result.
        predictions: Path of the predictions; None if not available locally.
        pushed_by: Account that submitted the result; empty for local files.
        submissions: Number of different answers of this account to the same question, used to correct p-value and
            interval.
        same_as: Other models whose earlier answers to the task are equal, with their owners.
        committed: Time of the commit that added a submitted result; empty for local files.
    """

    path: Path
    result: ScoreResult
    predictions: Path | None = None
    pushed_by: str = ""
    submissions: int = 1
    same_as: tuple[str, ...] = ()
    committed: str = ""

    @property
    def date(self) -> str:
        """Time of the commit of a submitted result, which its owner cannot choose; else the time of scoring."""
        return self.committed or str(self.result.stamp.get("date", ""))

    @property
    def setting(self) -> str:
        """Model and protocol, used as row name in tables."""
        return f"{self.result.model['name']}, {self.result.label}"

    @property
    def suite(self) -> str:
        """Suite and version of the result; empty without a suite."""
        return str(self.result.stamp.get("suite") or "")


@dataclass(frozen=True)
class Problem:
    """File that is not ranked.

    Attributes:
        file: Name of the file.
        kind: Short category: unreadable, half-finished, edited by hand, other dataset version or older run.
        message: Problem and suggested action.
        subject: Model and task, if known.
    """

    file: str
    kind: str
    message: str
    subject: str = ""

    @property
    def consequence(self) -> str:
        """Consequence: not ranked, or only not shown."""
        return {"no picture": "not drawn", "no answers": "not drawn", "no examples": "not shown"}.get(
            self.kind, "not ranked"
        )


@dataclass(frozen=True)
class Collection:
    """Contents of a report.

    Attributes:
        entries: Rankable results by task and model.
        analyses: Analyses with their files.
        problems: Files that are not ranked, with reasons.
    """

    entries: tuple[ResultEntry, ...]
    analyses: tuple[tuple[Path, AnalysisResult], ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def results(self) -> list[ScoreResult]:
        """Rankable results."""
        return [entry.result for entry in self.entries]

    @property
    def files(self) -> list[tuple[Path, ScoreResult]]:
        """Rankable results with their files."""
        return [(entry.path, entry.result) for entry in self.entries]


@dataclass
class _ResultFiles:
    entries: list[ResultEntry] = field(default_factory=list)
    analyses: list[tuple[Path, AnalysisResult]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def collect(folders: Sequence[Path], suite: str = "") -> Collection:
    """Load all results and analyses below the folders.

    Args:
        folders: Result folders or single result files.
        suite: Suite to rank together with external predictions; empty for results of any run.

    Raises:
        MissingData: A folder does not exist or has no results.
    """
    files = _read_folders(folders)
    if suite:
        others = [entry for entry in files.entries if entry.suite != suite and not entry.result.external]
        files.entries = _of_suite(files.entries, suite)
        files.problems += [_of_other_suite(entry, suite) for entry in others]
    return assemble(files.entries, files.analyses, files.problems)


def collect_by_suite(folders: Sequence[Path], known: Sequence[str] | None = None) -> dict[str, Collection]:
    """Load all results and analyses as one collection per suite; see `collect` and `assemble_by_suite`."""
    files = _read_folders(folders)
    return assemble_by_suite(files.entries, files.analyses, files.problems, known)


def _read_folders(folders: Sequence[Path]) -> _ResultFiles:
    files = _ResultFiles()
    distinct: dict[Path, Path] = {}
    for folder in folders:
        distinct.setdefault(folder.absolute(), folder)  # A folder that is given twice is read once.
    for folder in distinct.values():
        if folder.is_file():
            _read(folder, folder.name, files)
            continue
        if not folder.is_dir():
            raise MissingData(f"there is no folder {folder}. Give the --output-dir of a run.")
        for path in files_below(folder, PATTERN):
            _read(path, path.relative_to(folder).as_posix(), files)
        files.problems += _unfinished(folder)
    if not (files.entries or files.analyses or files.problems):
        named = " ".join(str(folder) for folder in folders)
        raise MissingData(f"no result in {named}. Run: {command('eval', '--model', 'ID')}")
    return files


def _of_other_suite(entry: ResultEntry, suite: str) -> Problem:
    own = entry.suite or "no suite"
    message = f"it is of {own}, not of {suite}: run the model with --suite {suite}"
    return Problem(str(entry.path), "other suite", message, f"{entry.setting}, {entry.result.task}")


def assemble(
    entries: Iterable[ResultEntry],
    analyses: Iterable[tuple[Path, AnalysisResult]] = (),
    problems: Iterable[Problem] = (),
) -> Collection:
    """Keep one data version per task and the newest result per setting, and list the others as problems.

    Analyses are kept if they use the same data.
    """
    known, unknown = _of_known_coverage(entries)
    one_edition, other = _one_edition(known)
    newest, older = _newest(one_edition)
    beside, aside = _of_ranked_data(analyses, newest)
    named = tell_apart([entry.result for entry in newest])
    newest = [replace(entry, result=result) for entry, result in zip(newest, named, strict=True)]
    order = sorted(newest, key=lambda entry: (entry.result.task, entry.setting, str(entry.path)))
    return Collection(tuple(order), tuple(beside), (*problems, *unknown, *other, *older, *aside))


def assemble_by_suite(
    entries: Sequence[ResultEntry],
    analyses: Sequence[tuple[Path, AnalysisResult]] = (),
    problems: Sequence[Problem] = (),
    known: Sequence[str] | None = None,
) -> dict[str, Collection]:
    """Return the results of each suite by name, with results without a suite (empty name) last.

    Results of different suites or suite versions use different options and are not ranked together. External
    predictions have no options and are included in every suite.

    Args:
        entries: Results.
        analyses: Analyses with their files.
        problems: Files that are not ranked.
        known: Suites in their order; results of others become problems, because a result names its suite itself. None
            for any suite, in alphabetical order.
    """
    if known is not None:
        problems = [*problems, *(_of_unknown_suite(entry) for entry in entries if entry.suite not in (*known, ""))]
        entries = [entry for entry in entries if entry.suite in (*known, "")]
    order = list(known or ())
    suites = sorted(
        {entry.suite for entry in entries} or {""},
        key=lambda name: (not name, order.index(name) if name in order else 0, name),
    )
    return {name: assemble(_of_suite(entries, name), analyses, problems) for name in suites}


def _of_unknown_suite(entry: ResultEntry) -> Problem:
    name = f"{entry.suite[:_LONGEST_SUITE]}…" if len(entry.suite) > _LONGEST_SUITE else entry.suite
    message = f"it names the suite {name!r}, which is not known here. Show such results with --suites"
    return Problem(str(entry.path), "unknown suite", message, f"{entry.setting}, {entry.result.task}")


def _of_suite(entries: Iterable[ResultEntry], suite: str) -> list[ResultEntry]:
    """Return the results of a suite and external predictions for its tasks."""
    own = [entry for entry in entries if entry.suite == suite]
    tasks = {entry.result.task for entry in own}
    return own + [one for one in entries if one.result.external and one.suite != suite and one.result.task in tasks]


def read_result(text: str | bytes) -> ScoreResult:
    """Parse a result from JSON.

    Raises:
        BadData: The text is not a result.
        EditedResult: The result was modified after it was written, or is inconsistent.
    """
    result = ScoreResult.parse(text)
    if wrong := check_consistency(result):
        raise EditedResult(f"it is inconsistent: {'; '.join(wrong)}. Score the predictions again")
    return result


def _read(path: Path, name: str, files: _ResultFiles) -> None:
    """Load one file as an entry, an analysis or a problem."""
    try:
        text = read_file(path, LONGEST)
        if is_analysis(text):
            files.analyses.append((path, AnalysisResult.load(path)))
        else:
            predictions = predictions_path(path)
            files.entries.append(ResultEntry(path, read_result(text), predictions if predictions.is_file() else None))
    except BadData as error:
        files.problems.append(Problem(name, problem_kind(error), str(error)))


def problem_kind(error: BadData) -> str:
    """Return a short reason why a file is not a result."""
    kinds = {EditedResult: "edited by hand", OtherSchema: "another schema"}
    return kinds.get(type(error), "unreadable")


def _unfinished(folder: Path) -> list[Problem]:
    """List predictions without scores and files of interrupted runs."""
    advice = "Repeat the run that created it; it continues where it stopped"
    lone = [
        Problem(path.relative_to(folder).as_posix(), "half-finished", f"predictions without a score. {advice}")
        for path in files_below(folder, "*__*.predictions.parquet")
        if not path.with_name(path.name.replace(".predictions.parquet", ".json")).is_file()
    ]
    return lone + [
        Problem(path.relative_to(folder).as_posix(), "half-finished", f"an unfinished file. {advice}")
        for path in files_below(folder, ".*__*.tmp")
    ]


def _of_known_coverage(entries: Iterable[ResultEntry]) -> tuple[list[ResultEntry], list[Problem]]:
    """Keep results of known complete releases; list the rest as problems."""
    known, problems = [], []
    for entry in entries:
        if entry.result.expected is not None:
            known.append(entry)
            continue
        subject = f"{entry.setting} on {entry.result.task}"
        problems.append(Problem(str(entry.path), "coverage unknown", unknown_coverage(entry.result), subject))
    return known, problems


def _one_edition(entries: list[ResultEntry]) -> tuple[list[ResultEntry], list[Problem]]:
    """Choose one data version per task: real before synthetic, complete before partial, then the most frequent.

    Submitted results count once per account and version, and the oldest version wins ties, so that nobody can displace
    others with many submissions on private data. In local folders, the version with most results wins.
    """
    by_task: dict[str, list[ResultEntry]] = {}
    for entry in entries:
        by_task.setdefault(entry.result.task, []).append(entry)
    kept, problems = [], []
    for task, candidates in by_task.items():
        versions: dict[tuple, list[ResultEntry]] = {}
        for entry in candidates:
            versions.setdefault(version_key(entry.result), []).append(entry)
        chosen = min(versions, key=lambda key: (*_preference(versions[key]), *_order(key)))
        for entry in candidates:
            version = version_key(entry.result)
            if same_version(version, chosen):
                kept.append(entry)
                continue
            detail = f"scored on {describe_version(version)}; ranked here: {describe_version(chosen)}. Such scores cannot be compared"
            problems.append(Problem(str(entry.path), "other data", detail, f"{entry.setting} on {task}"))
    return kept, problems


def _preference(entries: Sequence[ResultEntry]) -> tuple:
    """Return the sort key of a data version within its kind; the smallest is preferred."""
    people = {entry.pushed_by for entry in entries}
    first = min(entry.date for entry in entries) if any(people) else ""
    facts = entries[0].result.dataset
    # External predictions use the data version of the models.
    elsewhere = all(entry.result.external for entry in entries)
    most = -len(people) if any(people) else -len(entries)
    return bool(facts.get("twin")), facts.get("limit") is not None, elsewhere, most, first


def _order(key: tuple) -> tuple:
    return ([-ord(sign) for sign in key[0]], str(key))


def _of_ranked_data(
    records: Iterable[tuple[Path, AnalysisResult]], entries: Sequence[ResultEntry]
) -> tuple[list[tuple[Path, AnalysisResult]], list[Problem]]:
    """Keep analyses of the ranked data or of data without ranked results; list the rest as problems."""
    ranked: dict[str, set[tuple]] = {}
    for entry in entries:
        facts = entry.result.dataset
        ranked.setdefault(str(facts.get("name")), set()).add(data_version_key(facts))
    kept, problems = [], []
    for path, record in records:
        other = [facts for facts in record.datasets if not _is_of(facts, ranked.get(facts["name"], ()))]
        if not other:
            kept.append((path, record))
            continue
        name, shown = other[0]["name"], min(ranked[other[0]["name"]], key=str)
        detail = (
            f"an analysis of {name} {describe_version(data_version_key(other[0]))}; the scores here are of {describe_version(shown)}. "
            "Run the analysis again on these data"
        )
        problems.append(Problem(str(path), "other data", detail, record.label))
    return kept, problems


def _is_of(facts: Mapping[str, Any], editions: Iterable[tuple]) -> bool:
    """Return whether the data has one of the versions, ignoring an unstated patient limit."""
    version = data_version_key(facts)
    return not editions or any(
        same_version(version if "limit" in facts else (*version[:3], one[3]), one) for one in editions
    )


def _newest(entries: list[ResultEntry]) -> tuple[list[ResultEntry], list[Problem]]:
    """Keep the newest result of each model or file, task, protocol, profile, preprocessing and account.

    A local model is its content, which the revision states, whatever the name of its folder.
    """
    groups: dict[str, list[ResultEntry]] = {}
    for entry in entries:
        result = entry.result
        seed, origin = dict(result.options).get("seed"), result.stamp.get("origin")
        local = result.model.get("local")
        model = {key: value for key, value in result.model.items() if not (local and key in ("name", "loaded_by"))}
        facts = (entry.pushed_by, result.task, result.label, result.profile, model, seed, origin)
        groups.setdefault(json.dumps(facts, sort_keys=True, default=str), []).append(entry)
    kept, problems = [], []
    for runs in groups.values():
        *older, last = sorted(runs, key=lambda one: (one.date, str(one.result.stamp.get("date", "")), str(one.path)))
        kept.append(last)
        for entry in older:
            detail = f"a newer result of the same model, revision and task is ranked: {last.path}"
            problems.append(Problem(str(entry.path), "older run", detail, f"{entry.setting} on {entry.result.task}"))
    return kept, problems
