"""Push results to a model repository and pull them with the unmodified client."""

import json

import pytest
import yaml
from huggingface_hub import HfApi, ModelCard, metadata_update
from huggingface_hub.repocard import metadata_eval_result

from cardiobench.cli.main import main
from cardiobench.core.errors import BadConfig, BadData, HubError, MissingData
from cardiobench.hub.commit import RepoOptions
from cardiobench.hub.naming import wrong_names
from cardiobench.hub.pull_results import pull, save
from cardiobench.hub.push_results import Rehearsal, find_results, push, select_model, to_bytes, worse_than
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.record import CHECKSUM, EditedResult
from tests.hub.conftest import ALICE, BOB
from tests.hub.results import MODEL, consistent, regression, result
from tests.hub.store import User

CARD = b"---\r\nlicense: mit  # by hand\r\n---\r\n# A model\r\n\r\nBy hand.\r\n"
RESULTS = [result(), consistent(protocol="knn", value=0.5), regression()]


@pytest.fixture
def model(hub, client):
    return hub.store.put("model", MODEL, {"README.md": CARD, "model.safetensors": b"weights"})


def send(results=RESULTS, repository=MODEL, **options):
    said = []
    done = push(results, repository, dry_run=False, on_diff=said.append, sleep=lambda seconds: None, **options)
    return done, "\n".join(said)


def test_commit_is_readable_by_hub_parsers(model):
    before = len(model.history())
    done, said = send()
    assert len(model.history()) == before + 1 and model.history()[0].title == "CardioBench results"
    assert done.url and not done.pull_request
    assert set(model.files()) == {
        ".gitattributes",
        "README.md",
        "model.safetensors",
        ".eval_results/cardiobench-camus.yaml",
        ".eval_results/cardiobench-tmed2.yaml",
        "cardiobench/alice/knn/tmed2__as.json",
        "cardiobench/alice/probe/camus__ef.json",
        "cardiobench/alice/probe/tmed2__as.json",
    }
    readme = model.files()["README.md"]
    assert readme.startswith(b"---\r\nlicense: mit  # by hand\r\n") and readme.endswith(
        b"# A model\r\n\r\nBy hand.\r\n"
    )
    found = ModelCard.load(MODEL).data.eval_results
    assert sorted((r.metric_type, r.metric_args["protocol"], r.metric_value) for r in found) == [
        ("auroc", "knn", 0.81),
        ("auroc", "probe", 0.81),
        ("f1_macro", "knn", 0.5),
        ("f1_macro", "probe", 0.7123456789012345),
        ("mae", "probe", 7.25),
    ]
    entries = HfApi().model_info(MODEL, expand=["evalResults"]).eval_results
    assert {(e.dataset_id, e.task_id, e.value) for e in entries} == {
        ("cardiobench/camus", "camus_ef_mae", 23.684210526315788),
        ("cardiobench/tmed2", "tmed2_as_f1_macro", 0.7123456789012345),
    }
    assert all(e.verify_token is None and "coverage" in e.notes and e.source_user == "alice" for e in entries)
    for entry in entries:
        path = entry.source_url.partition("/blob/main/")[2]
        assert json.loads(model.files()[path])["task"].replace("/", "_") in entry.task_id, (
            "the source is the result file"
        )
    assert "6 files change: cardiobench/alice/" in said and "+model-index:" not in said


def test_push_pull_push_changes_nothing(model):
    send()
    head, history = model.resolve("main"), len(model.history())
    pulled = pull(MODEL)
    assert [user for user, _ in pulled] == ["alice"] * 3
    by_name = sorted(pulled, key=lambda pair: (pair[1].task, pair[1].protocol))
    expected = sorted(RESULTS, key=lambda one: (one.task, one.protocol))
    assert [to_bytes(one) for _, one in by_name] == [to_bytes(one) for one in expected]
    done, _ = send([one for _, one in pulled])
    assert not done.changes and model.resolve("main") == head and len(model.history()) == history


def test_equal_scores_of_another_commit_change_nothing(model):
    """Check that the second run of a command still finds its results, although the push changed the model's revision."""
    send([result()])
    again = result(model={**result().model, "revision": model.resolve("main")}, stamp={"date": "2027-01-01"})
    assert not send([again])[0].changes
    assert send([result(value=0.9, model=again.model, stamp=again.stamp)])[0].changes
    assert (
        f'"revision": "{again.model["revision"]}"'.encode() in model.files()["cardiobench/alice/probe/tmed2__as.json"]
    )


def test_pulled_files_are_results_that_can_be_pushed(model, tmp_path):
    send()
    files = save(pull(MODEL), tmp_path)
    assert len(files) == 3 and all(file.is_relative_to(tmp_path / "alice" / "org__model") for file in files)
    done, _ = send(select_model(find_results(tmp_path / "alice"), MODEL, MODEL))
    assert not done.changes


@pytest.mark.slow
def test_results_of_two_users_are_both_kept(model, hub, client):
    send()
    hub.store.users[BOB] = type(hub.store.users[BOB])("bob", ("org",))
    client(BOB)
    send([result(value=0.25)])
    values = {(r.metric_args["run_by"], r.metric_args["protocol"]): r.metric_value
              for r in ModelCard.load(MODEL).data.eval_results if r.metric_type == "f1_macro"}  # fmt: skip
    assert values == {("alice", "probe"): 0.7123456789012345, ("alice", "knn"): 0.5, ("bob", "probe"): 0.25}
    entries = yaml.safe_load(model.files()[".eval_results/cardiobench-tmed2.yaml"])
    assert [(e["source"]["user"], e["value"]) for e in entries] == [("alice", 0.7123456789012345), ("bob", 0.25)]
    assert sorted((user, one.task) for user, one in pull(MODEL)) == [
        ("alice", "camus/ef"),
        ("alice", "tmed2/as"),
        ("alice", "tmed2/as"),
        ("bob", "tmed2/as"),
    ]
    client(ALICE)
    assert not send()[0].changes


def test_another_users_model_gets_exactly_one_pull_request(model, client):
    client(BOB)
    head = model.resolve("main")
    done, _ = send()
    assert done.pull_request and done.url.endswith("/discussions/1") and model.resolve("main") == head
    assert not send()[0].changes and len(model.pulls) == 1
    again, _ = send([result(value=0.25)])
    assert again.pull_request and len(model.pulls) == 1, "a change goes to the open pull request"
    assert len(pull(MODEL, "refs/pr/1")) == 3
    with pytest.raises(MissingData, match="refs/pr/1"):
        pull(MODEL)
    model.pulls[0].status = "closed"
    send()
    assert len(model.pulls) == 2


def test_only_own_missing_repositories_are_created(hub, client):
    with pytest.raises(HubError, match=r"no such repository .*`cardiobench push --create` creates it"):
        send()
    with pytest.raises(HubError, match="no such repository") as caught:
        send([result(model={**result().model, "name": "other/model"})], repository="other/model")
    assert "--create" not in str(caught.value), "only its owner can create it"
    assert send(create=RepoOptions(private=True))[0].url
    assert hub.store.repository("model", MODEL).private and len(pull(MODEL)) == 3
    with pytest.raises(BadConfig, match="--create: other/model is not in a namespace of alice"):
        send(repository="other/model", create=RepoOptions())


def test_pull_request_for_own_model_on_request(model):
    assert send(as_pull_request=True)[0].pull_request and len(model.pulls) == 1


def test_later_protocol_does_not_replace_the_headline(model):
    send([result()])
    send([result(protocol="knn", value=0.99)])
    (entry,) = yaml.safe_load(model.files()[".eval_results/cardiobench-tmed2.yaml"])
    assert entry["value"] == 0.7123456789012345 and "protocol probe" in entry["notes"]


def test_undefined_numbers_are_only_in_the_file(model):
    undefined = result(value=float("nan"))
    send([undefined])
    assert [r.metric_type for r in ModelCard.load(MODEL).data.eval_results] == ["auroc"]
    assert ".eval_results/cardiobench-tmed2.yaml" not in model.files()
    assert b'"value": null' in model.files()["cardiobench/alice/probe/tmed2__as.json"]


def test_revision_of_a_published_dataset_is_noted(model, hub):
    dataset = hub.store.put("dataset", "cardiobench/tmed2", {"README.md": b"# TMED-2"})
    dataset.tags["v1.0.0"] = commit = dataset.resolve("main")
    dataset.commit("main", {"x": b""}, (), "later", "someone")
    send([result()])
    (entry,) = yaml.safe_load(model.files()[".eval_results/cardiobench-tmed2.yaml"])
    assert entry["dataset"]["revision"] == commit
    assert {r.dataset_revision for r in ModelCard.load(MODEL).data.eval_results} == {commit}


def test_hub_merge_and_ours_share_one_card(model, monkeypatch):
    """Check that our result is found after another user rewrites the front matter with `metadata_update`."""
    monkeypatch.setattr(
        ModelCard, "validate", lambda *arguments, **more: None
    )  # It contacts huggingface.co regardless of the configured Hub.
    send([result()])
    more = metadata_eval_result(
        model_pretty_name="x", task_pretty_name="t", task_id="other", metrics_pretty_name="m", metrics_id="accuracy",
        metrics_value=0.4, dataset_pretty_name="Beans", dataset_id="beans",
    )  # fmt: skip
    metadata_update(MODEL, more)
    assert not send([result()])[0].changes
    send([result(value=0.5)])
    values = sorted((r.metric_type, r.metric_value) for r in ModelCard.load(MODEL).data.eval_results)
    assert values == [("accuracy", 0.4), ("auroc", 0.81), ("f1_macro", 0.5)]


def test_dry_run_is_the_default_and_shows_the_diff(model, tmp_path, capsys, hub):
    for number, one in enumerate(RESULTS):
        one.save(tmp_path / str(number) / f"{one.task.replace('/', '__')}.json")
    head = model.resolve("main")
    assert main(["push", str(tmp_path), "--to", MODEL]) == 0
    printed = capsys.readouterr().out
    assert model.resolve("main") == head and not any("/commit/" in line for line in hub.requests)
    assert "add --yes to write it" in printed and "+++ b/README.md" in printed and "+model-index:" in printed
    assert "+ .eval_results/cardiobench-tmed2.yaml: new" in printed
    assert main(["push", str(tmp_path), "--to", MODEL, "--yes"]) == 0
    assert "/commit/" in capsys.readouterr().out and model.resolve("main") != head
    assert main(["push", str(tmp_path), "--to", MODEL, "--yes"]) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert main(["pull", MODEL, "--out", str(tmp_path / "out")]) == 0
    assert "wrote 3 results" in capsys.readouterr().out


def test_dry_run_needs_no_token(model, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    said = []
    done = push(RESULTS, MODEL, dry_run=True, on_diff=said.append)
    assert done.changes and "cardiobench/you/probe/tmed2__as.json" in done.changes


def test_results_are_selected_by_model(tmp_path):
    local = result(model={"name": "./my_model", "revision": "1"})
    assert select_model([local], "./my_model", "me/model")[0].model["name"] == "me/model"
    with pytest.raises(BadData, match=r"no results of me/model, only of \./my_model\. Choose one with --model"):
        select_model([local], "me/model", "me/model")
    with pytest.raises(BadData, match="two results of tmed2/as with probe"):
        select_model([result(), result(model={"name": MODEL, "revision": "2"})], MODEL, MODEL)
    with pytest.raises(MissingData, match="no result in"):
        find_results(tmp_path)


def local_result(revision, name="vit"):
    return result(model={"name": name, "revision": revision, "local": True})


def test_local_model_is_selected_by_any_spelling_of_its_folder(tmp_path, monkeypatch):
    (tmp_path / "vit").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("vit", "./vit", str(tmp_path / "vit"), "/elsewhere/vit"):
        (chosen,) = select_model([local_result("a" * 12), result()], name, "me/vit")
        assert chosen.model["name"] == "me/vit" and "local" not in chosen.model
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "model").mkdir()
    assert select_model([result(), local_result("1", "model")], MODEL, MODEL)[0].model["name"] == MODEL
    two = [local_result("a" * 12), local_result("b" * 12)]
    with pytest.raises(BadData, match="or --model vit@aaaaaaa or vit@bbbbbbb"):
        select_model(two, "vit", "me/vit")
    (chosen,) = select_model(two, "vit@bbbbbbb", "me/vit")
    assert chosen.model["revision"] == "b" * 12


def test_name_of_a_folder_enters_no_dataset_of_results():
    assert "is not a valid model name" in wrong_names(local_result("a" * 12))[0] and not wrong_names(result())


def test_analyses_are_not_pushed(tmp_path):
    """Check that the record of an analysis next to the results is not pushed as a score."""
    AnalysisResult("alignment", "camus/ef", ("camus/ef",), {}).save(tmp_path / "alignment" / "camus__ef.json")
    with pytest.raises(MissingData, match="no result in"):
        find_results(tmp_path)
    saved = regression().save(tmp_path / "probe" / "camus__ef.json")
    assert [to_bytes(one) for one in find_results(tmp_path)] == [to_bytes(regression())]
    assert [to_bytes(one) for one in find_results(saved)] == [to_bytes(regression())]


def test_names_from_the_hub_cannot_escape_the_folder(tmp_path):
    inside = save([("alice", result(task="../x/../../y"))], tmp_path / "out")
    assert [file.relative_to(tmp_path / "out").parts[0] for file in inside] == ["alice"]
    for changes in (
        {"protocol": "../.."},
        {"model": {"name": "org/model", "revision": ".."}},
    ):
        with pytest.raises(BadData):
            save([("alice", result(**changes))], tmp_path)
    with pytest.raises(BadData):
        save([("..", result())], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_edited_result_is_refused_and_gets_no_new_checksum(model, hub, tmp_path):
    path = result().save(tmp_path / "probe" / "tmed2__as.json")
    content = json.loads(path.read_text())
    content["overall"]["f1_macro"]["value"] = 0.99
    for edited in (content, {key: value for key, value in content.items() if key != CHECKSUM}):
        path.write_text(json.dumps(edited))
        before = path.read_bytes()
        with pytest.raises(EditedResult, match=r"tmed2__as\.json: its checksum"):
            find_results(tmp_path)
        assert main(["push", str(tmp_path), "--to", MODEL, "--yes"]) == 2 and path.read_bytes() == before
    assert not any("/commit/" in line for line in hub.requests)


REHEARSALS = {
    "only the first 5 patients": {"dataset": {**result().dataset, "limit": 5}},
    "a synthetic twin": {"dataset": {**result().dataset, "twin": True}},
    "generated recordings": {"task": "phantom_ecg/cd", "dataset": {"name": "phantom_ecg", "digest": "d"}},
    "48 of 119 units scored": {"coverage": {"scored": 48, "expected": 119}},
    "files of the release are missing": {"dataset": {**result().dataset, "missing_files": 2}},
    "scored with 50 draws of patients, not 1000": {"stamp": {**result().stamp, "resamples": 50}},
    "run with seed 3, not 0": {"stamp": {**result().stamp, "seed": 3}},
    "prompts other than the dataset's": {"options": {"prompt_digest": "0" * 16}},
    "its references do not state their release": {"dataset": {"name": "tmed2", "references": "mine.csv"}},
}


@pytest.mark.parametrize("reason", REHEARSALS)
def test_rehearsal_is_not_a_benchmark_score(model, reason):
    send([result()])
    before = dict(model.files())
    rehearsal = result(value=0.9, **REHEARSALS[reason])
    with pytest.raises(Rehearsal, match=reason):
        send([rehearsal], overwrite=True)
    assert model.files() == before
    _, said = send([rehearsal, regression()])
    assert f"left out: {rehearsal.task} probe is not a score of the benchmark: {reason}" in said
    send([rehearsal], include_rehearsals=True)
    files = model.files()
    (path,) = [path for path in files if path.startswith("cardiobench/rehearsals/alice/probe/")]
    assert json.loads(files[path])["overall"]["f1_macro"]["value"] == 0.9
    assert [e["value"] for e in yaml.safe_load(files[".eval_results/cardiobench-tmed2.yaml"])] == [result().score.value]
    assert b"0.9\n" not in files["README.md"] and len(pull(MODEL)) == 2, "a dry run is not pulled as a score"


def test_rehearsals_are_written_without_replacing_scores(model):
    few = {"dataset": {**result().dataset, "limit": 5}}
    rehearsals = [result(**few), consistent(protocol="knn", value=0.5, **few), regression(**few)]
    send([*rehearsals, result(protocol="zero_shot")], include_rehearsals=True)
    paths = {path for path in model.files() if path.endswith(".json")}
    assert paths == {
        "cardiobench/alice/zero_shot/tmed2__as.json",
        "cardiobench/rehearsals/alice/probe/tmed2__as.json",
        "cardiobench/rehearsals/alice/knn/tmed2__as.json",
        "cardiobench/rehearsals/alice/probe/camus__ef.json",
    }
    with pytest.raises(
        Rehearsal, match=r"tmed2/as probe is not a score.*tmed2/as knn is not a score.*camus/ef probe is not"
    ):
        send(rehearsals)


def test_more_complete_result_replaces_another_of_the_same_day(model):
    send([result(coverage={"scored": 90, "expected": 200})], include_rehearsals=True)
    (path,) = [path for path in model.files() if path.endswith(".json")]
    _, said = send([result(value=0.6, coverage={"scored": 119, "expected": 200})], include_rehearsals=True)
    assert "stays" not in said and json.loads(model.files()[path])["coverage"]["scored"] == 119
    _, said = send([result(value=0.5, coverage={"scored": 119, "expected": 200})], include_rehearsals=True)
    assert "stays" not in said and json.loads(model.files()[path])["overall"]["f1_macro"]["value"] == 0.5


def test_older_result_never_replaces_a_newer_one(model):
    send([result()])
    older = result(value=0.6, stamp={**result().stamp, "date": "2026-01-01T00:00:00+00:00"})
    _, said = send([older])
    assert "this result is older" in said and "--overwrite" in said
    path = "cardiobench/alice/probe/tmed2__as.json"
    assert json.loads(model.files()[path])["overall"]["f1_macro"]["value"] > 0.7
    send([older], overwrite=True)
    assert json.loads(model.files()[path])["overall"]["f1_macro"]["value"] == 0.6
    send([result(coverage={"scored": 119, "expected": 200})], include_rehearsals=True)
    less = result(coverage={"scored": 90, "expected": 200})
    _, said = send([less], include_rehearsals=True)
    assert "this result is less complete (90/200 against 119/200 scored)" in said


@pytest.mark.slow
def test_member_without_write_access_opens_a_pull_request(model, hub, client):
    hub.store.users[BOB] = User("bob", (), ("org",))
    client(BOB)
    done, _ = send()
    assert done.pull_request and model.pulls[0].status == "open"
    hub.store.users[BOB] = User("bob", ("org",))
    hub.faults.add("POST .*/commit/main", status=403)  # The token has write access elsewhere.
    done, said = send([result(value=0.5)])
    assert done.pull_request and len(model.pulls) == 1 and "as a pull request" in said


def test_two_pushes_at_once_make_one_pull_request(model, hub, client):
    client(BOB)
    first = lambda: model.open_pull("CardioBench results", "bob", model.resolve("main"))  # noqa: E731
    hub.faults.add("POST .*/discussions$", first=first)
    done, _ = send()
    assert [pull.status for pull in model.pulls] == ["open", "closed"] and done.url.endswith("/discussions/1")
    assert "cardiobench/bob/probe/tmed2__as.json" in model.files("refs/pr/1")


def test_links_in_a_pull_request_lead_to_its_files(model, client):
    client(BOB)
    send()
    files = model.files("refs/pr/1")
    for entry in yaml.safe_load(files[".eval_results/cardiobench-tmed2.yaml"]):
        assert entry["source"]["url"].partition("/blob/refs%2Fpr%2F1/")[2] in files


def test_namespace_is_a_setting(model, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_NAMESPACE", "clinic")
    send([result()])
    assert "clinic/tmed2" in model.files()[".eval_results/cardiobench-tmed2.yaml"].decode()


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b'{"schema": 99}', b""])
def test_one_damaged_file_does_not_stop_a_pull(model, content, tmp_path, capsys):
    """Test an invalid result that anybody may have pushed: it is named, and the others are read."""
    send()
    path = "cardiobench/mallory/probe/tmed2__as.json"
    model.commit("main", {path: content}, (), "mine", "mallory")
    with pytest.warns(UserWarning, match=f"{path} of model {MODEL} is not a result file"):
        assert len(pull(MODEL)) == 3
    capsys.readouterr()
    assert main(["pull", MODEL, "--out", str(tmp_path / "out")]) == 0
    assert f"left out: {path}" in capsys.readouterr().out and len(list(tmp_path.glob("out/**/*.json"))) == 3


def test_completeness_is_relative_to_the_recorded_release():
    fewer_of_few, more_of_many = ({"scored": scored, "expected": expected} for scored, expected in ((5, 5), (6, 10)))
    assert worse_than(result(coverage=fewer_of_few), result(coverage=more_of_many)) == ""
    assert "less complete" in worse_than(result(coverage=more_of_many), result(coverage=fewer_of_few))
