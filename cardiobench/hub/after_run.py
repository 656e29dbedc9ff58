"""The end of a run with `--push-to-hub`: each model's results to its own repository."""

from collections.abc import Sequence
from pathlib import Path

from cardiobench.core.console import Console
from cardiobench.core.errors import CardioBenchError, HubError
from cardiobench.hub.push_results import push, select_model
from cardiobench.models.files import REPOSITORY
from cardiobench.results.paths import folder_name
from cardiobench.results.score_result import ScoreResult


def push_all(results: Sequence[ScoreResult], folder: Path, console: Console) -> list[tuple[str, str]]:
    """Push the results of every model of a run. What cannot be pushed is said, and how to do it later; nothing is lost.

    Args:
        results: of the run.
        folder: where they are on this machine.
        console: tells what is written, before it is.

    Returns:
        (model, reason) of those that were not pushed.
    """
    failed = []
    for name in dict.fromkeys(str(result.model["name"]) for result in results):
        try:
            if Path(name).exists() or not REPOSITORY.fullmatch(name):
                raise HubError(f"{name} is a folder of this machine. Say which repository is its own.")
            done = push(select_model(results, name, name), name, dry_run=False, on_diff=console.print)
        except CardioBenchError as error:
            to = "ORG/MODEL" if Path(name).exists() else name
            option = f" --model {name}" if to != name else ""
            place = _folder_of(results, name, folder)
            later = f"The results are kept; push them later: cardiobench push {place}{option} --to {to} --yes"
            failed.append((name, f"{error} {later}"))
            console.failure(f"push to the Hub of {name}", failed[-1][1])
        else:
            where = done.url or "nothing to change, the results are there already"
            console.print(f"{done.target}: {where}")
    return failed


def _folder_of(results: Sequence[ScoreResult], name: str, folder: Path) -> Path:
    """Return the folder of this run's results of a model; beside it may be other revisions, which are not to be pushed."""
    revisions = {str(result.model["revision"])[:12] for result in results if result.model["name"] == name}
    found = [path for one in revisions for path in (folder / folder_name(name)).glob(f"{one}*") if path.is_dir()]
    return found[0] if len(found) == 1 else folder
