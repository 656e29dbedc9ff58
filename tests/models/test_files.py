"""Test Hub repositories: offline cache and error messages."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cardiobench.cli.doctor import examine
from cardiobench.core.errors import BadModel
from cardiobench.models.files import digest, distinct_models, resolve_model_files
from cardiobench.models.load import load_model
from tests.models.checkpoints import change_card
from tests.models.tiny import tiny_dinov3, tiny_open_clip, tiny_timm

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Use an empty Hub cache for this test, and no network."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def put_in_cache(cache, repository, fill):
    root = cache / f"models--{repository.replace('/', '--')}"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(COMMIT)
    fill(root / "snapshots" / COMMIT)


def test_from_the_cache_without_a_network(cache):
    put_in_cache(cache, "org/vit", tiny_timm)
    encoder = load_model("org/vit")
    assert encoder.name == "org/vit"
    assert encoder.revision == COMMIT
    assert "timm" in encoder.loaded_by
    assert load_model("org/vit", revision=COMMIT).revision == COMMIT


@pytest.mark.parametrize(("name", "why"), [("org/vit", ""), ("facebook/dinov3-vits16-pretrain-lvd1689m", ", because the card pins none")])  # fmt: skip
def test_doctor_warns_of_unpinned_commit(cache, name, why):
    put_in_cache(cache, name, tiny_dinov3 if "dinov3" in name else tiny_timm)

    def warned(**options):
        return [text for what, text in examine(name, quick=True, **options).facts if what == "warning"]

    assert warned() == [f"the newest commit is used{why}: for the same weights again, give --revision {COMMIT}"]
    assert ("commit", COMMIT) in examine(name).facts
    assert not warned(revision=COMMIT)


def test_doctor_does_not_warn_of_a_pinned_commit(cache, monkeypatch, tmp_path):
    name = "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224"
    change_card(monkeypatch, name, revision=COMMIT)
    put_in_cache(cache, name, partial(tiny_open_clip, safe=False))
    found = examine(name, quick=True)
    assert ("commit", f"{COMMIT} (pinned by the card)") in found.facts
    assert not [text for what, text in found.facts if what == "warning"]


def test_not_in_the_cache_and_no_network(cache):
    put_in_cache(cache, "org/vit", tiny_timm)
    with pytest.raises(BadModel, match="org/other is not in the Hugging Face cache") as caught:
        load_model("org/other")
    assert "hf download org/other" in str(caught.value)
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(BadModel, match=r"Did you mean 'google/medsiglip-448'\?"):
        load_model("google/medsiglip-44")
    with pytest.raises(BadModel, match=r"Did you mean 'google/medsiglip-448'\?"):
        load_model("org/MedSigLIP-448")
    with pytest.raises(BadModel, match="org/vit at revision v2 is not in the Hugging Face cache"):
        load_model("org/vit", revision="v2")


def test_local_model_is_named_by_its_folder_and_identified_by_its_content(tmp_path, monkeypatch):
    folder = tiny_timm(tmp_path / "a" / "vit", safe="both")
    shutil.copytree(folder, tmp_path / "b" / "vit")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path / "a")
    spellings = (folder, "./vit", "vit", "vit/", "../a/vit", tmp_path / "link", tmp_path / "b" / "vit")
    first, *others = map(load_model, map(str, spellings))
    assert first.name == "vit" and first.facts["local"] and len(first.revision) == 12
    assert all(one.facts == first.facts for one in others)
    assert distinct_models(["./vit", "org/vit", str(folder), "../b/vit"]) == ("./vit", "org/vit", "../b/vit")
    assert distinct_models(["../link", "org/vit", "vit/"]) == ("../link", "org/vit")
    settings = json.loads((tmp_path / "b" / "vit" / "config.json").read_text())
    (tmp_path / "b" / "vit" / "config.json").write_text(json.dumps(settings, indent=7))
    changed = load_model("../b/vit")
    assert changed.name == "vit" and changed.revision != first.revision and changed.weight_files == first.weight_files
    monkeypatch.chdir(tmp_path / "a" / "vit")
    assert load_model(".").facts == first.facts


def test_folder_with_the_name_of_a_registered_model_has_no_card(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_timm(tmp_path / "org" / "vit")
    assert (load_model("org/vit").name, load_model("org/vit").card) == ("vit", None)
    tiny_timm(tmp_path / "cardiobench" / "constant")
    assert load_model("cardiobench/constant").card is not None and not load_model("cardiobench/constant").local


def test_name_of_a_file_keeps_its_ending(tmp_path):
    folder = tiny_timm(tmp_path / "vit")
    weights = next(path for path in folder.iterdir() if path.suffix == ".safetensors")
    assert resolve_model_files(str(weights)).name == weights.name


def test_revision_of_given_weights_is_their_digest(tmp_path):
    folder = tiny_timm(tmp_path / "vit", safe="both")
    expected = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()[:12]
    assert load_model("me/vit", weights=folder).revision == expected
    two = [tmp_path / "b", tmp_path / "a"]
    two[0].write_bytes(b"world")
    two[1].write_bytes(b"hello ")
    assert digest(two) == hashlib.sha256(b"hello world").hexdigest()[:12]


def test_home_folder(tmp_path, monkeypatch):
    tiny_timm(tmp_path / "vit")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_model_files("~/vit").folder == tmp_path / "vit"


class Hub(BaseHTTPRequestHandler):
    """Run a Hub with one model, a gated model and a failing one; everything else does not exist."""

    FILES = {
        "config.json": json.dumps({"architecture": "x", "pretrained_cfg": {}}).encode(),
        "model.safetensors": b"weights",
        "pytorch_model.bin": b"the same weights again",
        "optimizer.pt": b"large and not needed",
        "modeling.py": b"print('code')",
    }
    asked: list[str] = []

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.asked.append(path)
        if "/org/gated" in path:
            return self.answer(403, X_Error_Code="GatedRepo", X_Error_Message="Access is restricted")
        if "/org/broken" in path:
            return self.answer(500, b"oops")
        if path.startswith("/api/models/org/fine"):
            revision = path.partition("/revision/")[2] or "main"
            if revision not in ("main", "v1", COMMIT):
                return self.answer(404, X_Error_Code="RevisionNotFound", X_Error_Message="Invalid rev id")
            if "/tree/" in path:
                tree = [
                    {"type": "file", "path": name, "size": len(body), "oid": "0" * 40}
                    for name, body in self.FILES.items()
                ]
                return self.answer(200, json.dumps(tree).encode())
            info = {"id": "org/fine", "sha": COMMIT, "siblings": [{"rfilename": name} for name in self.FILES]}
            return self.answer(200, json.dumps(info).encode())
        if path.startswith("/org/fine/resolve/"):
            body = self.FILES[path.rpartition("/")[2]]
            return self.answer(200, body, ETag=f'"{hashlib.sha1(body).hexdigest()}"', X_Repo_Commit=COMMIT)
        return self.answer(404, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")

    do_HEAD = do_GET


@pytest.fixture
def hub():
    Hub.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


SCRIPT = """
import json, sys
from cardiobench.core.errors import BadModel
from cardiobench.models.files import resolve_model_files
answers = []
for name, revision in json.loads(sys.argv[1]):
    try:
        source = resolve_model_files(name, revision)
        weights = source.weights(["model.safetensors", "pytorch_model.bin"])
        here = sorted(path.name for path in source.folder.iterdir())
        answers.append([source.commit, source.revision(weights), here])
    except BadModel as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


def ask(endpoint, tmp_path, *questions):
    """Return the result of (name, revision) in a new process that uses that Hub."""
    environment = {
        **os.environ,
        "HF_ENDPOINT": endpoint,
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "60",
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(questions)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_hub_download_takes_the_needed_files_only(hub, tmp_path):
    (answer,) = ask(hub, tmp_path, ("org/fine", "v1"))
    commit, revision, files = answer
    assert commit == revision == COMMIT
    assert files == ["config.json", "model.safetensors"]
    # The same request then works without the Hub.
    again = ask("http://127.0.0.1:9", tmp_path, ("org/fine", COMMIT), ("org/fine", "v1"))
    assert again == [answer, answer]


@pytest.mark.slow
def test_main_branch_is_remembered(hub, tmp_path):
    (answer,) = ask(hub, tmp_path, ("org/fine", None))
    assert ask("http://127.0.0.1:9", tmp_path, ("org/fine", None)) == [answer]


@pytest.mark.slow
def test_missing_weight_downloads(hub, tmp_path):
    ask(hub, tmp_path, ("org/fine", None))
    next((tmp_path / "home").rglob("model.safetensors")).unlink()
    (refused,) = ask("http://127.0.0.1:9", tmp_path, ("org/fine", None))
    assert "org/fine has no weights in" in refused
    assert "Files seen: config.json" in refused


def test_refusals_of_the_hub(hub, tmp_path):
    questions = ("org/gated", None), ("org/fine", "nope"), ("org/nothing", None), ("org/broken", None)
    gated, revision, missing, broken = ask(hub, tmp_path, *questions)
    assert "org/gated is gated" in gated
    assert "hf auth login" in gated
    assert "org/fine has no revision 'nope'" in revision
    assert "org/nothing is neither a folder here nor a model on the Hub" in missing
    assert "org/broken is not in the Hugging Face cache" in broken
    assert "500" in broken


@pytest.mark.slow
def test_no_network(tmp_path):
    (answer,) = ask("http://127.0.0.1:9", tmp_path, ("org/fine", None))
    assert "org/fine is not in the Hugging Face cache" in answer
    assert "hf download org/fine" in answer
