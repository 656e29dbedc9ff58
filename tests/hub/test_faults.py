"""Check that Hub failures give one-line messages, and never partial or duplicate writes."""

import logging
import os
import subprocess
import sys

import pytest
from huggingface_hub import ModelCard, constants

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData, HubError
from cardiobench.hub.push_results import push
from cardiobench.hub.results_dataset import push_to_dataset
from tests.hub.conftest import ALICE, BOB
from tests.hub.results import MODEL, result

COMMIT, UPLOAD = "POST .*/commit/", "PUT /large/"


@pytest.fixture
def model(hub, client):
    return hub.store.put("model", MODEL, {"README.md": b"# A model\n"})


def send(pauses=None, **options):
    pauses = [] if pauses is None else pauses
    return push([result()], MODEL, dry_run=False, on_diff=lambda text: None, sleep=pauses.append, **options)


def pushed(model):
    return [commit.title for commit in model.history()].count("CardioBench results")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "not logged in, or the token is not valid. Log in with `hf auth login` or set HF_TOKEN"),
        (403, "does not have write access there"),
        (404, "no such repository"),
    ],
)
def test_refusals_are_not_retried_and_give_advice(model, hub, status, words):
    hub.faults.add(COMMIT, status=status, times=2 if status == 403 else 1)  # The request for the owner is refused too.
    pauses = []
    with pytest.raises(HubError, match=words) as caught:
        send(pauses)
    assert f"HTTP {status}" in str(caught.value) and MODEL in str(caught.value)
    assert pauses == [] and pushed(model) == 0
    send()
    assert pushed(model) == 1


def test_real_hub_uses_the_same_error_texts(model, client, monkeypatch, hub):
    client("hf_NobodyKnowsThisToken")
    with pytest.raises(HubError, match="not logged in, or the token is not valid"):
        send()
    client(ALICE)
    with pytest.raises(HubError, match=r"model org/nothing: there is no such repository"):
        push([result()], "org/nothing", dry_run=False, on_diff=lambda text: None)
    with pytest.raises(HubError, match="not a valid Hub name"):
        push([result()], "org/no/name", dry_run=False, on_diff=lambda text: None)
    client(BOB)
    with pytest.raises(HubError, match="dataset org/new: there is no such repository"):
        push_to_dataset([result()], "org/new", dry_run=False, on_diff=lambda text: None)


@pytest.mark.parametrize("status", [409, 412])
def test_concurrent_commit_is_retried(model, hub, status):
    """Test a commit by another user between our read and write: we read and merge again, and both changes are present."""

    def somebody():
        model.commit("main", {"README.md": b"# Another text\n", "new.txt": b""}, (), "theirs", "someone")

    hub.faults.add(COMMIT, first=somebody, status=status if status == 409 else 0)
    send()
    assert hub.faults.all_happened and pushed(model) == 1
    assert model.files()["README.md"].endswith(b"# Another text\n") and "new.txt" in model.files()
    assert len(ModelCard.load(MODEL).data.eval_results) == 2


def test_constantly_changing_repository_ends_with_an_error(model, hub):
    hub.faults.add(COMMIT, status=412, times=99)
    with pytest.raises(HubError, match="kept changing"):
        send()
    assert pushed(model) == 0


def test_concurrent_creation_of_a_repository_succeeds(hub, client):
    hub.faults.add("POST /api/repos/create", first=lambda: hub.store.put("dataset", "org/results", {}))
    push_to_dataset([result()], "org/results", dry_run=False, on_diff=lambda text: None)
    assert hub.faults.all_happened
    assert [name for name in hub.store.repository("dataset", "org/results").files() if name.startswith("data/")]


def test_rate_limits_wait_as_long_as_requested(model, hub):
    hub.faults.add(COMMIT, status=429, headers={"Retry-After": "17"})
    pauses = []
    send(pauses)
    assert pauses == [17.0] and pushed(model) == 1


def test_temporary_failures_are_retried(model, hub):
    hub.faults.add(COMMIT, status=500, times=2)
    pauses = []
    send(pauses)
    assert pauses == [1.0, 2.0] and pushed(model) == 1 and hub.faults.all_happened


def test_permanent_failures_end_with_an_error(model, hub):
    hub.faults.add(COMMIT, status=503, times=99)
    pauses = []
    with pytest.raises(HubError, match=r"reported an internal error \(HTTP 503"):
        send(pauses)
    assert pauses == [1.0, 2.0, 4.0, 8.0] and pushed(model) == 0


def test_connection_cut_while_sending(model, hub):
    hub.faults.add(COMMIT, cut="before")
    send()
    assert pushed(model) == 1 and hub.faults.all_happened


@pytest.mark.parametrize("as_pull_request", [False, True])
def test_lost_connection_after_commit_adds_nothing_twice(model, hub, as_pull_request):
    hub.faults.add(COMMIT, cut="after")
    done = send(as_pull_request=as_pull_request)
    assert hub.faults.all_happened and len(model.pulls) == as_pull_request
    revision = "refs/pr/1" if as_pull_request else "main"
    assert [c.title for c in model.history(revision)].count("CardioBench results") == 1
    assert not done.changes, "the second attempt found everything there"
    assert model.files(revision)["README.md"].count(b"run_by: alice") == 2


def test_large_file_cut_in_mid_upload(hub, client, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # The client itself retries uploads of large files.
    hub.faults.add(UPLOAD, cut="before")
    push_to_dataset([result()], "org/results", dry_run=False, on_diff=lambda text: None)
    dataset = hub.store.repository("dataset", "org/results")
    assert hub.faults.all_happened and len(dataset.history()) == 2


def test_card_refused_by_the_hub(model, hub):
    hub.faults.add("POST /api/validate-yaml", status=400)
    with pytest.raises(HubError, match="does not accept README"):
        send()


def test_broken_card_is_named_and_left(model, hub):
    model.commit("main", {"README.md": b"---\nlicense: [mit\n---\n"}, (), "broken", "someone")
    with pytest.raises(BadData, match=f"front matter of README.md of {MODEL} is not valid YAML"):
        send()
    assert pushed(model) == 0


@pytest.mark.parametrize(
    "call",
    ["/whoami", "/refs", "GET /api/models/org/model(?!/tree)", pytest.param("/tree/", marks=pytest.mark.slow), COMMIT],
)
def test_every_call_is_tried_again(model, hub, call):
    hub.faults.add(call, status=500, times=2)
    pauses = []
    send(pauses)
    assert hub.faults.all_happened and pushed(model) == 1
    assert pauses == ([] if call == "/tree/" else [1.0, 2.0]), "the client itself retries pages of a file list"


@pytest.mark.parametrize("call", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("/whoami", "/refs")), COMMIT])
def test_unanswered_call_times_out(model, hub, monkeypatch, call):
    monkeypatch.setattr("cardiobench.hub.api.TIMEOUT", 0.2)
    hub.faults.add(call, stall=3, times=5)
    with pytest.raises(HubError, match="could not be reached"):
        send()


def test_no_network(model, hub, monkeypatch):
    hub.server.shutdown()
    hub.server.server_close()
    with pytest.raises(HubError, match=r"could not be reached .*Check the network"):
        send()


def test_offline(model, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set"):
        send()


def test_hub_failures_give_one_line_and_keep_results(model, hub, tmp_path, capsys):
    path = result().save(tmp_path / "results" / "tmed2__as.json")
    content = path.read_bytes()
    hub.faults.add(COMMIT, status=403, times=2)
    assert main(["push", str(tmp_path / "results"), "--to", MODEL, "--yes"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("HubError: ") and error.count("\n") == 1 and path.read_bytes() == content
    assert main(["push", str(tmp_path / "results"), "--to", MODEL, "--yes"]) == 0


@pytest.mark.slow
def test_tokens_are_neither_printed_nor_stored(model, hub, tmp_path, caplog, capfd):
    """Return all output and written files, with the most verbose library logging, with and without failures."""
    caplog.set_level(logging.DEBUG)
    result().save(tmp_path / "work" / "results" / "tmed2__as.json")
    hub.faults.add(COMMIT, status=500)
    hub.faults.add(COMMIT, status=403, times=2)
    environment = {**os.environ, **hub.environment(tmp_path / "home", ALICE), "HF_DEBUG": "1"}
    said = ""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "cardiobench.cli", "push", "results", "--to", MODEL, "--yes"],
            cwd=tmp_path / "work",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said += done.stdout + done.stderr
    send()
    assert "HTTP 403" in said and f"/{MODEL}/commit/" in said
    secrets = (ALICE, ALICE[3:], BOB)
    said += "".join(capfd.readouterr()) + caplog.text
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    stored = b"".join(content for commit in model.commits.values() for content in commit.files.values())
    for secret in secrets:
        assert secret not in said and secret.encode() not in written and secret.encode() not in stored


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Data processing error: CAS service error"),  # Raised by hf_xet.
        OSError(28, "No space left on device"),
        FileNotFoundError(2, "No such file or directory", "shard.parquet"),
        ConnectionAbortedError("aborted"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_in_one_repository_does_not_stop_the_others(hub, client, monkeypatch, error, capsys):
    from huggingface_hub import HfApi

    commit = HfApi.create_commit

    def fail_for_mae(api, repository, *args, **options):
        if repository.endswith("/mae"):
            raise error
        return commit(api, repository, *args, **options)

    monkeypatch.setattr(HfApi, "create_commit", fail_for_mae)
    code = main(["publish", "metrics", "mae", "dice", "--namespace", "org", "--yes"])
    said = capsys.readouterr()
    assert code == 1 and f"FAILED space org/mae: {type(error).__name__}" in said.out + said.err
    assert "space org/dice: http" in said.out and "Traceback" not in said.err
