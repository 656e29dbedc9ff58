"""What the Hub answers to each request of its clients; paths and fields as the clients send and read them."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import yaml

from tests.hub.store import DATE, Refusal, Repository, Store, User, git_oid, is_large

ENTRY_KEYS = {"dataset", "value", "verifyToken", "date", "source", "notes"}
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
        """Who asks; refused when nobody knows the token."""
        if self.user is None:
            raise Refusal(401, "Invalid username or password.")
        return self.user

    def owner(self, repository: str) -> User:
        """Who asks; refused unless the repository is theirs."""
        if not self.known().owns(repository):
            raise Refusal(403, "Forbidden: you have no write access to this repository")
        return self.user

    def visible(self, kind: str, name: str) -> Repository:
        """The repository; a private one is not there for others."""
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


def front_matter(files: Mapping[str, bytes]) -> dict:
    found = re.match(r"\s*---\r?\n(.*?)\r?\n---", files.get("README.md", b"").decode("utf-8", "replace"), re.S)
    return (yaml.safe_load(found[1]) or {}) if found else {}


@route("GET", "/api/whoami-v2")
def whoami(request):
    user = request.known()
    organisations = [{"type": "org", "name": name, "roleInOrg": "write"} for name in user.organisations]
    organisations += [{"type": "org", "name": name, "roleInOrg": "read"} for name in user.reads]
    token = {"type": "access_token", "accessToken": {"displayName": "tests", "role": user.token_role}}
    return Answer({"type": "user", "id": "1", "name": user.name, "orgs": organisations, "auth": token})


@route("POST", "/api/validate-yaml")
def validate_yaml(request):
    try:
        card = front_matter({"README.md": request.json["content"].encode()})
    except yaml.YAMLError as error:
        return Answer({"errors": [{"message": str(error)}], "warnings": []}, 400)
    wrong = dataset_card_errors(card) if request.json.get("repoType") == "dataset" else []
    return Answer({"errors": [{"message": message} for message in wrong], "warnings": []}, 400 if wrong else 200)


# Of the categories and kinds of questions that the Hub's documentation names, those that may occur here.
CATEGORIES = {"video-classification", "image-classification", "image-segmentation", "keypoint-detection", "other"}
SIZES = {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"}
QUESTIONS = {"text", "checkbox", "country", "date_picker"}


def dataset_card_errors(card):
    wrong = [f"task_categories: {name}" for name in card.get("task_categories") or () if name not in CATEGORIES]
    wrong += [f"size_categories: {name}" for name in card.get("size_categories") or () if name not in SIZES]
    fields = card.get("extra_gated_fields") or {}
    return wrong + [f"extra_gated_fields: {kind}" for kind in fields.values() if kind not in QUESTIONS]


@route("POST", "/api/repos/create")
def create(request):
    asked = request.json
    kind, name = asked.get("type", "model"), f"{asked.get('organization') or request.known().name}/{asked['name']}"
    request.owner(name)
    is_private = bool(asked.get("private")) or asked.get("visibility") == "private"
    url = f"{request.url}/{'' if kind == 'model' else kind + 's/'}{name}"
    if (kind, name) in request.store.repositories:
        raise Refusal(409, "You already created this repo", body={"error": "You already created this repo", "url": url})
    request.store.repositories[kind, name] = Repository(kind, name, private=is_private)
    return Answer({"url": url, "name": name, "id": "1"})


@route("GET", API + r"(?:/revision/(?P<revision>[^/]+))?")
def info(request, kind, name, revision):
    repository = request.visible(kind, name)
    sha = repository.resolve(revision or "main")
    files = repository.commits[sha].files
    try:
        card = front_matter(files)
    except yaml.YAMLError:
        card = {}
    facts = {
        "_id": "1",
        "id": name,
        "author": name.partition("/")[0],
        "sha": sha,
        "lastModified": DATE,
        "createdAt": DATE,
        "private": repository.private,
        "gated": repository.gated,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": list(card.get("tags") or []),
        "cardData": card,
        "siblings": [{"rfilename": path} for path in sorted(files)],
    }
    if kind == "model":
        entries = [
            {"filename": path, "data": entry}
            for path, content in sorted(files.items())
            if re.fullmatch(r"\.eval_results/[^/]+\.ya?ml", path)
            for entry in yaml.safe_load(content)
        ]
        facts |= {"modelId": name, "evalResults": entries, "model-index": card.get("model-index")}
    return Answer(facts)


@route("GET", API + "/refs")
def refs(request, kind, name):
    repository = request.visible(kind, name)
    listed = [{"name": k, "ref": f"refs/heads/{k}", "targetCommit": v} for k, v in repository.branches.items()]
    tags = [{"name": k, "ref": f"refs/tags/{k}", "targetCommit": v} for k, v in repository.tags.items()]
    heads = [entry for entry in listed if not entry["name"].startswith("refs/")]
    pulls = [{**entry, "ref": entry["name"]} for entry in listed if entry["name"].startswith("refs/pr/")]
    return Answer({"branches": heads, "converts": [], "tags": tags, "pullRequests": pulls})


@route("GET", API + "/commits/(?P<revision>[^/]+)")
def commits(request, kind, name, revision):
    history = request.visible(kind, name).history(revision)
    shas = {id(commit): sha for sha, commit in request.visible(kind, name).commits.items()}
    return Answer(
        [
            {"id": shas[id(c)], "title": c.title, "message": "", "date": DATE, "authors": [{"user": c.author}]}
            for c in history
        ]
    )


@route("PUT", API + "/settings")
def settings(request, kind, name):
    request.owner(name)
    repository, asked = request.visible(kind, name), request.json
    repository.gated = asked.get("gated", repository.gated)
    return Answer({})


@route("POST", API + "/branch/(?P<branch>[^/]+)")
def branch(request, kind, name, branch):
    request.owner(name)
    repository = request.visible(kind, name)
    if branch in repository.branches:
        raise Refusal(409, "Reference already exists")
    repository.branches[branch] = repository.resolve(request.json.get("startingPoint") or "main")
    return Answer({})


@route("POST", API + "/tag/(?P<revision>[^/]+)")
def tag(request, kind, name, revision):
    request.owner(name)
    repository = request.visible(kind, name)
    if request.json["tag"] in repository.tags:
        raise Refusal(409, "Tag already exists")
    repository.tags[request.json["tag"]] = repository.resolve(revision)
    return Answer({})


@route("GET", API + "/discussions")
def discussions(request, kind, name):
    repository = request.visible(kind, name)
    wanted = [
        (number, pull)
        for number, pull in enumerate(repository.pulls, start=1)
        if request.query.get("author") in (None, pull.author) and request.query.get("status") in (None, pull.status)
    ]
    listed = [discussion(number, pull, kind, name) for number, pull in wanted]
    return Answer({"discussions": listed, "count": len(listed), "start": 0})


def discussion(number, pull, kind, name):
    return {
        "num": number,
        "title": pull.title,
        "author": {"name": pull.author},
        "createdAt": DATE,
        "status": pull.status,
        "repo": {"name": name, "type": kind},
        "isPullRequest": True,
    }


@route("POST", API + "/discussions")
def open_discussion(request, kind, name):
    repository = request.visible(kind, name)
    repository.open_pull(request.json["title"], request.known().name, repository.resolve("main"))
    repository.pulls[-1].status = "draft"
    return Answer({"num": len(repository.pulls)})


@route("GET", API + r"/discussions/(?P<number>\d+)")
def discussion_details(request, kind, name, number):
    pull = request.visible(kind, name).pulls[int(number) - 1]
    more = {"changes": {"base": "refs/heads/main"}, "filesWithConflicts": [], "events": [], "diff": ""}
    return Answer({**discussion(int(number), pull, kind, name), **more})


@route("POST", API + r"/discussions/(?P<number>\d+)/status")
def discussion_status(request, kind, name, number):
    pull = request.visible(kind, name).pulls[int(number) - 1]
    if pull.author != request.known().name:
        request.owner(name)
    pull.status = request.json["status"]
    event = {"id": "1", "type": "status-change", "createdAt": DATE, "author": {"name": pull.author}}
    return Answer({"newStatus": {**event, "data": {"status": pull.status}}})


def entry(path: str, content: bytes) -> dict:
    facts = {"type": "file", "path": path, "size": len(content), "oid": git_oid(content)}
    if is_large(path):
        oid = hashlib.sha256(content).hexdigest()
        facts |= {"oid": git_oid(f"pointer to {oid}".encode())}
        facts |= {"lfs": {"oid": oid, "size": len(content), "pointerSize": 134}}
    return facts


@route("GET", API + "/tree/(?P<revision>[^/]+)(?:/(?P<folder>.*))?")
def tree(request, kind, name, revision, folder):
    files = request.visible(kind, name).files(revision)
    inside = f"{folder.strip('/')}/" if folder.strip("/") else ""
    recursive = request.query.get("recursive", "").lower() in ("1", "true")
    listed, folders = [], set()
    for path, content in sorted(files.items()):
        if not path.startswith(inside):
            continue
        steps = path[len(inside) :].split("/")
        for depth in range(1, len(steps)) if recursive else range(1, min(2, len(steps))):
            folders.add(inside + "/".join(steps[:depth]))
        if recursive or len(steps) == 1:
            listed.append(entry(path, content))
    if inside and not listed and not folders:
        raise Refusal(404, "Entry not found", "EntryNotFound")
    made = [{"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in sorted(folders)]
    return Answer(made + listed)


@route("POST", API + "/paths-info/(?P<revision>[^/]+)")
def paths_info(request, kind, name, revision):
    files = request.visible(kind, name).files(revision)
    is_json = "json" in request.headers.get("Content-Type", "")
    paths = request.json["paths"] if is_json else parse_qs(request.body.decode())["paths"]
    found = []
    for path in [paths] if isinstance(paths, str) else paths:
        if path in files:
            found.append(entry(path, files[path]))
        elif any(file.startswith(path.rstrip("/") + "/") for file in files):
            found.append({"type": "directory", "path": path, "size": 0, "oid": "0" * 40})
    return Answer(found)


@route("POST", API + "/preupload/(?P<revision>[^/]+)")
def preupload(request, kind, name, revision):
    request.known()
    files = request.visible(kind, name).files(revision)
    modes = [
        {
            "path": file["path"],
            "uploadMode": "lfs" if is_large(file["path"]) else "regular",
            "shouldIgnore": False,
            "oid": entry(file["path"], files[file["path"]])["oid"] if file["path"] in files else None,
        }
        for file in request.json["files"]
    ]
    return Answer({"files": modes})


@route("POST", r"/(?:(?:dataset|space)s/)?[^/]+/[^/]+\.git/info/lfs/objects/batch")
def large_files(request):
    request.known()
    objects = []
    for asked in request.json["objects"]:
        known = asked["oid"] in request.store.large
        upload = {} if known else {"actions": {"upload": {"href": f"{request.url}/large/{asked['oid']}", "header": {}}}}
        objects.append({"oid": asked["oid"], "size": asked["size"], "authenticated": True, **upload})
    return Answer({"transfer": "basic", "objects": objects}, headers={"Content-Type": "application/vnd.git-lfs+json"})


@route("PUT", "/large/(?P<oid>[0-9a-f]{64})")
def large_file(request, oid):
    if hashlib.sha256(request.body).hexdigest() != oid:
        raise Refusal(400, "sha256 mismatch")
    request.store.large[oid] = request.body
    return Answer(b"")


@route("POST", API + "/commit/(?P<revision>.+)")
def commit(request, kind, name, revision):
    repository = request.visible(kind, name)
    as_pull = request.query.get("create_pr") == "1"
    pull = re.fullmatch(r"refs/pr/(\d+)", revision)
    user = request.known()
    if not as_pull and not (pull and repository.pulls[int(pull[1]) - 1].author == user.name):
        request.owner(name)
    header, added, deleted = {}, {}, []
    for item in map(json.loads, filter(None, request.body.splitlines())):
        value = item["value"]
        match item["key"]:
            case "header":
                header = value
            case "file":
                added[value["path"]] = base64.b64decode(value["content"])
            case "lfsFile":
                if value["oid"] not in request.store.large:
                    raise Refusal(400, f"the large file {value['oid']} was not uploaded")
                added[value["path"]] = request.store.large[value["oid"]]
            case "deletedFile" | "deletedFolder":
                deleted.append(value["path"])
            case other:
                raise Refusal(400, f"no operation {other}")
    head = repository.resolve(revision)
    if header.get("parentCommit") and not head.startswith(header["parentCommit"]):
        raise Refusal(412, "A commit has happened since. Please refresh and try again.")
    for path, content in added.items():
        if path.startswith(".eval_results/"):
            check_eval_results(path, content)
    answer = {"success": True, "hookOutput": ""}
    prefix = request.url + ("/" if kind == "model" else f"/{kind}s/") + name
    if as_pull:
        revision = repository.open_pull(header["summary"], user.name, head)
        answer["pullRequestUrl"] = f"{prefix}/discussions/{len(repository.pulls)}"
    sha = repository.commit(revision, added, deleted, header["summary"], user.name)
    return Answer({**answer, "commitOid": sha, "commitUrl": f"{prefix}/commit/{sha}"})


def check_eval_results(path: str, content: bytes) -> None:
    """The rules of the Hub's evaluation results: a list of entries with these keys and no others."""
    try:
        entries = yaml.safe_load(content)
        for found in entries:
            strange = set(found) - ENTRY_KEYS
            dataset, source = found["dataset"], found.get("source")
            text = isinstance(dataset["id"], str) and isinstance(dataset["task_id"], str)
            date = isinstance(found.get("date", ""), str)
            if strange or not text or not date or "value" not in found or (source and not source["url"]):
                raise ValueError(f"bad entry {found}")
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise Refusal(400, f"Invalid {path}: {error}") from error


@route("GET HEAD", r"/(?:(?P<kinds>dataset|space)s/)?(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
def resolve(request, kinds, name, revision, path):
    repository = request.visible(kinds or "model", name)
    sha = repository.resolve(revision)
    files = repository.commits[sha].files
    if path not in files:
        raise Refusal(404, "Entry not found", "EntryNotFound")
    content = files[path]
    headers = {"X-Repo-Commit": sha, "ETag": f'"{entry(path, content)["oid"]}"', "Accept-Ranges": "bytes"}
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
    if asked and request.method == "GET":
        start, stop = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {start}-{stop}/{len(content)}"
        return Answer(content[start : stop + 1], 206, headers)
    return Answer(content, 200, headers)
