"""Check which files a submission adds or changes."""

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
    """Return the account that owns a file in a dataset of results; empty for other files."""
    match = DATA.fullmatch(path) or ANSWERS.fullmatch(path)
    return match["user"] if match else ""


def digests(snapshot: Snapshot) -> dict[str, str]:
    """Return a mapping from path to digest for the files of a snapshot."""
    return {path: entry.blob_id for path, entry in snapshot.files.items()}


def read_base(api: "HfApi", target: Target, user: "Account") -> Snapshot:
    """Return the dataset at the commit where a revision branched off."""
    listed = (api.list_repo_commits(target.id, repo_type=target.kind, revision=one) for one in (MAIN, target.revision))
    before, own = ([commit.commit_id for commit in commits] for commits in listed)
    base = next((commit for commit in own if commit in set(before)), MAIN)
    return read_snapshot(api, Target(target.kind, target.id, base), user, None)


def refused_files(
    new: Mapping[str, str], base: Mapping[str, str], main: Mapping[str, str], author: str
) -> Iterator[tuple[str, str]]:
    """Yield (path, reason) for files that a pull request must not touch.

    Args:
        new: Mapping from path to digest for the files of the pull request.
        base: Mapping for the commit where it branched off.
        main: Mapping for the current main branch.
        author: Account that opened the pull request; empty for a branch, which requires write access.
    """
    for path in sorted(base.keys() | new.keys()):
        if path in base and new.get(path) != base[path]:
            yield path, "it already exists, and a submission may only add files"
        elif path in base:
            continue
        elif main.get(path, new[path]) != new[path]:
            yield path, "the main branch has a different file with this name, and a submission may only add files"
        elif not owner(path):
            yield path, "a submission may only add data/USER-DIGEST.parquet and predictions/USER-DIGEST.parquet"
        elif author and owner(path) != author:
            yield path, f"it belongs to {owner(path)}, but {author} opened the pull request"
