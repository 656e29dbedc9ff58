"""Requests to the loopback Hub and their routing table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.hub.store import Refusal, Repository, Store, User

ROUTES = []


@dataclass(frozen=True)
class Answer:
    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    store: Store
    url: str
    user: User | None
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    method: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def known(self) -> User:
        """Return the user of the request; reject an unknown token."""
        if self.user is None:
            raise Refusal(401, "Invalid username or password.")
        return self.user

    def owner(self, repository: str) -> User:
        """Return the user of the request; reject everybody except the owner of the repository."""
        if not self.known().owns(repository):
            raise Refusal(403, "Forbidden: you have no write access to this repository")
        return self.user

    def visible(self, kind: str, name: str) -> Repository:
        """Return the repository; a private one does not exist for other users."""
        found = self.store.repository(kind, name)
        if found.private and not (self.user and self.user.owns(name)):
            raise Refusal(404, "Repository not found", "RepoNotFound")
        return found


def route(methods: str, pattern: str):
    def register(function):
        ROUTES.append((methods.split(), pattern, function))
        return function

    return register


API = r"/api/(?P<kind>model|dataset|space)s/(?P<name>[^/]+/[^/]+)"
