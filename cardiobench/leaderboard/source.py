"""Load results for a leaderboard from folders or from a public Hub dataset."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import Target, read_snapshot
from cardiobench.hub.naming import wrong_names
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
from cardiobench.results.record import Name, Part, checksum, type_adapter
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    import pyarrow.parquet as pq


MAX_ROWS = 100_000
"""Maximum number of rows per file, enough for about ten thousand results."""
MAX_TEXT = 1 << 30
"""Maximum number of decoded characters per file."""
BATCH = 1000
NO_DATES: Mapping[str, str] = MappingProxyType({})
DIGEST = re.compile(r"[0-9a-f]{16}")
DIGITS = 8
"""Number of digits of the digest of private data in the name of its tasks."""


def load(sources: Sequence[str], revision: str = "main") -> dict[str, Collection]:
    """Load results from folders or, if the first source is no folder, from a Hub dataset, as one collection per suite.

    Args:
        sources: Folders, or one dataset `org/name`.
        revision: Revision of the dataset.

    Raises:
        MissingData: There are no results.
        HubError: The dataset does not exist, or the Hub is unreachable.
    """
    folders = [Path(source) for source in sources]
    if all(folder.is_dir() for folder in folders):
        return collect_by_suite(folders)
    if len(sources) > 1 or not is_repository(sources[0]):
        absent = next(str(folder) for folder in folders if not folder.is_dir())
        raise MissingData(
            f"there is no folder {absent}. Give folders of results, or one dataset on the Hub as org/name."
        )
    return from_dataset(sources[0], revision)


def is_repository(name: str) -> bool:
    """Return whether a text has the form `org/name`."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith("/")


def from_dataset(repository: str, revision: str = "main") -> dict[str, Collection]:
    """Load the results of a dataset written by `cardiobench push --to-dataset`, as one collection per suite.

    Raises:
        MissingData: The dataset has no Parquet file of results.
        HubError: The dataset does not exist, or the Hub is unreachable.
    """
    api = connect()
    target = Target("dataset", repository, revision)
    user = whoami(api)
    snapshot = call(target, lambda: read_snapshot(api, target, user, None))
    files = call(target, lambda: snapshot.read_matching(r"(?!predictions/).*\.parquet"))
    if not files:
        raise MissingData(
            f"{target} holds no results. Add yours: cardiobench push RESULTS --to-dataset {repository} --yes"
        )
    dates = call(target, lambda: snapshot.dates(files))
    return from_files(files, dates, lambda path: call(target, lambda: snapshot.read(path)))


def from_files(
    files: Mapping[str, bytes],
    dates: Mapping[str, str] = NO_DATES,
    read: Callable[[str], bytes | None] = lambda path: None,
) -> dict[str, Collection]:
    """Load a dataset's Parquet files by suite; an error only affects its file.

    Args:
        files: Mapping from path to content.
        dates: Mapping from path to the time of the commit that added the file.
        read: Function that returns the content of a file of predictions; None if there is none.
    """
    entries, problems = read_entries(files, dates=dates)
    entries = name_equal_answers(entries, answers_of(read))
    named = [_with_owner(entry) for entry in _by_content(entries)]
    return assemble_by_suite(corrected(named), problems=problems)


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


@dataclass(frozen=True)
class Row(Part):
    """Columns required to read a row; all others repeat values of the result.

    Attributes:
        result_id: Id of the result, which is not used further.
        pushed_by: Account that submitted the result.
        result: Complete result as JSON.
    """

    result_id: Name
    pushed_by: Name
    result: Name


def _rows(path: str, content: bytes, problems: list[Problem]) -> list[Row]:
    """Return the distinct readable rows of a Parquet file; the others become problems."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pydantic import ValidationError

    rows: dict[Row, None] = {}
    wrong = 0
    columns = [field.name for field in fields(Row)]
    try:
        # Keep dictionary encoding, so that repeated texts are decoded once.
        for record in _records(pq.ParquetFile(pa.BufferReader(content), read_dictionary=columns), columns):
            try:
                # Mapping cells can be converted to a row.
                rows[type_adapter(Row).validate_python(record, strict=False)] = None
            except ValidationError:
                wrong += 1
    except KeyError:  # The column is missing or contains lists.
        problems.append(Problem(path, "unreadable", f"no file of results: it lacks the texts {', '.join(columns)}"))
        return []
    except (pa.ArrowException, OSError, ValueError) as error:
        problems.append(Problem(path, "unreadable", f"no file of results: {error}"))
        return []
    if wrong:
        problems.append(Problem(path, "unreadable", f"{wrong} rows without the texts {', '.join(columns)}"))
    return list(rows)


def _records(file: "pq.ParquetFile", columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, enforcing size limits.

    Raises:
        ValueError: The file has too many rows or too much text.
    """
    if (rows := file.metadata.num_rows) > MAX_ROWS:
        raise ValueError(f"it has {rows:,} rows, but at most {MAX_ROWS:,} are allowed. Push fewer results at once")
    size = 0
    for batch in file.iter_batches(batch_size=BATCH, columns=list(columns)):
        for number in range(batch.num_rows):
            record = {name: _value(batch[name][number]) for name in columns}
            size += sum(len(text) for text in record.values() if isinstance(text, str))
            if size > MAX_TEXT:
                raise ValueError(f"its texts exceed the limit of {MAX_TEXT:,} characters. Push fewer results at once")
            yield record


def _value(cell: Any) -> Any:
    """Return the value of a cell; None for invalid text, which only affects its row."""
    try:
        return cell.as_py()
    except ValueError:  # The bytes are not UTF-8.
        return None


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
