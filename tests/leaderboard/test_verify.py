"""Check that the valid submission passes, and that each manipulated one fails with the affected field."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from cardiobench.cli.main import main
from cardiobench.core.io import to_plain
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.hub.results_dataset import parquet, predictions_path, push_to_dataset, records
from cardiobench.leaderboard.verify import verify_submission
from cardiobench.protocols import list_protocols
from cardiobench.protocols.probe import LinearProbe
from cardiobench.results.context import ResultContext
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from tests.hub.conftest import ALICE, BOB, client, hub  # noqa: F401
from tests.hub.results import result

REPOSITORY, TASK = "org/cardiobench-results", "ptb_xl_sample/cd"


@pytest.fixture(scope="module")
def submission(tmp_path_factory):
    """Return a folder with a result on the bundled sample and its predictions, and the result."""
    dataset = open_dataset("ptb_xl_sample", None, need_media=False)
    task: Task = next(task for task in dataset.spec.tasks if task.name == TASK)
    references = dataset.references(task)
    truth = references[references["split"] == "test"]
    positive = np.random.default_rng(0).uniform(size=len(truth)) * 0.7 + 0.3 * (truth["y_true"] == task.classes[1])
    answers = pd.DataFrame({"id": truth["id"]})
    answers[f"p_{task.classes[0]}"], answers[f"p_{task.classes[1]}"] = 1 - positive, positive
    joined = Predictions.join(references, answers, task)
    facts = {**dataset.facts, "limit": None, **dataset.coverage()}
    model = {"name": "org/model", "revision": "1"}
    scored = score(joined, references, ResultContext(protocol="probe", dataset=facts, model=model))
    scored = replace(scored, stamp={**scored.stamp, "suite": "quick", "key": "1"})
    folder = tmp_path_factory.mktemp("results")
    saved, _ = save_scored(scored, joined.frame, result_path(folder / "org__model/1", "probe", TASK))
    return folder, saved


def sent(frame):
    """Return the columns of a file of predictions that are submitted."""
    return frame[[name for name in frame if name in ("id", "y_pred") or name.startswith("p_")]]


def push_all(folder, *more):
    return main(["push", str(folder), "--to-dataset", REPOSITORY, "--with-predictions", "--yes", *more])


def test_pull_request_is_scored_again_and_passes(hub, client, submission, capsys):  # noqa: F811
    folder, saved = submission
    push_to_dataset([result()], REPOSITORY, dry_run=False, on_diff=lambda text: None)
    repository = hub.store.repository("dataset", REPOSITORY)
    steps = yaml.safe_load(repository.files()[".github/workflows/submissions.yml"])["jobs"]["verify"]["steps"]
    assert any(f"cardiobench verify {REPOSITORY} --pull-requests" in step.get("run", "") for step in steps)
    client(BOB)
    assert push_all(folder) == 0 and len(repository.pulls) == 1
    sent = pd.read_parquet(io.BytesIO(repository.files("refs/pr/1")[predictions_path(saved, "bob")]))
    assert set(sent) == {"id", "y_pred", "p_no CD", "p_CD"}, "no label or other fact of a patient"
    client(ALICE)
    capsys.readouterr()
    assert main(["verify", REPOSITORY, "--pull-requests"]) == 0
    assert "refs/pr/1 ok bob: org/model, ptb_xl_sample/cd, probe" in capsys.readouterr().out


@pytest.mark.parametrize(
    "with_references", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["references", "data"]
)
def test_predictions_from_elsewhere_pass(hub, client, submission, tmp_path, monkeypatch, capsys, with_references):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    _, saved = submission
    answers = pd.read_parquet(
        result_path(submission[0] / "org__model/1", "probe", TASK).with_suffix(".predictions.parquet")
    )
    answers[["id", "p_no CD", "p_CD"]].to_csv("mine.csv", index=False)
    assert main(["references", TASK, "--out", "refs.csv"]) == 0
    given = ["--references", "refs.csv"] if with_references else []
    push_to_dataset([result()], REPOSITORY, dry_run=False, on_diff=lambda text: None)
    named = ["--model-name", "bob/mine"]
    assert main(["eval", "--predictions", "mine.csv", "--task", TASK, *given, *named]) == 0
    client(BOB)
    assert push_all("results") == 0
    capsys.readouterr()
    client(ALICE)
    assert main(["verify", REPOSITORY, "--pull-requests"]) == 0, capsys.readouterr()
    again = ScoreResult.load(next(Path("results").rglob("*.json")))
    assert again.score == saved.score and ("references_digest" in again.dataset) == with_references


def change_value(record):
    record["overall"]["f1_macro"]["value"] += 0.001
    record["verdict"]["difference"] += 0.001


def narrow_interval(record):
    estimate = record["overall"]["f1_macro"]
    estimate["low"] = estimate["value"] - 0.01


def lower_floor(record):
    record["floors"]["best_constant"]["value"] -= 0.01


MANIPULATED = {
    "a higher score": (change_value, None, "f1_macro value"),
    "a narrower interval": (narrow_interval, None, "f1_macro low"),
    "a lower floor": (lower_floor, None, "floor best_constant"),
    "other data": (lambda record: record["dataset"].update(digest="0"), None, "those here are"),
    "too many draws": (lambda record: record["stamp"].update(resamples=10**9), None, "1000000000 draws"),
    "a twin": (lambda record: record["dataset"].update(twin=True), None, "a synthetic twin"),
    "other answers": (
        None,
        lambda frame: frame.assign(**{"p_CD": frame["p_no CD"], "p_no CD": frame["p_CD"]}),
        "claimed",
    ),
    "an answer left out": (None, lambda frame: frame[1:], "coverage"),
    "a unit of the training split": (None, lambda frame: frame.assign(id=["1", *frame["id"][1:]]), "test"),
    "no predictions": (None, lambda frame: None, "Push with --with-predictions"),
    "a file of something else": (None, lambda frame: b"PAR1", "holds no predictions"),
}


QUICK = ("a higher score", "other answers", "no predictions", "a unit of the training split")


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in MANIPULATED]
)
def test_manipulated_submission_fails_with_the_reason(hub, client, submission, case, capsys):  # noqa: F811
    """The changed result gets a new, valid checksum, as a cheating submitter would add."""
    change, answers, words = MANIPULATED[case]
    folder, saved = submission
    record = json.loads(json.dumps(saved.to_json()))
    if change:
        change(record)
    cheated = ScoreResult.from_json({**record, CHECKSUM: checksum(record)})
    frame = pd.read_parquet(next(folder.rglob("*.predictions.parquet")))
    frame = answers(frame) if answers else frame
    files = {f"data/bob-{1:016}.parquet": parquet(records(cheated, "bob"))}
    if frame is not None:
        content = frame if isinstance(frame, bytes) else sent(frame).to_parquet()
        files[predictions_path(cheated, "bob")] = content
    hub.store.put("dataset", REPOSITORY, files)
    assert main(["verify", REPOSITORY, "--revision", "main"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED bob: org/model" in printed and words in printed


def pull_request(hub, author, files, deleted=()):  # noqa: F811
    """Open a pull request for a dataset with a card and a file of alice; return the outcome of each file."""
    there = {f"data/alice-{0:016}.parquet": b"PAR1", "README.md": b"a card"}
    repository = hub.store.put("dataset", REPOSITORY, there)
    repository.open_pull("mine", author, repository.resolve("main"))
    repository.commit("refs/pr/1", files, deleted, "mine", author)
    return repository


def test_existing_files_may_not_be_changed(hub, client):  # noqa: F811
    pull_request(hub, "bob", {f"data/alice-{0:016}.parquet": b"PAR2"}, ["README.md"])
    checks = verify_submission(REPOSITORY, "refs/pr/1")
    assert [check.name for check in checks] == ["README.md", f"data/alice-{0:016}.parquet"]
    assert all("may only add files" in check.problems[0] for check in checks)


FORBIDDEN = {
    f"data/alice-{1:016}.parquet": "belongs to alice, but bob opened",
    f"predictions/alice-{1:016}.parquet": "belongs to alice, but bob opened",
    f"data/Bob-{1:016}.parquet": "belongs to Bob, but bob opened",
    f"data/bob-b-{1:016}.parquet": "belongs to bob-b, but bob opened",
    ".github/workflows/submissions.yml": "may only add",
    f"data/bob-{1:016}.parquet.sh": "may only add",
    f"data/sub/bob-{1:016}.parquet": "may only add",
    f"data/bоb-{1:016}.parquet": "may only add",  # The letter o is Cyrillic.
    f"predictions/bob-{2:016}.parquet": "no result of the submission refers to it",
}


def test_pull_request_adds_only_own_files(hub, client, submission, capsys):  # noqa: F811
    """Check that each forbidden file is named with the reason, and the author's own result is still checked."""
    folder, saved = submission
    frame = sent(pd.read_parquet(next(folder.rglob("*.predictions.parquet"))))
    own = {
        f"data/bob-{1:016}.parquet": parquet(records(saved, "bob")),
        predictions_path(saved, "bob"): frame.to_parquet(index=False),
    }
    repository = pull_request(hub, "bob", {**dict.fromkeys(FORBIDDEN, b"x"), **own})
    # Commits to main after the pull request was opened are not part of the submission.
    repository.commit("main", {f"data/carol-{1:016}.parquet": b"x"}, (), "later", "carol")
    found = {check.name: check.problems for check in verify_submission(REPOSITORY, "refs/pr/1")}
    assert found.pop("bob: org/model, ptb_xl_sample/cd, probe") == ()
    assert found.keys() == FORBIDDEN.keys()
    assert all(words in found[path][0] for path, words in FORBIDDEN.items())
    assert main(["verify", REPOSITORY, "--revision", "refs/pr/1"]) == 1
    assert "FAILED .github/workflows/submissions.yml" in capsys.readouterr().out


def test_file_added_to_main_meanwhile_is_not_replaced(hub, client):  # noqa: F811
    path = f"data/bob-{1:016}.parquet"
    repository = pull_request(hub, "bob", {path: b"mine"})
    repository.commit("main", {path: b"another"}, (), "later", "alice")
    (check,) = verify_submission(REPOSITORY, "refs/pr/1")
    assert check.name == path and "main branch has a different file" in check.problems[0]


def test_pull_requests_may_not_change_the_card(hub, client, submission):  # noqa: F811
    hub.store.put("dataset", REPOSITORY, {"notes.txt": b"a dataset without a card"})
    client(BOB)
    assert push_all(submission[0]) == 0
    files = hub.store.repository("dataset", REPOSITORY).files("refs/pr/1")
    assert sorted(path.partition("/")[0] for path in files) == [".gitattributes", "data", "notes.txt", "predictions"]


def edited(rows, **changes):
    return [{**row, **changes} for row in rows]


ROWS = {
    "a value of its own": lambda rows: edited(rows, value=0.99),
    "a verdict of its own": lambda rows: edited(rows, beats_floor="above the floor"),
    "another model": lambda rows: edited(rows, model="org/other"),
    "a metric less": lambda rows: rows[1:],
    "a metric twice": lambda rows: [*rows, rows[0]],
    "a metric more": lambda rows: [*rows, {**rows[0], "metric": "sota"}],
    "a result with a key twice": lambda rows: edited(
        rows, result=rows[0]["result"].replace("{", '{"collapsed": true, ', 1)
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_columns_repeat_the_result(hub, client, submission, case):  # noqa: F811
    """Check that `load_dataset` shows the columns and that the leaderboard reads the result."""
    _, saved = submission
    rows = ROWS[case](records(saved, "bob"))
    hub.store.put("dataset", REPOSITORY, {f"data/bob-{1:016}.parquet": parquet(rows)})
    found = {check.name: check.problems for check in verify_submission(REPOSITORY, "main")}
    assert any(problems for name, problems in found.items() if name.startswith(f"data/bob-{1:016}.parquet"))


def add_to_main(hub, one, frame=None):  # noqa: F811
    files = {f"data/bob-{1:016}.parquet": parquet(records(one, "bob"))}
    if frame is not None:
        files[predictions_path(one, "bob")] = sent(frame).to_parquet(index=False)
    hub.store.put("dataset", REPOSITORY, files)
    return {check.outcome: check for check in verify_submission(REPOSITORY, "main")}


@pytest.mark.parametrize(
    "lie",
    [
        {},
        {"unit": "%"},
        {"options": {"refits": 1}},
        {"out_of_fold": True},
        {"protocol": "knn"},
        {"stamp": {**result().stamp, "resamples": 200}},
    ],
)
def test_registry_is_compared_without_public_ids(hub, client, lie):  # noqa: F811
    task = catalog.task("tmed2/as")
    options = to_plain(LinearProbe().params_for(task))
    facts = {**result().dataset, "version": catalog.spec("tmed2").version}
    found = add_to_main(hub, result(**{"options": {**options, "penalty": 1.0}, "dataset": facts, **lie}))
    assert set(found) == ({"FAILED"} if lie else {"not verifiable"})
    if not lie:
        assert "may not be published" in found["not verifiable"].notes[0]


@pytest.mark.parametrize("value", [0.0, 0.01])
def test_older_rules_are_compared_by_value_and_never_refused(hub, client, submission, monkeypatch, value):  # noqa: F811
    folder, saved = submission
    frame = pd.read_parquet(next(folder.rglob("*.predictions.parquet")))
    verdict = replace(saved.verdict, p_value=0.9, p_adjusted=0.9, word="no information shown", sentence="older")
    score = replace(saved.score, value=saved.score.value + value, se=0.5, method="older")
    older = replace(saved, verdict=verdict, overall={**saved.overall, saved.metric: score}, groups={}, warnings=())
    monkeypatch.setattr(ScoreResult, "rules", ScoreResult.rules + 1)
    found = add_to_main(hub, older, frame)
    assert set(found) == ({"FAILED"} if value else {"older rules"})
    assert any("older rules" in note for check in found.values() for note in check.notes)


@pytest.mark.slow
def test_results_of_a_run_pass(hub, client, tmp_path, monkeypatch):  # noqa: F811
    """Check each protocol as run from the command line with only some of its variants."""
    pytest.importorskip("torch", reason="the environment of the leaderboard has no models")
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path / "cache"))
    run = ["--model", "cardiobench/ecg-morphology", "--tasks", TASK, "--output-dir", str(tmp_path / "results")]
    folds = "cross_validation"
    few = ["--option", f"{folds}.sizes=XS", f"{folds}.classifiers=logistic"] if folds in list_protocols() else []
    chosen = ["--protocols", "probe", "knn", *([folds] if few else []), *few]
    assert main(["eval", *run, *chosen]) == 0
    hub.store.put("dataset", REPOSITORY, {"README.md": b"a card"})
    client(BOB)
    assert push_all(tmp_path / "results") == 0
    checks = verify_submission(REPOSITORY, "refs/pr/1")
    assert not any(check.problems for check in checks)
    outcomes = sorted(check.outcome for check in checks)
    assert outcomes == ["not verifiable", "ok", "ok"] if few else ["ok", "ok"]
    notes = [note for check in checks for note in check.notes if "refits on embeddings" in note]
    assert len(notes) == bool(few) and all("judged at a third of the level, it is p = " in note for note in notes)
