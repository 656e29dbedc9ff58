"""Check that results are kept if `--push-to-hub` fails, and that the suggested command pushes them later."""

import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard, constants

from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import HubError
from cardiobench.hub.after_run import check_before_run, push_all
from cardiobench.hub.push_results import push
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Collection
from cardiobench.runner import run as runner
from tests.hub.conftest import ALICE, BOB
from tests.hub.results import MODEL, regression, result
from tests.hub.store import User

COMMIT = "POST .*/commit/"
RESULTS = [result(), regression()]
# Faults and their messages.
FAULTS = {
    "not logged in": ({"status": 401}, "HTTP 401"),
    "no write access": ({"status": 403, "times": 99}, "HTTP 403"),
    "no repository": ({"status": 404}, "HTTP 404"),
    "conflict that stays": ({"status": 409, "times": 99}, "HTTP 409"),
    "parent that keeps moving": ({"status": 412, "times": 99}, "HTTP 412"),
    "too many requests": ({"status": 429, "times": 99, "headers": {"Retry-After": "60"}}, "HTTP 429"),
    "trouble that stays": ({"status": 500, "times": 99}, "HTTP 500"),
    "cut before": ({"cut": "before", "times": 99}, "could not be reached"),
}
PASSING = {
    "conflict": {"status": 409},
    "parent moved": {"status": 412},
    "too many requests": {"status": 429, "headers": {"Retry-After": "2"}},
    "500 twice": {"status": 500, "times": 2},
    "cut before": {"cut": "before"},
    "cut after": {"cut": "after"},
}


@pytest.fixture
def model(hub, client):
    return hub.store.put("model", MODEL, {"README.md": b"# A model\n"})


@pytest.fixture
def saved(tmp_path):
    """Return stored results of a run, the record of an analysis, and a result of another model revision."""
    folder = tmp_path / "results"
    older = result(value=0.1, model={"name": MODEL, "revision": "e" * 40})
    for one in (*RESULTS, older):
        name = f"{one.task.replace('/', '__')}.json"
        one.save(folder / "org__model" / one.model["revision"][:12] / "probe" / name)
    AnalysisResult("alignment", "camus/ef", ("camus/ef",), {}).save(
        folder / "org__model" / ("f" * 12) / "alignment" / "camus__ef.json"
    )
    return folder


@pytest.fixture
def quick(monkeypatch):
    """Disable waiting between retries."""
    monkeypatch.setattr(push, "__kwdefaults__", push.__kwdefaults__ | {"sleep": lambda seconds: None})


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def later(reason):
    """Return the command in a message."""
    return shlex.split(reason.partition("push them later: cardiobench ")[2])


def commits(model):
    return [one.title for one in model.history()].count("CardioBench results")


def check_kept_and_pushed_later(model, saved, failed, before):
    ((name, reason),) = failed
    assert name == MODEL and contents(saved) == before and commits(model) == 0
    assert main(later(reason)) == 0
    assert main(later(reason)) == 0
    assert commits(model) == 1
    assert sorted(r.metric_type for r in ModelCard.load(MODEL).data.eval_results) == ["auroc", "f1_macro", "mae"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_failed_push_can_be_repeated(model, hub, saved, quick, fault):
    what, words = FAULTS[fault]
    hub.faults.add(COMMIT, **what)
    before = contents(saved)
    failed = push_all(RESULTS, saved, Console())
    assert words in failed[0][1]
    hub.faults.waiting.clear()
    check_kept_and_pushed_later(model, saved, failed, before)


@pytest.mark.parametrize("fault", PASSING)
def test_temporary_failures_are_retried(model, hub, saved, quick, fault):
    hub.faults.add(COMMIT, **PASSING[fault])
    assert push_all(RESULTS, saved, Console()) == []
    assert hub.faults.all_happened and commits(model) == 1
    assert push_all(RESULTS, saved, Console()) == [] and commits(model) == 1
    assert len(ModelCard.load(MODEL).data.eval_results) == 3


def test_offline(model, saved, monkeypatch):
    before = contents(saved)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    failed = push_all(RESULTS, saved, Console())
    assert "HF_HUB_OFFLINE is set" in failed[0][1]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    check_kept_and_pushed_later(model, saved, failed, before)


def test_no_network(model, hub, saved, quick, monkeypatch):
    before = contents(saved)
    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.hf_api.api.endpoint", "http://127.0.0.1:9")
        patch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # No process listens on this port.
        failed = push_all(RESULTS, saved, Console())
    assert "could not be reached" in failed[0][1]
    check_kept_and_pushed_later(model, saved, failed, before)


def test_invalid_token_is_reported(model, client, saved):
    before = contents(saved)
    client("hf_NobodyKnowsThisToken")
    failed = push_all(RESULTS, saved, Console())
    assert "not logged in, or the token is not valid" in failed[0][1] and "hf_Nobody" not in failed[0][1]
    client(ALICE)
    check_kept_and_pushed_later(model, saved, failed, before)


def test_another_users_model_gets_a_pull_request(model, client, saved, capsys):
    client(BOB)
    assert push_all(RESULTS, saved, Console()) == []
    assert commits(model) == 0 and [pull.author for pull in model.pulls] == ["bob"]
    assert "/discussions/1" in capsys.readouterr().out


def test_local_model_is_not_pushed(tmp_path, client, hub, saved):
    """Test a local model, whose Hub repository is unknown: the command in the message has a placeholder for it."""
    (tmp_path / "mine").mkdir()
    name = str(tmp_path / "mine")
    failed = push_all([result(model={"name": name, "revision": "1"})], saved, Console())
    assert later(failed[0][1]) == ["push", str(saved), "--model", name, "--to", "ORG/MODEL", "--yes"]
    assert not any("/commit/" in line for line in hub.requests)


def test_rehearsal_is_not_pushed(model, hub, saved, capsys):
    twin = replace(RESULTS[0], dataset={**RESULTS[0].dataset, "twin": True, "limit": 3})
    assert push_all([twin], saved, Console()) == []
    told = " ".join(capsys.readouterr().out.split())
    assert "a synthetic twin, only the first 3 patients" in told and not any(
        "/commit/" in line for line in hub.requests
    )


def test_push_requirements_are_checked_before_a_run(model, hub, client, tmp_path, monkeypatch):
    assert check_before_run([MODEL]) == [f"{MODEL}: results will be committed as alice"]
    with pytest.raises(HubError, match="1000 draws of patients, and this run has 50"):
        check_before_run([MODEL], resamples=50)
    with pytest.raises(HubError, match="is a local folder"):
        check_before_run([str(tmp_path)])
    with pytest.raises(HubError, match="no such repository"):
        check_before_run([MODEL, "org/absent"])
    hub.store.users[BOB] = User("bob", (), ("org",))
    client(BOB)
    assert check_before_run([MODEL]) == [f"{MODEL}: results will be offered in a pull request as bob"]
    hub.store.users[BOB] = User("bob", ("org",), token_role="read")
    with pytest.raises(HubError, match="yours is read-only"):
        check_before_run([MODEL])
    client("")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(HubError, match="needs a token"):
        check_before_run([MODEL])


@pytest.fixture
def ended(monkeypatch, tmp_path):
    """Return a function that ends a run with the results `RESULTS` in one of its processes."""
    monkeypatch.setattr("cardiobench.results.collect.collect", lambda folders: Collection(()))
    monkeypatch.setattr("cardiobench.report.markdown.write_markdown", lambda *_, **__: [])

    def end(main_process=True, push_to_hub=True):
        process = SimpleNamespace(
            is_main_process=main_process,
            device="cpu",
            num_processes=1,
            wait_for_everyone=lambda: None,
        )
        monkeypatch.setattr(runner, "start_processes", lambda device: process)
        monkeypatch.setattr(
            runner,
            "load",
            lambda *arguments: SimpleNamespace(setting="", encoder=None, name=MODEL, modalities=("echo",), local=False),
        )

        def run_model(encoder, tasks, sources, protocols, context):
            context.summary.results += RESULTS
            return []

        monkeypatch.setattr(runner, "run_model", run_model)
        monkeypatch.setattr(runner, "unanswered", lambda *_: "")  # The results are those of other tasks.
        return runner.run(
            RunConfig(models=MODEL, tasks="phantom_echo/ef", output_dir=tmp_path / "out", push_to_hub=push_to_hub),
            Console(),
        )

    return end


def test_failed_push_gives_exit_code_1(model, hub, quick, ended, capsys):
    hub.faults.add(COMMIT, status=403, times=2)
    outcome = ended()
    assert outcome.exit_code == 1 and outcome.results == RESULTS
    assert "The results are kept; push them later" in " ".join(" ".join(capsys.readouterr()).split())
    assert ended().exit_code == 0 and commits(model) == 1


def test_only_the_main_process_pushes_on_request(model, hub, ended):
    ended(main_process=False)
    ended(push_to_hub=False)
    assert not hub.requests
    ended()
    assert commits(model) == 1 and sum("whoami" in request for request in hub.requests) == 2
