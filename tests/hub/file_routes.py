"""Serve file lists, uploads, commits and downloads of a repository."""

import base64
import hashlib
import json
import re
from urllib.parse import parse_qs

import yaml

from tests.hub.request import API, Answer, route
from tests.hub.store import Refusal, git_oid, is_large

ENTRY_KEYS = {"dataset", "value", "verifyToken", "date", "source", "notes"}


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
            last = request.visible(kind, name).last_commit(path, revision)
            facts = {"lastCommit": {"id": "0" * 40, "title": last.title, "date": last.date}}
            found.append(entry(path, files[path]) | facts)
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
    """Check evaluation results by the Hub's rules: a list of entries with only these keys."""
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
