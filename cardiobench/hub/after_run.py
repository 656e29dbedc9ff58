"""Check before a run with `--push-to-hub` that pushing is possible, and push each model's results afterwards."""

from collections.abc import Sequence
from pathlib import Path

from cardiobench.core.command import command
from cardiobench.core.config import RESAMPLES
from cardiobench.core.console import Console
from cardiobench.core.errors import CardioBenchError, HubError
from cardiobench.hub.api import NOBODY, MissingRepository, call, connect, whoami
from cardiobench.hub.commit import Target, read_snapshot
from cardiobench.hub.outgoing import ids_below, public_result
from cardiobench.hub.push_results import Rehearsal, push, reference_sentences, select_model
from cardiobench.models.files import REPOSITORY
from cardiobench.results.collect import ResultEntry
from cardiobench.results.paths import folder_name
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.score_result import ScoreResult


def check_before_run(
    models: Sequence[str], resamples: int = RESAMPLES, *, given: Sequence[str] = (), local: Sequence[str] = ()
) -> list[str]:
    """Check before the run that the results of these models can be pushed.

    Args:
        models: Evaluated models.
        resamples: Number of bootstrap resamples in this run.
        given: Models known only by embeddings from elsewhere.
        local: Datasets of the run if all of them are the user's own.

    Returns:
        One sentence per model: whether its results will be committed, or proposed in a pull request.

    Raises:
        HubError: There is no token with write access, a model is a local folder, a repository does not exist, the
            number of resamples is not that of the benchmark, or the results do not belong on a model card.
    """
    if given:
        raise HubError(
            f"--push-to-hub writes to a model card, which cannot contain {EMBEDDINGS} ({', '.join(given)}). Remove the flag and push "
            f"to a dataset of results: {command('push', 'RESULTS', '--to-dataset', 'ORG/NAME', '--yes')}"
        )
    if local:
        scores_only = command("push", "RESULTS", "--to", "ORG/MODEL", "--local-dataset", *local, "--yes")
        raise HubError(
            f"all results are of your own data ({', '.join(local)}), which stay on this machine. Leave --push-to-hub out, and push only "
            f"the scores: {scores_only}"
        )
    if resamples != RESAMPLES:
        raise HubError(
            f"--push-to-hub takes results with {RESAMPLES} draws of patients, and this run has {resamples}. "
            "Leave --resamples or --push-to-hub out."
        )
    for model in models:
        if is_local(model):
            raise HubError(
                f"{model} is a local folder, so its repository is unknown. Remove --push-to-hub, and push later: "
                f"{command('push', 'RESULTS', '--model', model, '--to', 'ORG/MODEL', '--yes')}"
            )
    api = connect()
    user = whoami(api)
    if user == NOBODY:
        raise HubError("--push-to-hub needs a token. Log in with `hf auth login` or set HF_TOKEN.")
    if not user.may_write:
        raise HubError(
            "--push-to-hub needs a token with write access, but yours is read-only. Create one in your Hub settings."
        )
    for model in models:
        target = Target("model", model)
        try:
            call(target, lambda target=target: read_snapshot(api, target, user, None))  # type: ignore[misc]  # bound per model
        except MissingRepository as error:
            if not user.owns(model):
                raise
            later = command("push", "RESULTS", "--to", model, "--create", "--yes")
            raise HubError(f"{error} To create it, remove --push-to-hub, and push later: {later}") from None
    return [
        f"{model}: results will be {'committed' if user.owns(model) else 'offered in a pull request'} as {user.name}"
        for model in models
    ]


def push_all(
    results: Sequence[ScoreResult], folder: Path, console: Console, entries: Sequence[ResultEntry] = ()
) -> list[tuple[str, str]]:
    """Push the results of every model. Failures are reported together with the command that pushes them later.

    Args:
        results: Results to push.
        folder: Local folder of the results.
        console: Console that prints the changes before they are written.
        entries: All results of the folder, among them references for the cards.

    Returns:
        Pairs (model, reason) of models that were not pushed.
    """
    failed = []
    for name in dict.fromkeys(str(result.model["name"]) for result in results):
        try:
            if is_local(name):
                raise HubError(f"{name} is a local folder. Give the name of its repository.")
            selected = select_model(results, name, name)
            ids = ids_below(_folder_of(results, name, folder))
            done = push(
                [public_result(one, ids=ids) for one in selected],
                name,
                dry_run=False,
                on_diff=console.print,
                beside=reference_sentences(entries, name),
            )
        except Rehearsal as error:
            console.print(str(error))
        except CardioBenchError as error:
            to = "ORG/MODEL" if Path(name).exists() else name
            options = [*(["--model", name] if to != name else []), "--to", to]
            options += ["--create"] * isinstance(error, MissingRepository)
            source = _folder_of(results, name, folder)
            later = f"The results are kept; push them later: {command('push', source, *options, '--yes')}"
            failed.append((name, f"{error} {later}"))
            console.failure(f"push to the Hub of {name}", failed[-1][1])
        else:
            where = done.url or "nothing to change, the results are there already"
            console.print(f"{done.target}: {where}")
    return failed


def is_local(model: str) -> bool:
    """Return whether a model is a local folder, or not a valid repository name."""
    return Path(model).exists() or not REPOSITORY.fullmatch(model)


def _folder_of(results: Sequence[ScoreResult], name: str, folder: Path) -> Path:
    """Return the folder of this run's results of a model; other revisions next to it are not pushed."""
    revisions = {str(result.model["revision"])[:12] for result in results if result.model["name"] == name}
    folders = [path for one in revisions for path in (folder / folder_name(name)).glob(f"{one}*") if path.is_dir()]
    return folders[0] if len(folders) == 1 else folder
