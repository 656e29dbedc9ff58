"""Results to a model's repository: result files, `model-index` and evaluation results in one commit or pull request."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import BadData, MissingData
from cardiobench.hub import cards, eval_results, model_index, naming
from cardiobench.hub.api import Account, connect, status, whoami
from cardiobench.hub.commit import CommitResult, PlanChanges, Snapshot, Target, write
from cardiobench.results.analysis_result import is_analysis
from cardiobench.results.record import parse_json
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    from huggingface_hub import HfApi

TITLE = "CardioBench results"
UNNAMED = "you"  # stands for the user where a rehearsal has no token


def find_results(folder: Path) -> list[ScoreResult]:
    """Read every result below a folder, or the one result of a file; `MissingData` when there is none.

    Records of studies, which lie beside them, are no scores of a task and have no place on a model's card.
    """
    paths = (
        [folder]
        if folder.is_file()
        else [path for path in sorted(folder.rglob("*__*.json")) if not is_analysis(path.read_bytes())]
    )
    if not paths:
        raise MissingData(f"no result in {folder}. Run: accelerate launch -m cardiobench.eval --model ID")
    return [ScoreResult.load(path) for path in paths]


def select_model(results: Sequence[ScoreResult], name: str, repository: str) -> list[ScoreResult]:
    """Return the results of a model, under the name of its repository.

    Args:
        results: of any models.
        name: by which the model was evaluated.
        repository: `org/model`.

    Raises:
        BadData: there are none, or two of the same task and protocol.
    """
    chosen = [result for result in results if str(result.model.get("name", "")).lower() == name.lower()]
    if not chosen:
        names = sorted({str(result.model.get("name", "no model")) for result in results})
        raise BadData(f"there are no results of {name}, only of {', '.join(names)}. Say which with --model NAME.")
    seen: dict[tuple[str, str], str] = {}
    for result in chosen:
        cell, revision = (result.task, result.label), str(result.model.get("revision"))
        if cell in seen:
            raise BadData(
                f"{name} has two results of {cell[0]} with {cell[1]}, of revisions {seen[cell]} and {revision} (or of two "
                "settings of one). Give the folder of one of them."
            )
        seen[cell] = revision
    return [replace(result, model={**result.model, "name": repository}) for result in chosen]


def push(
    results: Sequence[ScoreResult],
    repository: str,
    *,
    dry_run: bool,
    on_diff: Callable[[str], None],
    as_pull_request: bool = False,
    **options,
) -> CommitResult:
    """Write the results of one model into its repository on the Hub.

    Args:
        results: of `select_model`.
        repository: `org/model`.
        dry_run: only show what would be written.
        on_diff: is called with what would change, before anything is sent.
        as_pull_request: ask even where the user may write; where the user may not, it is always asked.
        options: of `write`.

    Raises:
        HubError: refused or not reached. The results on this machine are kept, and pushing again adds nothing twice.
        BadData: the card there cannot be changed in place.
    """
    api = connect()
    user = whoami(api)
    revisions = {name: dataset_revision(api, name, version) for name, version in sorted(_datasets(results))}
    return write(
        api,
        Target("model", repository),
        plan_changes(results, repository, user, api.endpoint, revisions),
        message=TITLE,
        dry_run=dry_run,
        user=user,
        as_pull_request=as_pull_request or not user.owns(repository),
        on_diff=on_diff,
        **options,
    )


def plan_changes(
    results: Sequence[ScoreResult], repository: str, user: Account, endpoint: str, revisions: Mapping[str, str | None]
) -> PlanChanges:
    """Return what the files of the repository should be with these results in them."""
    name = user.name or UNNAMED

    def files(snapshot: Snapshot) -> dict[str, bytes]:
        wanted: dict[str, bytes] = {}
        index: list[dict[str, Any]] = []
        listed: dict[str, list[dict[str, Any]]] = {}
        for new in results:
            path = naming.result_path(new, name)
            result = keep_existing(snapshot.read(path), new)
            url = f"{endpoint}/{repository}/blob/main/{path}"
            revision = revisions.get(naming.dataset_id(result))
            wanted[path] = to_bytes(result)
            if naming.defined(result):
                index.append(model_index.entry(result, name, url, revision))
            if result.label == eval_results.primary_protocol(_protocols(result, results, snapshot, name)):
                entries = eval_results.entries(result, name, url, revision)
                listed.setdefault(eval_results.path(result.task.partition("/")[0]), []).extend(entries)
        card = cards.text_of(snapshot.read("README.md"), f"README.md of {repository}")
        wanted["README.md"] = cards.merge_results(
            card or f"\n# {repository.partition('/')[2]}\n",
            repository.partition("/")[2],
            index,
            model_index.key,
            f"README.md of {repository}",
        ).encode()
        for path, entries in listed.items():
            if entries:
                wanted[path] = eval_results.merge(snapshot.read(path), entries, f"{path} of {repository}")
        return wanted

    return files


def dataset_revision(api: "HfApi", name: str, version: str) -> str | None:
    """Commit of the dataset's repository that holds this version (tag `v<version>`); None where it is not published."""
    from huggingface_hub.errors import HTTPError

    try:
        tags = api.list_repo_refs(name, repo_type="dataset").tags
    except HTTPError as error:
        if status(error) in (401, 404):
            return None
        raise
    return next((tag.target_commit for tag in tags if tag.name == f"v{version}"), None)


def to_bytes(result: ScoreResult) -> bytes:
    """Return the result file, as `ScoreResult.save` writes it."""
    return (json.dumps(result.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def keep_existing(existing: bytes | None, new: ScoreResult) -> ScoreResult:
    """Return the existing result if the new one says the same, else the new one.

    When it was made, with which versions, and at which commit of the model's repository does not count: pushing results
    makes a commit there itself, and running the same line again would never come to an end.
    """
    try:
        old = ScoreResult.from_json(parse_json(existing)) if existing else None
    except BadData:
        old = None
    return old if old is not None and _without_stamp(old) == _without_stamp(new) else new


def _without_stamp(result: ScoreResult) -> bytes:
    model = {key: value for key, value in result.model.items() if key != "revision"}
    return to_bytes(replace(result, model=model, stamp={}))


def _datasets(results: Sequence[ScoreResult]) -> set[tuple[str, str]]:
    return {(naming.dataset_id(result), str(result.dataset.get("version", ""))) for result in results}


def _protocols(result: ScoreResult, results: Sequence[ScoreResult], snapshot: Snapshot, user: str) -> set[str]:
    """Return the protocols under which the user has results of a task, in this push and in the repository."""
    now = {other.label for other in results if other.task == result.task}
    file, home = f"/{result.task.replace('/', '__')}.json", f"{naming.NAMESPACE}/{user}/"
    before = {path.split("/")[2] for path in snapshot.files if path.startswith(home) and path.endswith(file)}
    return now | before
