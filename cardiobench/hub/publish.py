"""Update the project's own repositories on the Hub, one commit each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cardiobench.core.errors import HubError
from cardiobench.hub.api import call, connect, whoami
from cardiobench.hub.commit import CommitResult, PlanChanges, RepoOptions, Target, write

GRADIO = "6.31.0"
"""Version of gradio in every Space; the one that the pages are tested with (constraints-leaderboard.txt)."""


@dataclass(frozen=True)
class Publication:
    """One branch of one repository, as it should be.

    Attributes:
        target: The branch.
        plan_changes: Function that returns the desired files.
        create: Settings for creating a missing repository.
        message: Commit message.
        tag: Set on the commit, where there is no such tag yet; empty for none.
    """

    target: Target
    plan_changes: PlanChanges
    create: RepoOptions
    message: str
    tag: str = ""


def publish(
    publications: Sequence[Publication], *, dry_run: bool, on_diff: Callable[[str], None]
) -> tuple[list[CommitResult], list[HubError]]:
    """Write each publication; a refusal by one repository does not stop the others.

    Args:
        publications: Publications in writing order.
        dry_run: Whether to only show the changes.
        on_diff: Is called with what changes, and what is unchanged.

    Returns:
        The results of the commits that succeeded, and the errors of the others.
    """
    api = connect()
    user = whoami(api)
    written, failed = [], []
    for wanted in publications:
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
            on_diff(f"FAILED {error}")
            continue
        written.append(done)
        if not done.changes:
            on_diff(f"{done.target}: nothing to change")
        elif done.url:
            on_diff(f"{done.target}: {done.url}")
    return written, failed
