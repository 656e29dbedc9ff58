"""Read results from a model's repository."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from cardiobench.core.errors import BadData, MissingData
from cardiobench.hub import naming
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import Target, read_snapshot
from cardiobench.results.paths import folder_name
from cardiobench.results.record import LONGEST
from cardiobench.results.score_result import ScoreResult

PUSHED = rf"{naming.FOLDER}/[\w.-]+/[\w.-]+/[\w.-]+__[\w.-]+\.json"


def pull(
    repository: str, revision: str = "main", on_problem: Callable[[str], object] = warnings.warn
) -> list[tuple[str, ScoreResult]]:
    """Read all results in a model's repository.

    Args:
        repository: `org/model`.
        revision: Branch, commit, or `refs/pr/<number>` of a pull request.
        on_problem: Function called with a sentence about each file that is not a result, because anybody may push
            files.

    Returns:
        Pairs (user who ran it, result), sorted by user.

    Raises:
        HubError: There is no such repository, or the Hub cannot be reached.
        MissingData: The repository has no results.
        BadData: None of its files is a valid result.
    """
    api = connect()
    target = Target("model", repository, revision)
    user = whoami(api)
    snapshot = call(target, lambda: read_snapshot(api, target, user, None))
    files = call(target, lambda: snapshot.read_matching(PUSHED, LONGEST))
    if not files and not snapshot.too_large(PUSHED, LONGEST):
        raise MissingData(
            f"{target} has no CardioBench results. For results in a pull request, give --revision refs/pr/1"
        )
    results, problems = (
        [],
        [f"{path} of {target} was left out: {why}" for path, why in snapshot.too_large(PUSHED, LONGEST).items()],
    )
    for path, content in files.items():
        try:
            results.append((path.split("/")[1], ScoreResult.parse(content)))
        except BadData as error:
            problems.append(f"{path} of {target} is not a result file: {error}")
    if not results:
        raise BadData(problems[0])
    for problem in problems:
        on_problem(problem)
    return results


def save(
    results: Sequence[tuple[str, ScoreResult]], out: Path, on_problem: Callable[[str], object] = warnings.warn
) -> list[Path]:
    """Write pulled results as `<out>/<user>/<org>__<model>/<revision>/<protocol>/<dataset>__<target>.json`.

    A result whose name would lead out of the folder is reported to `on_problem` and not written.

    Raises:
        BadData: There is no other result.
    """
    saved, problems = [], []
    for user, result in results:
        model, revision = str(result.model.get("name", "")), str(result.model.get("revision", ""))[:12]
        parts = [user, folder_name(model), revision, result.label, result.task.replace("/", "__")]
        if not all(naming.SAFE.fullmatch(part) and part.strip(".") for part in parts):
            problems.append(f"a result of {user} has a name that no folder can have: {'/'.join(parts)!r}")
            continue
        *folders, file = parts
        saved.append(result.save(out.joinpath(*folders, f"{file}.json")))
    if problems and not saved:
        raise BadData(problems[0])
    for problem in problems:
        on_problem(problem)
    return saved
