"""Sources of a leaderboard's results: folders, or a public dataset of results on the Hub."""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadData, MissingData
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import Target, read_snapshot
from cardiobench.results.collect import Collection, Entry, Problem, assemble, collect, problem_kind, read_result
from cardiobench.results.record import Name, Part, checksum, type_adapter


def load(sources: Sequence[str], revision: str = "main") -> Collection:
    """Load results of folders, or of one dataset on the Hub where the first source is no folder.

    Args:
        sources: folders, or `org/name`.
        revision: of the dataset.

    Raises:
        MissingData: no results there.
        HubError: no such dataset, or the Hub is out of reach.
    """
    folders = [Path(source) for source in sources]
    if all(folder.is_dir() for folder in folders):
        return collect(folders)
    if len(sources) > 1 or not is_repository(sources[0]):
        absent = next(str(folder) for folder in folders if not folder.is_dir())
        raise MissingData(
            f"there is no folder {absent}. Give folders of results, or one dataset on the Hub as org/name."
        )
    return from_dataset(sources[0], revision)


def is_repository(name: str) -> bool:
    """Return whether a name could be `org/name` on the Hub."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith("/")


def from_dataset(repository: str, revision: str = "main") -> Collection:
    """Load the results of a dataset as `cardiobench push --to-dataset` writes it.

    Raises:
        MissingData: it holds no Parquet file of results.
        HubError: no such dataset, or the Hub is out of reach.
    """
    api = connect()
    target = Target("dataset", repository, revision)
    user = whoami(api)
    files = call(target, lambda: read_snapshot(api, target, user, None).read_matching(r".*\.parquet"))
    if not files:
        raise MissingData(
            f"{target} holds no results. Add yours: cardiobench push RESULTS --to-dataset {repository} --yes"
        )
    return from_files(files)


def from_files(files: Mapping[str, bytes]) -> Collection:
    """Return what the Parquet files of a dataset of results hold; what is wrong in one of them costs itself only."""
    entries: dict[tuple[str, str], Entry] = {}
    problems: list[Problem] = []
    for path, content in files.items():
        for row in _rows(path, content, problems):
            try:
                entry = _entry(path, row)
            except BadData as error:
                problems.append(Problem(f"{path}: {row.result_id}", problem_kind(error), str(error)))
            else:  # every metric of a result has a row, and each row holds the whole result
                entries.setdefault((entry.pushed_by, checksum(entry.result.to_json())), entry)
    return assemble(_by_person(list(entries.values())), problems=problems)


@dataclass(frozen=True)
class Row(Part):
    """The columns that a row must have to be read; all others repeat its result.

    Attributes:
        result_id: name of the result; nothing depends on it.
        pushed_by: user.
        result: the whole result as JSON.
    """

    result_id: Name
    pushed_by: Name
    result: Name


def _rows(path: str, content: bytes, problems: list[Problem]) -> list[Row]:
    """Return the rows of a Parquet file that can be read, each once; the others become problems."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pydantic import ValidationError

    columns = [field.name for field in fields(Row)]
    try:
        table = pq.read_table(io.BytesIO(content), columns=columns)
        # A damaged text, or a column of lists, costs its row only.
        records = [{name: _value(table[name][number]) for name in columns} for number in range(table.num_rows)]
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        problems.append(Problem(path, "unreadable", f"no file of results: {error}"))
        return []
    rows, wrong = [], 0
    for record in records:
        try:
            rows.append(type_adapter(Row).validate_python(record, strict=False))  # a mapping may become a row
        except ValidationError:
            wrong += 1
    if wrong:
        problems.append(Problem(path, "unreadable", f"{wrong} rows without the texts {', '.join(columns)}"))
    return list(dict.fromkeys(rows))


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except ValueError:  # bytes that are no UTF-8
        return None


def _entry(path: str, row: Row) -> Entry:
    """Return the result of a row.

    Raises:
        BadData: it is no result, or is not what its writer wrote, or comes from somebody else or from the future.
    """
    owner = re.fullmatch(r"data/(?P<user>[\w.-]+)-[0-9a-f]{16}\.parquet", path)
    if owner is None or owner["user"] != row.pushed_by:
        raise BadData(f"it says that {row.pushed_by} pushed it, and lies in a file that is not theirs: {path}")
    result = read_result(row.result)
    try:
        date = datetime.fromisoformat(str(result.stamp.get("date")))
        in_future = date.astimezone(UTC) > datetime.now(UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise BadData(f"it has no date: {result.stamp.get('date')!r}") from error
    if in_future:
        raise BadData(f"it is dated {date.date()}, which is in the future")
    return Entry(Path(f"{path}: {row.result_id}"), result, pushed_by=row.pushed_by)


def _by_person(entries: Sequence[Entry]) -> list[Entry]:
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


def _signed(entry: Entry) -> str:
    return f"{entry.result.model['name']} (run by {entry.pushed_by})"
