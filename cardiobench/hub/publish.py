"""Bringing the project's own repositories on the Hub to what they should be, one commit each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cardiobench.core.errors import HubError
from cardiobench.hub.api import account, connect, explained
from cardiobench.hub.commit import CommitResult, Edit, RepoOptions, Target, write


@dataclass(frozen=True)
class Publication:
    """One branch of one repository, as it should be.

    Attributes:
        target: the branch.
        edit: what its files should be.
        create: how the repository is made where it is not there.
        message: of the commit.
        tag: set on the commit, where there is no such tag yet; empty for none.
    """

    target: Target
    edit: Edit
    create: RepoOptions
    message: str
    tag: str = ""


def publish(
    publications: Sequence[Publication], *, send: bool, show: Callable[[str], None]
) -> tuple[list[CommitResult], list[HubError]]:
    """Write each; what one repository refuses does not keep the others from being written.

    Args:
        publications: in this order.
        send: False only shows what would be written.
        show: is told what changes, and what is unchanged.

    Returns:
        What came of those that worked, and the errors of the others.
    """
    api = connect()
    user = account(api)
    written, failed = [], []
    for wanted in publications:
        try:
            done = write(
                api,
                wanted.target,
                wanted.edit,
                message=wanted.message,
                send=send,
                user=user,
                create=wanted.create,
                show=show,
            )
            if send and wanted.tag:
                with explained(str(wanted.target)):
                    api.create_tag(wanted.target.id, tag=wanted.tag, repo_type=wanted.target.kind, exist_ok=True)
        except HubError as error:
            failed.append(error)
            show(f"FAILED {error}")
            continue
        written.append(done)
        if not done.changes:
            show(f"{done.target}: nothing to change")
        elif done.url:
            show(f"{done.target}: {done.url}")
    return written, failed
