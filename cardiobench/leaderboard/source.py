"""Sources of a leaderboard's results: folders, or a public dataset of results on the Hub."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import BadData, MissingData
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import Target, read_snapshot
from cardiobench.leaderboard.submissions import corrected
from cardiobench.results.collect import (
    Collection,
    Problem,
    ResultEntry,
    assemble_by_suite,
    collect_by_suite,
    problem_kind,
    read_result,
)
from cardiobench.results.record import Name, Part, checksum, type_adapter
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    import pyarrow.parquet as pq


RUN_BY = " (run by "
"""Between a model's name and the person, where several people pushed results of it."""
MAX_ROWS = 100_000
"""Rows that one file of a dataset of results may have: those of some ten thousand results."""
MAX_TEXT = 1 << 30
"""Characters that are decoded of one file."""
BATCH = 1000


def load(sources: Sequence[str], revision: str = "main") -> dict[str, Collection]:
    """Load results of folders, or of one dataset on the Hub where the first source is no folder; one collection per suite.

    Args:
        sources: Folders, or `org/name`.
        revision: Revision of the dataset.

    Raises:
        MissingData: No results there.
        HubError: No such dataset, or the Hub is out of reach.
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
    """Return whether a name could be `org/name` on the Hub."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith("/")


def from_dataset(repository: str, revision: str = "main") -> dict[str, Collection]:
    """Load the results of a dataset as `cardiobench push --to-dataset` writes it; one collection per suite.

    Raises:
        MissingData: It holds no Parquet file of results.
        HubError: No such dataset, or the Hub is out of reach.
    """
    api = connect()
    target = Target("dataset", repository, revision)
    user = whoami(api)
    files = call(target, lambda: read_snapshot(api, target, user, None).read_matching(r"(?!predictions/).*\.parquet"))
    if not files:
        raise MissingData(
            f"{target} holds no results. Add yours: cardiobench push RESULTS --to-dataset {repository} --yes"
        )
    return from_files(files)


def from_files(files: Mapping[str, bytes]) -> dict[str, Collection]:
    """Return the content of a dataset's Parquet files by suite; an error in one file costs that file only."""
    entries, problems = read_entries(files)
    return assemble_by_suite(corrected(_by_person(entries)), problems=problems)


def read_entries(
    files: Mapping[str, bytes], read: Callable[[str], ScoreResult] = read_result
) -> tuple[list[ResultEntry], list[Problem]]:
    """Return the distinct results in Parquet files of a dataset, and the files that cannot be read.

    Args:
        files: Path -> content.
        read: Reader of one result's JSON; by default one that refuses a result that contradicts itself.
    """
    entries: dict[tuple[str, str], ResultEntry] = {}
    problems: list[Problem] = []
    for path, content in files.items():
        for row in _rows(path, content, problems):
            try:
                entry = _entry(path, row, read)
            except BadData as error:
                problems.append(Problem(f"{path}: {row.result_id}", problem_kind(error), str(error)))
            else:  # Every metric of a result has a row, and each row holds the whole result.
                entries.setdefault((entry.pushed_by, checksum(entry.result.to_json())), entry)
    return list(entries.values()), problems


@dataclass(frozen=True)
class Row(Part):
    """The columns that a row must have to be read; all others repeat its result.

    Attributes:
        result_id: Name of the result; nothing depends on it.
        pushed_by: User.
        result: The whole result as JSON.
    """

    result_id: Name
    pushed_by: Name
    result: Name


def _rows(path: str, content: bytes, problems: list[Problem]) -> list[Row]:
    """Return the rows of a Parquet file that can be read, each once; the others become problems."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pydantic import ValidationError

    rows: dict[Row, None] = {}
    wrong = 0
    columns = [field.name for field in fields(Row)]
    try:
        # Dictionaries stay encoded: a text that every row repeats is decoded once.
        for record in _records(pq.ParquetFile(pa.BufferReader(content), read_dictionary=columns), columns):
            try:
                rows[type_adapter(Row).validate_python(record, strict=False)] = None  # A mapping may become a row.
            except ValidationError:
                wrong += 1
    except KeyError:  # The column is missing, or holds lists.
        problems.append(Problem(path, "unreadable", f"no file of results: it lacks the texts {', '.join(columns)}"))
        return []
    except (pa.ArrowException, OSError, ValueError) as error:
        problems.append(Problem(path, "unreadable", f"no file of results: {error}"))
        return []
    if wrong:
        problems.append(Problem(path, "unreadable", f"{wrong} rows without the texts {', '.join(columns)}"))
    return list(rows)


def _records(file: "pq.ParquetFile", columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, up to the limits.

    Raises:
        ValueError: It has too many rows, or too much text.
    """
    if (rows := file.metadata.num_rows) > MAX_ROWS:
        raise ValueError(f"it has {rows:,} rows, and a file may have {MAX_ROWS:,}. Push fewer results at once")
    size = 0
    for batch in file.iter_batches(batch_size=BATCH, columns=list(columns)):
        for number in range(batch.num_rows):
            record = {name: _value(batch[name][number]) for name in columns}
            size += sum(len(text) for text in record.values() if isinstance(text, str))
            if size > MAX_TEXT:
                raise ValueError(f"its texts have more than {MAX_TEXT:,} characters, the most that a file may have")
            yield record


def _value(cell: Any) -> Any:
    """Return a cell's value; None for a damaged text, which costs its row only."""
    try:
        return cell.as_py()
    except ValueError:  # Bytes that are not UTF-8.
        return None


def _entry(path: str, row: Row, read: Callable[[str], ScoreResult]) -> ResultEntry:
    """Return the result of a row.

    Raises:
        BadData: It is no result, or is not what its writer wrote, or comes from somebody else or from the future.
    """
    owner = re.fullmatch(r"data/(?P<user>[\w.-]+)-[0-9a-f]{16}\.parquet", path)
    if owner is None or owner["user"] != row.pushed_by:
        raise BadData(f"it says that {row.pushed_by} pushed it, and lies in a file that is not theirs: {path}")
    result = read(row.result)
    try:
        date = datetime.fromisoformat(str(result.stamp.get("date")))
        in_future = date.astimezone(UTC) > datetime.now(UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise BadData(f"it has no date: {result.stamp.get('date')!r}") from error
    if in_future:
        raise BadData(f"it is dated {date.date()}, which is in the future")
    return ResultEntry(Path(f"{path}: {row.result_id}"), result, pushed_by=row.pushed_by)


def _by_person(entries: Sequence[ResultEntry]) -> list[ResultEntry]:
    """Name the person beside the model where several people pushed results of one, so that each has rows of their own."""
    people: dict[str, set[str]] = {}
    for entry in entries:
        people.setdefault(entry.result.model["name"], set()).add(entry.pushed_by)
    return [
        replace(entry, result=replace(entry.result, model={**entry.result.model, "name": _signed(entry)}))
        if len(people[entry.result.model["name"]]) > 1
        else entry
        for entry in entries
    ]


def _signed(entry: ResultEntry) -> str:
    return f"{entry.result.model['name']}{RUN_BY}{entry.pushed_by})"
