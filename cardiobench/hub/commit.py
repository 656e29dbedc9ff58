"""Commit to a Hub repository: read files, show changes, commit, and retry after conflicting commits."""

import difflib
import hashlib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cardiobench.core.errors import HubError, one_line
from cardiobench.hub.api import NOBODY, TIMEOUT, Account, call, client_errors, status
from cardiobench.hub.outgoing import Content, check_outgoing

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

MAIN = "main"
PATHS_AT_ONCE = 50
"""Number of paths whose commits are asked for in one request."""
SHOWN_LINES = 60  # Maximum number of lines shown for a new file.
ACCESS = "access requests"
INITIAL = ".gitattributes"  # File with which the Hub creates a repository.
DESCRIPTION = "Results of the CardioBench benchmark: result files, model-index and evaluation results."

PlanChanges = Callable[["Snapshot"], Mapping[str, Content | None]]
"""Desired content of each file: bytes, a path for a large file, or None for no file. The function is called again with
the current content for each attempt."""
DELETED = "- {}: deleted"  # Change of a deleted file.


@dataclass(frozen=True)
class Target:
    """A repository and the branch to write to."""

    kind: Literal["model", "dataset", "space"]
    id: str
    revision: str = MAIN

    @property
    def pull_request(self) -> int:
        """Number of the pull request to write to; 0 for a branch."""
        match = re.fullmatch(r"refs/pr/(\d+)", self.revision)
        return int(match[1]) if match else 0

    def __str__(self) -> str:
        return f"{self.kind} {self.id}" + ("" if self.revision == MAIN else f" @ {self.revision}")


@dataclass(frozen=True)
class RepoOptions:
    """Options for the creation of a repository that does not exist yet.

    Attributes:
        private: Whether only its owners can see it.
        sdk: SDK of a Space.
        gated: Whether its owners grant access to files manually; set before anything is written, also for an existing
            repository.
    """

    private: bool = False
    sdk: str | None = None
    gated: bool = False


@dataclass(frozen=True)
class Snapshot:
    """A repository at one commit.

    Attributes:
        api: The client.
        target: The repository.
        commit: Commit of the branch; empty if there is no such repository or branch.
        private: Whether only its owners can see it.
        gated: Whether its owners grant access to its files manually.
    """

    api: "HfApi"
    target: Target
    commit: str = ""
    private: bool = False
    gated: bool = False

    @cached_property
    def files(self) -> "Mapping[str, RepoFile]":
        """Hub metadata by file path."""
        from huggingface_hub.hf_api import RepoFile

        if not self.commit:
            return {}
        listed = self.api.list_repo_tree(
            self.target.id, recursive=True, revision=self.commit, repo_type=self.target.kind
        )
        return {entry.path: entry for entry in listed if isinstance(entry, RepoFile)}

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        if path not in self.files:
            return None
        cached = self.api.hf_hub_download(self.target.id, path, revision=self.commit, repo_type=self.target.kind)
        return Path(cached).read_bytes()

    def read_matching(self, pattern: str, longest: int) -> dict[str, bytes]:
        """Return contents by path of the files whose path matches a pattern, sorted; `too_large` names the others.

        Args:
            pattern: Regular expression for the whole path.
            longest: Maximum number of bytes; larger files are not downloaded.
        """
        paths = sorted(
            path for path, entry in self.files.items() if re.fullmatch(pattern, path) and entry.size <= longest
        )
        return {path: content for path in paths if (content := self.read(path)) is not None}

    def dates(self, paths: Iterable[str]) -> dict[str, str]:
        """Return a mapping from path to the time of the last commit that changed the file, ISO 8601."""
        found: dict[str, str] = {}
        every = list(paths)
        for first in range(0, len(every), PATHS_AT_ONCE):
            some = every[first : first + PATHS_AT_ONCE]
            listed = self.api.get_paths_info(
                self.target.id, some, expand=True, revision=self.commit, repo_type=self.target.kind
            )
            found |= {one.path: one.last_commit.date.isoformat() for one in listed if one.last_commit}
        return found

    def too_large(self, pattern: str, longest: int) -> dict[str, str]:
        """Return a mapping from path to the reason for the files that `read_matching` leaves out."""
        return {
            path: f"it has {entry.size:,} bytes, but at most {longest:,} are allowed"
            for path, entry in sorted(self.files.items())
            if re.fullmatch(pattern, path) and entry.size > longest
        }

    def holds(self, path: str, content: Content | None) -> bool:
        """Return whether the file already has the desired content, comparing digests without a download."""
        entry = self.files.get(path)
        if entry is None or content is None:
            return entry is None and content is None
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        if entry.size != size:
            return False
        if entry.lfs:
            return entry.lfs.sha256 == _digest(content, "sha256", b"")
        return entry.blob_id == _digest(content, "sha1", b"blob %d\0" % size)


@dataclass(frozen=True)
class CommitResult:
    """Result of a commit.

    Attributes:
        target: The repository.
        changes: Mapping from path to its change as text; empty if there was nothing to change.
        url: URL of the commit or the pull request; empty if nothing was sent.
        pull_request: Whether it is a pull request.
    """

    target: Target
    changes: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    pull_request: bool = False


def write(
    api: "HfApi",
    target: Target,
    plan_changes: PlanChanges,
    *,
    message: str,
    dry_run: bool,
    user: Account = NOBODY,
    create: RepoOptions | None = None,
    as_pull_request: bool = False,
    on_diff: Callable[[str], None] = lambda text: None,
    sleep: Callable[[float], None] = time.sleep,
) -> CommitResult:
    """Update files of a repository in one commit, unless nothing changes.

    Args:
        api: The client.
        target: Repository and branch to write to.
        plan_changes: Function from the current files to the desired ones.
        message: First line of the commit and title of a pull request, by which an open pull request of the same user is
            found again.
        dry_run: Whether to only show the changes.
        user: Account that writes.
        create: Settings for creating a missing repository; None requires it to exist.
        as_pull_request: Whether to open a pull request instead of writing to the branch.
        on_diff: Function called with the changes before anything is sent: each as text if `dry_run`, otherwise a
            summary.
        sleep: Function that waits between attempts.

    Raises:
        HubError: The request was refused, or the Hub could not be reached after several attempts. A commit is atomic.
    """
    shown: list[Mapping[str, str]] = []
    ask = as_pull_request

    def attempt() -> CommitResult:
        nonlocal ask
        base = _find_pull_request(api, target, message, user) if ask else target
        snapshot = read_snapshot(api, base, user, create)
        wanted = _changed(snapshot, plan_changes)
        for path, content in wanted.items():
            check_outgoing(path, content)
        if create:
            _check_visibility(snapshot, create)
        changes = {path: describe(_old(snapshot, path), new, path) for path, new in wanted.items()}
        if ask and not base.pull_request and wanted and not dry_run:
            _open_pull_request(api, target, message, user)
            return attempt()  # Includes links into the pull request.
        if create and create.gated and not snapshot.gated:
            changes = {ACCESS: "+ access: requested on the page, granted manually", **changes}
        if changes and changes not in shown:
            shown.append(changes)
            head = f"{base}{' (as a pull request)' if ask else ''}"
            on_diff("\n".join([head, *changes.values()]) if dry_run else f"{head}: {summary(changes)}")
        if dry_run or not changes:
            return CommitResult(base, changes, pull_request=ask)
        try:
            return _commit(snapshot, plan_changes, changes, message, create, sleep)
        except client_errors() as error:
            # Members with read access are refused here; everybody may open a pull request.
            if status(error) != 403 or ask or target.kind == "space":
                raise
            ask = True
            return attempt()

    return call(target, attempt, on_wait=on_diff, sleep=sleep)


def summary(changes: Mapping[str, str], shown: int = 3) -> str:
    """Return a line about the changed files: their number, the first names, and the deleted ones.

    >>> summary({"a": "+ a: new", "b": "+ b: new", "c": "- c: deleted", "d": "+ d: new"}, shown=2)
    '4 files change: a, b and 2 more; deleted: c'
    """
    paths = [*changes]
    more = f" and {len(paths) - shown} more" if len(paths) > shown else ""
    deleted = [path for path, text in changes.items() if text == DELETED.format(path)]
    return f"{len(paths)} file{'s change' if len(paths) > 1 else ' changes'}: {', '.join(paths[:shown])}{more}" + (
        f"; deleted: {', '.join(deleted)}" if deleted else ""
    )


def read_snapshot(api: "HfApi", target: Target, user: Account, create: RepoOptions | None) -> Snapshot:
    """Return the current branch, or an empty one if it can be created."""
    from huggingface_hub.errors import HTTPError, RevisionNotFoundError

    try:
        facts = api.repo_info(target.id, repo_type=target.kind, revision=target.revision, timeout=TIMEOUT)
    except RevisionNotFoundError:
        if create is None:
            raise HubError(f"{target}: there is no such branch. Check the name, or create it on the Hub.") from None
        facts = api.repo_info(target.id, repo_type=target.kind, timeout=TIMEOUT)
        return Snapshot(api, target, "", bool(facts.private), _is_gated(facts))
    except HTTPError as error:
        # The Hub answers 401 without a token for a missing repository.
        absent = status(error) == 404 or (status(error) == 401 and user == NOBODY)
        if create is None or not absent:
            raise
        return Snapshot(api, target, private=create.private)
    return Snapshot(api, target, facts.sha or "", bool(facts.private), _is_gated(facts))


def _is_gated(facts: Any) -> bool:
    """Return whether access is granted manually; automatic approval protects nothing."""
    return getattr(facts, "gated", False) == "manual"


def _changed(snapshot: Snapshot, plan_changes: PlanChanges) -> dict[str, Content | None]:
    return {path: new for path, new in plan_changes(snapshot).items() if not snapshot.holds(path, new)}


def _old(snapshot: Snapshot, path: str) -> bytes | None:
    """Return the previous content for the diff; large files are not downloaded."""
    entry = snapshot.files.get(path)
    return None if entry is None else b"\0" if entry.lfs else snapshot.read(path)


def _find_pull_request(api: "HfApi", target: Target, title: str, user: Account) -> Target:
    """Return the user's open pull request with that title, for a second push; the branch if there is none."""
    numbers = _pull_requests(api, target, title, user)
    return replace(target, revision=f"refs/pr/{numbers[0]}") if numbers else target


def _open_pull_request(api: "HfApi", target: Target, title: str, user: Account) -> None:
    """Open a pull request before writing to it, so that files can contain its number; of two opened at once, the first is used."""
    opened = api.create_pull_request(target.id, title, repo_type=target.kind, description=DESCRIPTION).num
    if opened != (_pull_requests(api, target, title, user) or [opened])[0]:
        api.change_discussion_status(target.id, opened, "closed", repo_type=target.kind)


def _pull_requests(api: "HfApi", target: Target, title: str, user: Account) -> list[int]:
    """Return the numbers of the user's open pull requests with that title, oldest first."""
    if user == NOBODY:
        return []
    listed = api.get_repo_discussions(
        target.id, repo_type=target.kind, author=user.name, discussion_type="pull_request"
    )
    requests = [one for one in listed if one.author == user.name and one.title == title]
    return sorted(one.num for one in requests if one.status in ("open", "draft"))


def _commit(
    snapshot: Snapshot,
    plan_changes: PlanChanges,
    changes: Mapping[str, str],
    message: str,
    create: RepoOptions | None,
    sleep: Callable[[float], None],
) -> CommitResult:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    api, target, new = snapshot.api, snapshot.target, not snapshot.commit
    if new and create:
        _check_card(target, plan_changes(snapshot).get("README.md"))
        _create(api, target, create)
        snapshot = read_snapshot(api, target, NOBODY, None)
    if create and create.gated and not snapshot.gated:
        _restrict(api, target, new, sleep)
    operations = [
        CommitOperationDelete(path)
        if new is None
        else CommitOperationAdd(path, str(new) if isinstance(new, Path) else new)
        for path, new in _changed(snapshot, plan_changes).items()
    ]
    if not operations:
        return CommitResult(target, changes)
    try:
        done = api.create_commit(
            target.id,
            operations,
            commit_message=message,
            repo_type=target.kind,
            revision=target.revision,
            parent_commit=snapshot.commit,
        )
    except client_errors():
        raise
    except ValueError as error:  # Prefix with which the client reports that the Hub's check of a card failed.
        raise _refused_card(target, error) from None
    request = target.pull_request
    if not request:
        return CommitResult(target, changes, done.commit_url)
    discussion = api.get_discussion_details(target.id, request, repo_type=target.kind)
    if discussion.status == "draft":
        api.change_discussion_status(target.id, request, "open", repo_type=target.kind)
    return CommitResult(target, changes, discussion.url, pull_request=True)


def _check_visibility(snapshot: Snapshot, create: RepoOptions) -> None:
    """Refuse to write to a public repository if a private one was requested."""
    if create.private and not snapshot.private:
        raise HubError(
            f"{snapshot.target} exists and is public, but a private repository was requested. Make it private on the "
            "Hub, or leave --private out."
        )


def _check_card(target: Target, card: Content | None) -> None:
    """Let the Hub check a card before its repository exists, so that no empty repository is left behind.

    Raises:
        HubError: The Hub does not accept the card.
    """
    from huggingface_hub.repocard import RepoCard

    if not isinstance(card, bytes):
        return
    try:
        RepoCard(card.decode(), ignore_metadata_errors=True).validate(repo_type=target.kind)
    except client_errors():
        raise
    except ValueError as error:
        raise _refused_card(target, error) from None


def _refused_card(target: Target, error: ValueError) -> HubError:
    # The first line of the client's message says that the check failed, the next ones why.
    reason = one_line(error)
    return HubError(f"{target}: the Hub does not accept README.md: {reason or type(error).__name__}")


def _create(api: "HfApi", target: Target, create: RepoOptions) -> None:
    """Create the repository, and the branch from its first commit, if they are missing."""
    api.create_repo(target.id, repo_type=target.kind, private=create.private, space_sdk=create.sdk, exist_ok=True)
    if target.revision != MAIN:
        first = api.list_repo_commits(target.id, repo_type=target.kind)[-1].commit_id
        api.create_branch(target.id, branch=target.revision, revision=first, repo_type=target.kind, exist_ok=True)


def _restrict(api: "HfApi", target: Target, new: bool, sleep: Callable[[float], None]) -> None:
    """Let the owners of a repository grant access manually; if that is refused, delete a new repository while it is empty.

    Raises:
        HubError: The Hub refused; the message has the state of the repository and what to do.
    """
    setting = partial(api.update_repo_settings, target.id, gated="manual", repo_type=target.kind)
    try:
        call(target, setting, sleep=sleep)
    except HubError as error:
        left = "No file was sent."
        if new:  # Created by this call, which is repeated only before the repository exists.
            left = (
                "No file was sent, and the new repository was deleted again."
                if _delete_empty(api, target, sleep)
                else "No file was sent, but the new repository could not be deleted: delete it on the Hub."
            )
        raise HubError(
            f"{target}: requests for access could not be switched on: {str(error).removeprefix(f'{target}: ')} {left} "
            "Ask an owner to run this command, or give --private in place of --gated."
        ) from None


def _delete_empty(api: "HfApi", target: Target, sleep: Callable[[float], None]) -> bool:
    """Delete a repository without files, and return whether that succeeded."""

    def delete() -> bool:
        if set(api.list_repo_files(target.id, repo_type=target.kind)) - {INITIAL}:
            return False
        api.delete_repo(target.id, repo_type=target.kind, missing_ok=True)
        return True

    try:
        return call(target, delete, sleep=sleep)
    except HubError:
        return False


def _digest(content: Content, algorithm: str, head: bytes) -> str:
    if isinstance(content, bytes):
        return hashlib.new(algorithm, head + content).hexdigest()
    total = hashlib.new(algorithm, head)
    with content.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def describe(old: bytes | None, new: bytes | Path | None, path: str) -> str:
    """Describe the change of one file: a unified diff of text, the size of anything else.

    Args:
        old: Previous content; None if there was no file.
        new: New content, a path if it is too large for a diff; None if the file is deleted.
        path: Path in the repository.
    """
    if new is None:
        return DELETED.format(path)
    if isinstance(new, Path):
        return f"+ {path}: {new.stat().st_size:,} bytes"
    before, after = _text(old), _text(new)
    if before is None or after is None:
        return f"{'~' if old is not None else '+'} {path}: {len(new):,} bytes, binary"
    lines = [*difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")]
    if old is None:
        hidden = len(lines) - SHOWN_LINES
        lines = [f"+ {path}: new, {len(new):,} bytes", *lines[3 : SHOWN_LINES + 3]]
        lines += [f"  ... and {hidden - 3} more lines"] if hidden > 3 else []
    elif not lines:
        lines = [f"~ {path}: line ends only"]
    return "\n".join(_printable(line) for line in lines)


def _printable(text: str) -> str:
    """Return the text without control characters that could affect a terminal."""
    return "".join(sign if sign.isprintable() or sign == "\t" else "�" for sign in text)


def _text(content: bytes | None) -> str | None:
    """Return content as text; empty for no file, None for binary content."""
    try:
        text = (content or b"").decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
