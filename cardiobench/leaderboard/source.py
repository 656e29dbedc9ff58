"""Where a leaderboard's results come from: folders, or a dataset of results on the Hub that anybody may have added to."""

import io
from collections.abc import Sequence
from pathlib import Path

from cardiobench.core.errors import BadData, MissingData
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import Target, read_snapshot
from cardiobench.results.collect import Collection, EditedResult, Entry, Problem, assemble, collect, read_result


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
    entries: dict[str, Entry] = {}
    problems: list[Problem] = []
    for path, content in files.items():
        for name, text in _texts(path, content, problems):
            place = f"{path}: {name}"
            if name in entries:
                continue
            try:
                entries[name] = Entry(Path(place), read_result(text))
            except BadData as error:
                kind = "edited by hand" if isinstance(error, EditedResult) else "unreadable"
                problems.append(Problem(place, kind, str(error)))
    return assemble(entries.values(), problems=problems)


def _texts(path: str, content: bytes, problems: list[Problem]) -> list[tuple[str, str]]:
    """Return (result id, JSON) of a Parquet file, each result once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content), columns=["result_id", "result"])
        rows = table.to_pydict()
        pairs = dict(zip(rows["result_id"], rows["result"], strict=True))
    except (pa.ArrowException, KeyError, OSError) as error:
        problems.append(Problem(path, "unreadable", f"no file of results: {error}"))
        return []
    odd = sum(not isinstance(text, str) for text in pairs.values())
    if odd:
        problems.append(Problem(path, "unreadable", f"{odd} rows without a result"))
    return [(str(name), text) for name, text in pairs.items() if isinstance(text, str)]
