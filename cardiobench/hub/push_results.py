"""Push result files, `model-index` and evaluation results to a model repository in one commit or pull request."""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cardiobench.core.command import command
from cardiobench.core.errors import BadConfig, BadData, HubError, MissingData
from cardiobench.core.io import files_below, read_file
from cardiobench.hub import cards, eval_results, model_index, naming
from cardiobench.hub.api import MissingRepository, call, connect, status, whoami
from cardiobench.hub.commit import CommitResult, RepoOptions, Snapshot, Target, write
from cardiobench.hub.outgoing import (
    clean_text,
    ids_below,
    leave_out_local,
    leave_out_reused,
    not_a_benchmark_score,
    public_name,
    public_result,
)
from cardiobench.models.files import display_name
from cardiobench.report.beside_references import beside_references
from cardiobench.results.analysis_result import is_analysis
from cardiobench.results.collect import ResultEntry, read_result
from cardiobench.results.formatting import coverage, tell_apart
from cardiobench.results.paths import PATTERN
from cardiobench.results.record import EMBEDDINGS, LONGEST
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    from huggingface_hub import HfApi

TITLE = "CardioBench results"
UNNAMED = "you"  # Placeholder for the user in a dry run without a token.


def find_results(folder: Path) -> list[ScoreResult]:
    """Read every result below a folder, or one result file, without private information.

    Adjacent analyses are not scores and are not part of a model card.

    Raises:
        MissingData: There are no results.
        BadData: A file is not a result, or was changed after it was written.
    """
    paths = [folder] if folder.is_file() else files_below(folder, PATTERN)
    texts = {path: read_file(path, LONGEST) for path in paths}
    results = {path: _read(path, text) for path, text in texts.items() if not is_analysis(text)}
    if not results:
        raise MissingData(f"no result in {folder}. Run: {command('eval', '--model', 'ID')}")
    ids = ids_below(folder)
    return [public_result(result, ids=ids) for result in results.values()]


def _read(path: Path, text: bytes) -> ScoreResult:
    try:
        return read_result(text)
    except BadData as error:
        raise type(error)(f"{path}: {error}") from error


def select_model(results: Sequence[ScoreResult], name: str, repository: str) -> list[ScoreResult]:
    """Return the results of a model, renamed to its repository.

    Args:
        results: Results of any models.
        name: Name under which the model was evaluated.
        repository: `org/model`.

    Raises:
        BadData: There are none, or two of the same task and protocol.
    """
    chosen: list[ScoreResult] = []
    # A name as in tables chooses one of several local models with the same folder name.
    shown = [str(one.model.get("name", "")).lower() for one in tell_apart(results)]
    for known_as in _spellings(name):
        chosen = chosen or [one for one in results if str(one.model.get("name", "")).lower() == known_as]
        chosen = chosen or [one for one, told in zip(results, shown, strict=True) if told == known_as]
    if not chosen:
        names = sorted({str(result.model.get("name", "no model")) for result in results})
        raise BadData(f"there are no results of {name}, only of {', '.join(names)}. Choose one with --model NAME.")
    seen: dict[tuple[str, str], str] = {}
    for result in chosen:
        cell, revision = (result.task, result.label), str(result.model.get("revision"))
        if cell in seen:
            raise BadData(
                f"{name} has two results of {cell[0]} with {cell[1]}, of revisions {seen[cell]} and {revision} (or of two "
                f"settings of one). Give the folder of one of them{_or_shown(chosen)}."
            )
        seen[cell] = revision
    return [public_result(result, repository) for result in chosen]


def _or_shown(results: Sequence[ScoreResult]) -> str:
    names = sorted({str(one.model["name"]) for one in tell_apart(results)})
    return f", or --model {' or '.join(names)}" if len(names) > 1 else ""


def _spellings(name: str) -> list[str]:
    """Return the names under which the results of a model may be stored, for example without the parent folders."""
    return list(dict.fromkeys(one.lower() for one in (name, display_name(name), public_name(name))))


def reference_sentences(given: Sequence[ResultEntry], name: str) -> dict[tuple[str, str], list[str]]:
    """Return the sentences that compare a model with references, such as training from scratch, for its card.

    Args:
        given: Results of the model and references, with their predictions.
        name: Name under which the model was evaluated.

    Returns:
        Mapping from task and protocol of a result to its sentences.
    """
    entries = [entry for entry in given if not not_a_benchmark_score(entry.result)]
    known_as = set(_spellings(name))
    models = {str(entry.result.model["name"]) for entry in entries}
    chosen = {model for model in models if {model.lower(), public_name(model).lower()} & known_as}
    found: dict[tuple[str, str], list[str]] = {}
    for one in beside_references(entries, chosen) if chosen else ():
        if not one.failed:
            found.setdefault((one.result.task, one.result.label), []).append(clean_text(one.text))
    return found


def push(
    results: Sequence[ScoreResult],
    repository: str,
    *,
    dry_run: bool,
    on_diff: Callable[[str], None],
    as_pull_request: bool = False,
    include_rehearsals: bool = False,
    overwrite: bool = False,
    local_datasets: Collection[str] = (),
    create: RepoOptions | None = None,
    beside: Mapping[tuple[str, str], Sequence[str]] = MappingProxyType({}),
    sleep: Callable[[float], None] = time.sleep,
) -> CommitResult:
    """Write the results of one model into its repository on the Hub.

    Args:
        results: Results chosen by `select_model`.
        repository: `org/model`.
        dry_run: Whether to only show the changes.
        on_diff: Function called with omitted results and the changes, before anything is sent.
        as_pull_request: Whether to open a pull request even if the user may write; otherwise only if needed.
        include_rehearsals: Whether to write the result files of rehearsals; they are never added to the card.
        overwrite: Whether an older or less complete result may replace another.
        local_datasets: Names of the user's own datasets whose scores may be published.
        create: Settings for creating the repository if it is missing; None requires it to exist.
        beside: Sentences for the card that compare the results with references, from `reference_sentences`.
        sleep: Function that waits between attempts.

    Raises:
        BadConfig: A repository of somebody else cannot be created.
        MissingRepository: The repository would be the user's own, and `create` was not given.
        HubError: The request was refused, or the Hub could not be reached. Local results are kept, and pushing again
            adds no duplicates.
        BadData: The card cannot be changed in place, or all results are rehearsals.
    """
    if any(result.given_embeddings for result in results):
        raise BadData(
            f"nothing was pushed to {repository}: these are results of {EMBEDDINGS}, whose origin was not verified. "
            "Push them to a dataset of results (--to-dataset), where they are ranked separately."
        )
    results = leave_out_local(leave_out_reused(results, on_diff), local_datasets, on_diff)
    rehearsals = [result for result in results if not_a_benchmark_score(result)] if include_rehearsals else []
    scores = [result for result in results if not not_a_benchmark_score(result)]
    if not include_rehearsals:
        scores = leave_out_rehearsals(results, repository, on_diff)
    api = connect()
    user = whoami(api, sleep)
    if create and user.name and not user.owns(repository):
        raise BadConfig(f"--create: {repository} is not in a namespace of {user.name}. Name a repository of your own.")
    revisions = {
        name: dataset_revision(api, name, version, sleep) for name, version in sorted(_dataset_versions(scores))
    }
    change = ModelChange(
        scores,
        rehearsals,
        repository,
        user.name or UNNAMED,
        api.endpoint,
        revisions,
        overwrite,
        beside,
    )
    try:
        done = write(
            api,
            Target("model", repository),
            change.plan_changes,
            message=TITLE,
            dry_run=dry_run,
            user=user,
            create=create,
            as_pull_request=as_pull_request or not user.owns(repository),
            on_diff=on_diff,
            sleep=sleep,
        )
    except MissingRepository as error:
        if not user.owns(repository):
            raise HubError(str(error)) from None  # Its owner has to create it.
        raise MissingRepository(f"{error} It would be yours: `cardiobench push --create` creates it.") from None
    for sentence in sorted(change.kept):
        on_diff(sentence)
    return done


def leave_out_rehearsals(
    results: Sequence[ScoreResult], repository: str, on_diff: Callable[[str], None]
) -> list[ScoreResult]:
    """Return the results that are scores of the benchmark, and report the others with the reason.

    Raises:
        Rehearsal: There are none.
    """
    scores, refused = [], []
    for result in results:
        if reasons := not_a_benchmark_score(result):
            refused.append(f"{result.task} {result.label} is not a score of the benchmark: {', '.join(reasons)}")
        else:
            scores.append(result)
    if not scores:
        raise Rehearsal(
            f"nothing was pushed to {repository}: {'; '.join(refused)}. To push only their files, add --include-rehearsals."
        )
    for sentence in refused:
        on_diff(f"left out: {sentence}")
    return scores


class Rehearsal(BadData):
    """Results that are not scores of the benchmark: of a trial run, of generated or of incomplete data."""


@dataclass
class ModelChange:
    """Desired files of a model's repository after a push of some results.

    Attributes:
        scores: Scores for the card and the evaluation results.
        rehearsals: Results on generated data, of which only the result files are written.
        repository: `org/model`.
        user: User who pushes.
        endpoint: Endpoint of the Hub.
        revisions: Mapping from dataset on the Hub to commit of the version that was used.
        overwrite: Whether an older or less complete result may replace another.
        beside: Mapping from task and protocol to sentences that compare a result with references.
        kept: Sentences about results in the repository that are kept, because the new ones are older or less complete.
    """

    scores: Sequence[ScoreResult]
    rehearsals: Sequence[ScoreResult]
    repository: str
    user: str
    endpoint: str
    revisions: Mapping[str, str | None]
    overwrite: bool = False
    beside: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def plan_changes(self, snapshot: Snapshot) -> dict[str, bytes]:
        """Return a mapping from path to content of the files that hold results."""
        wanted: dict[str, bytes] = {}
        index: list[dict[str, Any]] = []
        listed: dict[str, list[dict[str, Any]]] = {}
        revision = snapshot.target.revision.replace("/", "%2F")
        for new in self.scores:
            path = naming.result_path(new, self.user)
            result = self._choose(snapshot.read(path), new)
            url = f"{self.endpoint}/{self.repository}/blob/{revision}/{path}"
            dataset = self.revisions.get(naming.dataset_id(result))
            wanted[path] = to_bytes(result)
            if naming.defined(result):
                index.append(model_index.entry(result, self.user, url, dataset, self._sentences(snapshot, result, new)))
            if result.dataset.get("local") or result.input_condition:  # No dataset's page could list it.
                continue
            if result.label == eval_results.primary_protocol(_protocols(result, self.scores, snapshot, self.user)):
                entries = eval_results.entries(result, self.user, url, dataset)
                listed.setdefault(eval_results.path(result.task.partition("/")[0]), []).extend(entries)
        for new in self.rehearsals:
            path = naming.rehearsal_path(new, self.user)
            wanted[path] = to_bytes(self._choose(snapshot.read(path), new))
        if index:
            wanted["README.md"] = self._card(snapshot, index)
        for path, entries in listed.items():
            if entries:
                wanted[path] = eval_results.merge(snapshot.read(path), entries, f"{path} of {self.repository}")
        return wanted

    def _card(self, snapshot: Snapshot, index: Sequence[dict[str, Any]]) -> bytes:
        name, source = self.repository.partition("/")[2], f"README.md of {self.repository}"
        card = cards.text_of(snapshot.read("README.md"), source)
        return cards.merge_results(card or f"\n# {name}\n", name, index, model_index.key, source).encode()

    def _sentences(self, snapshot: Snapshot, result: ScoreResult, new: ScoreResult) -> Sequence[str]:
        """Return the sentences for a result; without new ones, a result that stays in the repository keeps its own."""
        given = self.beside.get((new.task, new.label), ()) if same_scores(result, new) else ()
        if given or result is new:
            return given
        source = f"README.md of {self.repository}"
        stated = cards.metrics_of(cards.text_of(snapshot.read("README.md"), source), source)
        return model_index.sentences(stated, result, self.user)

    def _choose(self, existing: bytes | None, new: ScoreResult) -> ScoreResult:
        """Return the result to keep in the repository: the new one, unless the existing one is newer or more complete."""
        try:
            old = ScoreResult.parse(existing) if existing else None
        except BadData:
            old = None
        if old is None or same_scores(old, new):
            return old or new
        if not self.overwrite and (worse := worse_than(new, old)):
            self.kept.add(
                f"{new.task} {new.label}: {worse}, so the one on the Hub stays. To replace it, give --overwrite."
            )
            return old
        return new


def worse_than(new: ScoreResult, old: ScoreResult) -> str:
    """Return the reason why a result must not replace another; empty if it may."""
    if _share(new) < _share(old):
        return "this result is less complete (" + " against ".join(coverage(one) for one in (new, old)) + " scored)"
    dates = [str(one.stamp.get("date", "")) for one in (new, old)]
    return f"this result is older ({' against '.join(dates)})" if dates[0] < dates[1] else ""


def _share(result: ScoreResult) -> float:
    return 0.0 if result.expected is None else result.scored / max(result.expected, 1)


def dataset_revision(api: "HfApi", name: str, version: str, sleep: Callable[[float], None] = time.sleep) -> str | None:
    """Return the commit of the dataset's repository with this version (tag `v<version>`); None if it is not published."""
    from huggingface_hub.errors import HTTPError

    def tags() -> list[Any]:
        try:
            return api.list_repo_refs(name, repo_type="dataset").tags
        except HTTPError as error:
            if status(error) in (401, 404):
                return []
            raise

    refs = call(f"dataset {name}", tags, sleep=sleep)
    return next((tag.target_commit for tag in refs if tag.name == f"v{version}"), None)


def to_bytes(result: ScoreResult) -> bytes:
    """Return the result file, as `ScoreResult.save` writes it."""
    return (json.dumps(result.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def same_scores(one: ScoreResult, other: ScoreResult) -> bool:
    """Return whether two results are equivalent.

    Time, versions and commit of the model's repository are ignored: pushing results creates a commit there, so
    otherwise pushing again would never end.
    """
    return _without_stamp(one) == _without_stamp(other)


def _without_stamp(result: ScoreResult) -> bytes:
    model = {key: value for key, value in result.model.items() if key != "revision"}
    return to_bytes(replace(result, model=model, stamp={}, predictions_sha256=""))


def _dataset_versions(results: Sequence[ScoreResult]) -> set[tuple[str, str]]:
    published = [result for result in results if not result.dataset.get("local")]
    return {(naming.dataset_id(result), str(result.dataset.get("version", ""))) for result in published}


def _protocols(result: ScoreResult, results: Sequence[ScoreResult], snapshot: Snapshot, user: str) -> set[str]:
    """Return the protocols of the user's results for a task, in this push and in the repository."""
    now = {other.label for other in results if other.task == result.task}
    file, home = f"/{result.task.replace('/', '__')}.json", f"{naming.FOLDER}/{user}/"
    before = {path.split("/")[2] for path in snapshot.files if path.startswith(home) and path.endswith(file)}
    return now | before
