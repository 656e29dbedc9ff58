"""Update the project's own repositories on the Hub, one commit each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cardiobench.core.errors import HubError
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import MAIN, CommitResult, PlanChanges, RepoOptions, Target, write

GRADIO = "6.31.0"
"""Version of gradio in every Space; the one that the pages are tested with (constraints-leaderboard.txt)."""


@dataclass(frozen=True)
class Publication:
    """Desired state of a branch of a repository.

    Attributes:
        target: Repository and branch.
        plan_changes: Function that returns the desired files.
        create: Settings for creating a missing repository.
        message: Commit message.
        tag: Tag to set on the commit if it does not exist; empty for none.
    """

    target: Target
    plan_changes: PlanChanges
    create: RepoOptions
    message: str
    tag: str = ""


def publish(
    publications: Sequence[Publication], *, dry_run: bool, on_diff: Callable[[str], None]
) -> tuple[list[CommitResult], list[HubError]]:
    """Write each publication; if one repository refuses, the others are still written.

    Further branches of a refused repository are left out, because they would create it.

    Args:
        publications: Publications in writing order.
        dry_run: Whether to only show the changes.
        on_diff: Function called with the changes, or with a note if there are none.

    Returns:
        The results of successful commits, and the errors of the others.
    """
    api = connect()
    user = whoami(api)
    written, failed = [], []
    refused: set[str] = set()
    for wanted in publications:
        if str(replace(wanted.target, revision=MAIN)) in refused:
            continue
        try:
            done = write(
                api,
                wanted.target,
                wanted.plan_changes,
                message=wanted.message,
                dry_run=dry_run,
                user=user,
                create=wanted.create,
                on_diff=on_diff,
            )
            if not dry_run and wanted.tag:
                tag = partial(api.create_tag, wanted.target.id, tag=wanted.tag, repo_type=wanted.target.kind)
                call(wanted.target, partial(tag, exist_ok=True))
        except HubError as error:
            failed.append(error)
            refused.add(str(replace(wanted.target, revision=MAIN)))
            on_diff(f"FAILED {error}")
            continue
        written.append(done)
        if not done.changes:
            on_diff(f"{done.target}: nothing to change")
        elif done.url:
            on_diff(f"{done.target}: {done.url}")
    return written, failed
