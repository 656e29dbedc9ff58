"""Serve accounts, repositories and discussions in the format of the Hub."""

import re
from collections.abc import Mapping

import yaml

from tests.hub.request import API, Answer, route
from tests.hub.store import DATE, Refusal, Repository


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


# Subset of the categories and question types in the Hub's documentation that the tests use.
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


@route("DELETE", "/api/repos/delete")
def delete(request):
    asked = request.json
    kind, name = asked.get("type", "model"), f"{asked.get('organization') or request.known().name}/{asked['name']}"
    request.owner(name)
    request.store.repository(kind, name)
    del request.store.repositories[kind, name]
    return Answer({})


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
