"""Load results for a leaderboard from folders or from a public Hub dataset."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from cardiobench.core.command import command
from cardiobench.core.errors import BadData, MissingData
from cardiobench.core.foreign import MOST_BYTES, read_parquet
from cardiobench.data import catalog
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import Target, read_snapshot
from cardiobench.hub.naming import wrong_names
from cardiobench.hub.submission import ROWS
from cardiobench.leaderboard.answers import answers_of, name_equal_answers
from cardiobench.leaderboard.choice import card_of
from cardiobench.leaderboard.costs import cost_of_card
from cardiobench.leaderboard.submissions import corrected
from cardiobench.results.collect import (
    RUN_BY,
    Collection,
    Problem,
    ResultEntry,
    assemble_by_suite,
    collect_by_suite,
    problem_kind,
    read_result,
)
from cardiobench.results.consistency import missing_parts
from cardiobench.results.record import checksum
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.suites import list_suites

FILES = r"(?!predictions/).*\.parquet"
"""Paths of the files of results."""
NO_DATES: Mapping[str, str] = MappingProxyType({})
DIGEST = re.compile(r"[0-9a-f]{16}")
DIGITS = 8
"""Number of digits of the digest of private data in the name of its tasks."""


def load(sources: Sequence[str], revision: str = "main", suites: Sequence[str] = ()) -> dict[str, Collection]:
    """Load results from folders or, if the first source is no folder, from a Hub dataset, as one collection per suite.

    Args:
        sources: Folders, or one dataset `org/name`.
        revision: Revision of the dataset.
        suites: Suites to show besides those of this package and its extensions.

    Raises:
        MissingData: There are no results.
        HubError: The dataset does not exist, or the Hub is unreachable.
    """
    folders = [Path(source) for source in sources]
    if all(folder.is_dir() for folder in folders):
        return collect_by_suite(folders, shown_suites(suites))
    if len(sources) > 1 or not is_repository(sources[0]):
        absent = next(str(folder) for folder in folders if not folder.is_dir())
        raise MissingData(
            f"there is no folder {absent}. Give folders of results, or one dataset on the Hub as org/name."
        )
    return from_dataset(sources[0], revision, suites)


def is_repository(name: str) -> bool:
    """Return whether a text has the form `org/name`."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith("/")


def shown_suites(more: Sequence[str] = ()) -> list[str]:
    """Return the suites of a board in their order: those of this package, of extensions, and of the operator."""
    return list(dict.fromkeys((*list_suites(), *more)))


def from_dataset(repository: str, revision: str = "main", suites: Sequence[str] = ()) -> dict[str, Collection]:
    """Load the results of a dataset written by `cardiobench push --to-dataset`, as one collection per suite.

    See `load` for the arguments.

    Raises:
        MissingData: The dataset has no Parquet file of results.
        HubError: The dataset does not exist, or the Hub is unreachable.
    """
    api = connect()
    target = Target("dataset", repository, revision)
    user = whoami(api)
    snapshot = call(target, lambda: read_snapshot(api, target, user, None))
    files = call(target, lambda: snapshot.read_matching(FILES, MOST_BYTES))
    large = [Problem(path, "unreadable", reason) for path, reason in snapshot.too_large(FILES, MOST_BYTES).items()]
    if not files and not large:
        raise MissingData(
            f"{target} holds no results. Add yours: {command('push', 'RESULTS', '--to-dataset', repository, '--yes')}"
        )
    dates = call(target, lambda: snapshot.dates(files))

    def read(path: str) -> bytes | None:
        return call(target, lambda: snapshot.read_matching(re.escape(path), MOST_BYTES)).get(path)

    return from_files(files, dates, read, problems=large, suites=suites)


def from_files(
    files: Mapping[str, bytes],
    dates: Mapping[str, str] = NO_DATES,
    read: Callable[[str], bytes | None] = lambda path: None,
    *,
    problems: Sequence[Problem] = (),
    suites: Sequence[str] = (),
) -> dict[str, Collection]:
    """Load a dataset's Parquet files by suite; an error only affects its file.

    Args:
        files: Mapping from path to content.
        dates: Mapping from path to the time of the commit that added the file.
        read: Function that returns the content of a file of predictions; None if there is none.
        problems: Files that were left out.
        suites: Suites to show besides those of this package and its extensions.
    """
    entries, unreadable = read_entries(files, dates=dates)
    entries = name_equal_answers(entries, answers_of(read))
    named = [_with_owner(entry) for entry in _by_content(entries)]
    return assemble_by_suite(corrected(named), problems=[*problems, *unreadable], known=shown_suites(suites))


def read_entries(
    files: Mapping[str, bytes],
    read: Callable[[str], ScoreResult] = read_result,
    dates: Mapping[str, str] = NO_DATES,
) -> tuple[list[ResultEntry], list[Problem]]:
    """Return distinct results in the Parquet files of a dataset, and unreadable files.

    Args:
        files: Mapping from path to content.
        read: Function that parses a result's JSON; the default rejects inconsistent results.
        dates: Mapping from path to the time of the commit that added the file.
    """
    entries: dict[tuple[str, str], ResultEntry] = {}
    problems: list[Problem] = []
    for path, content in files.items():
        for row in _rows(path, content, problems):
            try:
                entry = replace(_entry(path, row, read), committed=dates.get(path, ""))
            except BadData as error:
                problems.append(Problem(f"{path}: {row.result_id}", problem_kind(error), str(error)))
            else:  # Rows of different metrics repeat the same result.
                entries.setdefault((entry.pushed_by, checksum(entry.result.to_json())), entry)
    return list(entries.values()), problems


class Row(NamedTuple):
    """Columns required to read a row; all others repeat values of the result.

    Attributes:
        result_id: Id of the result, which is not used further.
        pushed_by: Account that submitted the result.
        result: Complete result as JSON.
    """

    result_id: str
    pushed_by: str
    result: str


def _rows(path: str, content: bytes, problems: list[Problem]) -> list[Row]:
    """Return the distinct readable rows of a Parquet file; the others become problems."""
    try:
        table = read_parquet(content, ROWS).select(Row._fields).unify_dictionaries()
    except BadData as error:
        problems.append(Problem(path, "unreadable", f"no file of results: {error}"))
        return []
    # Rows of one result are read once: as codes of their texts.
    cells = [table[name].combine_chunks() for name in Row._fields]
    codes = [one.indices.to_pylist() for one in cells]
    texts = [one.dictionary.to_pylist() for one in cells]
    distinct = dict.fromkeys(zip(*codes, strict=True))
    rows = [
        Row(*("" if code is None else known[code] for known, code in zip(texts, row, strict=True))) for row in distinct
    ]
    if wrong := sum(not all(row) for row in rows):
        names = ", ".join(Row._fields)
        problems.append(Problem(path, "unreadable", f"{wrong} rows without the texts {names}"))
    return [row for row in rows if all(row)]


def _entry(path: str, row: Row, read: Callable[[str], ScoreResult]) -> ResultEntry:
    """Parse the result of a row.

    Raises:
        BadData: The result is invalid, was modified, belongs to another account, or is dated in the future.
    """
    owner = re.fullmatch(r"data/(?P<user>[\w.-]+)-[0-9a-f]{16}\.parquet", path)
    if owner is None or owner["user"] != row.pushed_by:
        raise BadData(f"it claims to be pushed by {row.pushed_by}, but is in a file of another account: {path}")
    result = read(row.result)
    if lacking := [*missing_parts(result), *wrong_names(result)]:
        raise BadData("; ".join(lacking))
    if result.dataset.get("local") and not DIGEST.fullmatch(str(result.dataset.get("digest"))):
        raise BadData("it is of private data without the digest of its ids and labels")
    try:
        date = datetime.fromisoformat(str(result.stamp.get("date")))
        in_future = date.astimezone(UTC) > datetime.now(UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise BadData(f"it has no date: {result.stamp.get('date')!r}") from error
    if in_future:
        raise BadData(f"it is dated {date.date()}, which is in the future")
    return ResultEntry(Path(f"{path}: {row.result_id}"), result, pushed_by=row.pushed_by)


def _by_content(entries: Sequence[ResultEntry]) -> list[ResultEntry]:
    """Add the digest of private data to its name if the name is also that of other data, which it must not be mistaken for."""
    contents: dict[str, set[str]] = {}
    for entry in entries:
        contents.setdefault(str(entry.result.dataset["name"]), set()).add(_private_digest(entry.result))
    shared = {name for name, digests in contents.items() if len(digests) > 1 or (digests != {""} and _is_public(name))}
    return [_with_digest(entry) if entry.result.dataset["name"] in shared else entry for entry in entries]


def _private_digest(result: ScoreResult) -> str:
    """Return the digest of private data; empty for public data."""
    return str(result.dataset["digest"]) if result.dataset.get("local") else ""


def _is_public(name: str) -> bool:
    return name in catalog.list_datasets() and not catalog.spec(name).local


def _with_digest(entry: ResultEntry) -> ResultEntry:
    result = entry.result
    if not (digest := _private_digest(result)):
        return entry
    name = f"{result.dataset['name']}_{digest[:DIGITS]}"
    task = f"{name}/{result.task.partition('/')[2]}"
    return replace(entry, result=replace(result, task=task, dataset={**result.dataset, "name": name}))


def _with_owner(entry: ResultEntry) -> ResultEntry:
    """Add the account to the name of the model, so that rows of several accounts stay separate; take the cost from the card."""
    result = entry.result
    name = f"{result.model['name']}{RUN_BY}{entry.pushed_by})"
    card = card_of(result)
    cost = result.cost if card is None or result.cost is None else cost_of_card(card)
    return replace(entry, result=replace(result, model={**result.model, "name": name}, cost=cost))
