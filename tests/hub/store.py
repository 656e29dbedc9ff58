"""In-memory contents of a Hub: repositories, users and pull requests."""

import hashlib
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path

LARGE = (".parquet", ".safetensors", ".bin", ".pt", ".arrow", ".avi", ".mp4", ".npz", ".gz", ".zip")
DATE = "2026-01-02T03:04:05.000Z"
START = datetime(2026, 1, 1, tzinfo=UTC)


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_large(path: str) -> bool:
    return path.endswith(LARGE)


class Refusal(Exception):
    """Unsuccessful HTTP response."""

    def __init__(self, status: int, message: str = "", code: str = "", body: dict | None = None):
        super().__init__(message)
        self.status, self.message, self.code, self.body = status, message, code, body


@dataclass(frozen=True)
class User:
    name: str
    organisations: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()  # Organisations in which the user has read access only.
    token_role: str = "write"

    def owns(self, repository: str) -> bool:
        return repository.partition("/")[0] in (self.name, *self.organisations)


@dataclass(frozen=True)
class Commit:
    files: Mapping[str, bytes]
    title: str
    author: str
    parent: str | None
    date: str = "2026-01-01T00:00:00.000Z"


@dataclass
class Pull:
    title: str
    author: str
    status: str = "open"


@dataclass
class Repository:
    """Repository whose refs are branches, tags and `refs/pr/<number>`."""

    kind: str
    id: str
    private: bool = False
    gated: str | bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: list[Pull] = field(default_factory=list)

    def __post_init__(self):
        self.commit("main", {".gitattributes": b"*.parquet filter=lfs\n"}, (), "initial commit", "hub")

    def resolve(self, revision: str) -> str:
        """Return the full commit hash for a branch, tag or abbreviated hash."""
        for names in (self.branches, self.tags):
            if revision in names:
                return names[revision]
        hits = [sha for sha in self.commits if re.fullmatch(r"[0-9a-f]{7,40}", revision) and sha.startswith(revision)]
        if len(hits) != 1:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return hits[0]

    def files(self, revision: str = "main") -> Mapping[str, bytes]:
        return self.commits[self.resolve(revision)].files

    def history(self, revision: str = "main") -> list[Commit]:
        """Return the commits of a ref, newest first."""
        found, sha = [], self.resolve(revision)
        while sha:
            found.append(self.commits[sha])
            sha = found[-1].parent
        return found

    def last_commit(self, path: str, revision: str = "main") -> Commit:
        """Return the last commit that changed a file."""
        history = self.history(revision)
        content = history[0].files[path]
        same = takewhile(lambda commit: commit.files.get(path) == content, history)
        return list(same)[-1]

    def commit(self, ref: str, files: Mapping[str, bytes], deleted: Iterable[str], title: str, author: str) -> str:
        parent = self.branches.get(ref)
        kept = dict(self.commits[parent].files) if parent else {}
        for gone in deleted:
            hits = [path for path in kept if path == gone or path.startswith(gone.rstrip("/") + "/")]
            if not hits:
                raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound")
            for path in hits:
                del kept[path]
        kept |= files
        tree = "".join(f"{path}{git_oid(content)}" for path, content in sorted(kept.items()))
        sha = hashlib.sha1(f"{self.kind}{self.id}{parent}{title}{len(self.commits)}{tree}".encode()).hexdigest()
        day = START + timedelta(days=len(self.commits))
        self.commits[sha] = Commit(kept, title, author, parent, f"{day:%Y-%m-%dT%H:%M:%S}.000Z")
        self.branches[ref] = sha
        return sha

    def open_pull(self, title: str, author: str, base: str) -> str:
        self.pulls.append(Pull(title, author))
        ref = f"refs/pr/{len(self.pulls)}"
        self.branches[ref] = base
        return ref


class Store:
    """Repositories and users of one Hub."""

    def __init__(self, users: Mapping[str, User]):
        self.users = dict(users)  # Mapping from token to user.
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large: dict[str, bytes] = {}  # Mapping from SHA-256 to content.
        self.lock = threading.RLock()

    def repository(self, kind: str, name: str) -> Repository:
        if (kind, name) not in self.repositories:
            raise Refusal(404, "Repository not found", "RepoNotFound")
        return self.repositories[kind, name]

    def put(self, kind: str, name: str, content: Path | Mapping[str, bytes], author: str = "someone") -> Repository:
        """Create a repository with the files of a folder, committed to main without a client."""
        if isinstance(content, Path):
            content = {p.relative_to(content).as_posix(): p.read_bytes() for p in content.rglob("*") if p.is_file()}
        found = self.repositories.setdefault((kind, name), Repository(kind, name))
        found.commit("main", content, (), "put", author)
        return found
