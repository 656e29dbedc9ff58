"""Files of a submission: those a pull request may add, and all others by name."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cardiobench.hub.commit import MAIN, Snapshot, Target, read_snapshot

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from cardiobench.hub.api import Account

DATA = re.compile(r"data/(?P<user>[\w.-]+)-[0-9a-f]{16}\.parquet", re.ASCII)
ANSWERS = re.compile(r"predictions/(?P<user>[\w.-]+)-[0-9a-f]{16}\.parquet", re.ASCII)


def owner(path: str) -> str:
    """Return the account in whose name a file of a dataset of results is; empty for a file of nobody."""
    match = DATA.fullmatch(path) or ANSWERS.fullmatch(path)
    return match["user"] if match else ""


def digests(snapshot: Snapshot) -> dict[str, str]:
    """Return path -> digest of the files of a snapshot."""
    return {path: entry.blob_id for path, entry in snapshot.files.items()}


def read_base(api: "HfApi", target: Target, user: "Account") -> Snapshot:
    """Return the dataset as it was when a revision left its main branch."""
    listed = (api.list_repo_commits(target.id, repo_type=target.kind, revision=one) for one in (MAIN, target.revision))
    before, own = ([commit.commit_id for commit in commits] for commits in listed)
    base = next((commit for commit in own if commit in set(before)), MAIN)
    return read_snapshot(api, Target(target.kind, target.id, base), user, None)


def refused_files(
    new: Mapping[str, str], base: Mapping[str, str], main: Mapping[str, str], author: str
) -> Iterator[tuple[str, str]]:
    """Yield (path, reason) of the files that a pull request may not touch.

    Args:
        new: Path -> digest of every file of the pull request.
        base: The same where it left the main branch.
        main: The same of the main branch now.
        author: Account that opened the pull request; empty for a branch, which only those who may write can make.
    """
    for path in sorted(base.keys() | new.keys()):
        if path in base and new.get(path) != base[path]:
            yield path, "it is there already, and a submission may only add files"
        elif path in base:
            continue
        elif main.get(path, new[path]) != new[path]:
            yield path, "the main branch has another file of that name, and a submission may only add files"
        elif not owner(path):
            yield path, "a submission may only add data/USER-DIGEST.parquet and predictions/USER-DIGEST.parquet"
        elif author and owner(path) != author:
            yield path, f"it is in the name of {owner(path)}, and {author} opened the pull request"
