"""Test reuse of results from the loopback Hub: equal, verified results are taken; all others give a reason."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.data.open import open_dataset
from cardiobench.extensions.reuse import known
from cardiobench.extensions.reuse.missing import models_of
from cardiobench.extensions.reuse.recompute import differing
from cardiobench.hub.outgoing import public_result
from cardiobench.hub.results_dataset import parquet, predictions_path, records
from cardiobench.leaderboard.verify import Submission, check
from cardiobench.report.overview import marks
from cardiobench.results.collect import ResultEntry
from cardiobench.results.context import ResultContext
from cardiobench.results.formatting import REUSED, flags
from cardiobench.results.predictions_file import load_predictions, save_scored
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.known import check_reuse
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from tests.hub.conftest import BOB, client, hub  # noqa: F401

REPOSITORY, TASK = "org/cardiobench-results", "ptb_xl_sample/cd"
FROM_ALICE = ("--reuse", REPOSITORY, "--reuse-from", "alice")
LINE = ("eval", "--model", "cardiobench/ecg-morphology", "--tasks", TASK, "--workers", "0", "--jobs", "1")


def run(folder, *more):
    """Run in a folder with a separate cache; return the results by protocol."""
    assert main([*LINE, "--output-dir", str(folder / "results"), "--cache-dir", str(folder / "cache"), *more]) == 0
    paths = (folder / "results").glob("*/*/*/ptb_xl_sample__cd.json")
    return {path.parent.name: ScoreResult.load(path) for path in paths}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Return another user's folder with a kNN result."""
    folder = tmp_path_factory.mktemp("theirs")
    return folder, run(folder, "--protocols", "knn")["knn"]


@pytest.mark.slow
def test_verified_results_are_reused_and_others_computed(theirs, hub, client, tmp_path, capsys):  # noqa: F811
    folder, result = theirs
    hub.store.put("dataset", REPOSITORY, {"README.md": b"a card"})
    assert main(["push", str(folder / "results"), "--to-dataset", REPOSITORY, "--with-predictions", "--yes"]) == 0
    capsys.readouterr()
    only = run(tmp_path / "same", "--protocols", "knn", *FROM_ALICE)["knn"]
    said = " ".join(capsys.readouterr().out.split())
    assert f"reused from {REPOSITORY}: cardiobench/ecg-morphology, {TASK}, knn, run by alice; some of" in said
    assert "computed by alice" in flags(only) and marks(only)[1] == REUSED
    assert only.overall == result.overall and only.verdict == result.verdict
    assert only.stamp["reused"] == {"dataset": REPOSITORY, "owner": "alice"}
    assert any("run by alice" in sentence for sentence in only.warnings)
    again = run(tmp_path / "same", "--protocols", "knn")["knn"]
    assert again == only, "later it is present, with its predictions"

    client(BOB)
    mine = str(tmp_path / "same" / "results")
    places = (("--to", "bob/m", "--model", "cardiobench/ecg-morphology"), ("--to-dataset", REPOSITORY))
    for target in (*places, *((*place, "--include-rehearsals") for place in places)):
        assert main(["push", mine, *target, "--yes"]) != 0
        refused = " ".join(capsys.readouterr().err.split())
        assert "only its owner can push it (dataset org/cardiobench-results, owner alice)" in refused
    lie = ResultEntry(Path("x"), public_result(again), pushed_by="bob")
    assert "only its owner can push it" in check(lie, {}).problems[0], "verify rejects it too"

    both = run(tmp_path / "more", "--protocols", "knn", "probe", *FROM_ALICE)
    assert "1 of 2 results that are not here are in org/cardiobench-results" in capsys.readouterr().out
    assert "reused" in both["knn"].stamp and "reused" not in both["probe"].stamp
    assert list((tmp_path / "more" / "cache").rglob("*.arrow"))
    none = run(tmp_path / "other", "--protocols", "knn", "--reuse", REPOSITORY, "--reuse-from", "carol")
    assert "1 results of alice; name owners that you trust" in " ".join(capsys.readouterr().out.split())
    assert "reused" not in none["knn"].stamp, "owners who are not named"


@pytest.mark.slow
def test_missing_results_have_an_estimated_cost(theirs, hub, client, tmp_path, capsys, monkeypatch):  # noqa: F811
    folder, _ = theirs
    suites = tmp_path / "suites"
    suites.mkdir()
    suite = SimpleNamespace(name="two", tasks=(TASK,), protocols=("knn", "probe"), options={})
    for module in ("names", "run"):
        monkeypatch.setattr(f"cardiobench.runner.{module}.load_suite", lambda name: suite)
    hub.store.put("dataset", REPOSITORY, {"README.md": b"a card"})
    assert main(["push", str(folder / "results"), "--to-dataset", REPOSITORY, "--with-predictions", "--yes"]) == 0
    line = ["missing", "--suite", "two", "--model", "cardiobench/ecg-morphology", "--output-dir", str(tmp_path / "out")]
    line += ["--cache-dir", str(tmp_path / "cache")]
    for more, count in (((), 2), (FROM_ALICE, 1)):
        capsys.readouterr()
        assert main([*line, *more]) == 0
        said = capsys.readouterr().out
        assert (
            f"{count} result{'s are' if count > 1 else ' is'} missing; nothing was written" in said and "about" in said
        )
    assert not (tmp_path / "out").exists()


def test_results_without_data_here_are_missing_and_listed_apart(tmp_path, capsys, monkeypatch):
    suite = SimpleNamespace(name="two", tasks=("ptb_xl/cd", TASK), protocols=("knn", "probe"), options={})
    for module in ("names", "run"):
        monkeypatch.setattr(f"cardiobench.runner.{module}.load_suite", lambda name: suite)
    line = [
        "missing",
        "--suite",
        "two",
        "--output-dir",
        str(tmp_path / "none"),
        "--cache-dir",
        str(tmp_path),
        "--model",
    ]
    assert main([*line, "cardiobench/constant"]) == 0
    said = capsys.readouterr().out
    assert (
        "4 results are missing: 2 can be computed here, 2 cannot, because their data is not here; nothing was" in said
    )
    assert said.index("missing, and the data is not here") < said.rindex("ptb_xl/cd")
    assert main([*line, "cardiobench/pixel-motion"]) == 1
    assert "cardiobench/pixel-motion has no result: the model takes echo" in capsys.readouterr().out


def altered(record):
    record["overall"]["f1_macro"]["value"] += 0.001
    record["verdict"]["difference"] += 0.001


CHANGES = {
    "altered": (altered, "its scores cannot be reproduced: "),
    "older rules": (
        lambda record: record["stamp"]["code"].update(scoring="0"),
        "another rules: scoring 0 there, scoring",
    ),
    "revision": (lambda record: record["model"].update(revision="7"), "another model revision: 7 there, 1 here"),
    "data": (lambda record: record["dataset"].update(version="0.9"), "another data version: 0.9 there, 2."),
    "settings": (lambda record: record["stamp"].update(key="0" * 16), "other settings: its key is 0000000000000000"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHANGES)
def test_different_results_are_recomputed_with_a_reason(theirs, tmp_path, monkeypatch, capsys, case):
    folder, result = theirs
    change, reason = CHANGES[case]
    record = {name: value for name, value in result.to_json().items() if name != CHECKSUM}
    change(record)
    lie = ScoreResult.from_json({**record, CHECKSUM: checksum(record)})
    (predictions,) = (folder / "results").rglob("*.predictions.parquet")
    name = predictions_path(lie, "bob")
    files = Submission(
        {}, {f"data/bob-{1:016}.parquet": parquet(records(lie, "bob"))}, {name: predictions.read_bytes()}, {}
    )
    monkeypatch.setattr(known, "read_submission", lambda repository, revision: files)
    found = run(tmp_path, "--protocols", "knn", "--reuse", REPOSITORY, "--reuse-from", "bob")["knn"]
    lines = [line for line in capsys.readouterr().out.splitlines() if "not reused" in line]
    assert "reused" not in found.stamp and found.overall == result.overall
    assert len(lines) == 1 and "run by bob" in lines[0], lines
    assert reason in lines[0]


def test_first_difference_is_named():
    stamp = {"code": {"scoring": "3", "protocol": "1"}, "key": "a"}
    result = SimpleNamespace(
        outdated=False, model={"revision": "1"}, dataset={"version": "2", "digest": "d"}, stamp=stamp
    )
    table, spec = SimpleNamespace(digest="d"), SimpleNamespace(version="2")
    cell = SimpleNamespace(
        model=SimpleNamespace(revision="1"),
        dataset=SimpleNamespace(table=table, spec=spec),
        code=stamp["code"],
        key="a",
    )

    def difference(**changes):
        changed = SimpleNamespace(**{**vars(result), **changes})
        return known._difference(ResultEntry(Path("x"), changed, pushed_by="bob"), cell)

    assert difference() == ""
    assert difference(outdated=True) == "scored by older rules, score again"
    assert difference(model={"revision": "2"}) == "another model revision: 2 there, 1 here"
    assert difference(dataset={"version": "2", "digest": "e"}) == "another data: e there, d here"
    assert "scoring 2 there, scoring 3 here" in difference(stamp={**stamp, "code": {"scoring": "2", "protocol": "1"}})
    assert "its key is b" in difference(stamp={**stamp, "key": "b"})


def test_reused_result_is_of_the_suite_of_this_run():
    theirs = {"key": "k", "suite": "cardiobench_ecg_v1"}
    assert known.stamp_of_run(theirs, "", reused={"owner": "alice"}) == {"key": "k", "reused": {"owner": "alice"}}
    assert known.stamp_of_run({"key": "k"}, "cardiobench_ecg_v2") == {"key": "k", "suite": "cardiobench_ecg_v2"}


def test_unknown_suite_is_not_one_without_results(tmp_path):
    with pytest.raises(UnknownName, match=r"no suite 'quik'\. Did you mean 'quick'"):
        models_of("quik", tmp_path)
    with pytest.raises(BadConfig, match="there is no result of the suite quick below"):
        models_of("quick", tmp_path / "none")


def test_reuse_and_overwrite_are_mutually_exclusive():
    check_reuse(RunConfig())
    with pytest.raises(BadConfig, match="Remove one of these flags"):
        check_reuse(replace(RunConfig(), reuse=REPOSITORY, reuse_from=("alice",), overwrite=True))
    with pytest.raises(BadConfig, match="Name the owners whose results you trust"):
        check_reuse(replace(RunConfig(), reuse=REPOSITORY))
    with pytest.raises(BadConfig, match="Name their dataset with --reuse"):
        check_reuse(replace(RunConfig(), reuse_from=("alice",)))


@pytest.mark.slow
def test_forged_answers_of_a_named_owner_are_refused(theirs, hub, client, tmp_path, capsys):  # noqa: F811
    """Check that perfect answers with an honest key, scored consistently, do not become a result of the run."""
    folder, result = theirs
    path = next((folder / "results").rglob("*.json"))
    frame = load_predictions(result, path.with_suffix(".predictions.parquet"))
    positive = (frame["y_true"] == "CD").to_numpy(float)
    frame = frame.assign(**{"p_no CD": 1 - positive, "p_CD": positive, "y_pred": frame["y_true"]})
    dataset = open_dataset("ptb_xl_sample", None, need_media=False)
    task = dataset.spec.task("cd")
    references = dataset.references(task)
    joined = Predictions.join(references, frame, task)
    context = ResultContext(
        dataset=result.dataset, model=result.model, seen_in_pretraining=result.seen_in_pretraining,
        protocol="knn", options=result.options, cost=result.cost,
    )  # fmt: skip
    perfect = score(joined, references, context)
    perfect = replace(perfect, stamp={**result.stamp, "key": result.stamp["key"]})
    forged, _ = save_scored(perfect, joined.frame, tmp_path / "forged" / path.relative_to(folder))
    assert forged.score.value == 1
    hub.store.put("dataset", REPOSITORY, {"README.md": b"a card"})
    assert main(["push", str(tmp_path / "forged"), "--to-dataset", REPOSITORY, "--with-predictions", "--yes"]) == 0
    capsys.readouterr()
    found = run(tmp_path / "mine", "--protocols", "knn", *FROM_ALICE)["knn"]
    assert "50 of its answers were recomputed here, and differ" in " ".join(capsys.readouterr().out.split())
    assert found.overall == result.overall and not found.computed_by


def test_recomputed_answers_within_the_tolerance_agree():
    there = pd.DataFrame({"id": ["a", "b", "c"], "y_pred": ["no", "yes", "yes"], "p_yes": [0.2, 0.7, 0.9]})
    again = there.iloc[[2, 1]].assign(p_yes=[0.9, 0.7004])
    assert differing(there, again, 1e-3) == ""
    assert "differ by up to 0.00" in differing(there, again.assign(p_yes=[0.9, 0.701]), 1e-3)
    assert "1 of them name another class" in differing(there, again.assign(y_pred=["no", "yes"]), 1e-3)
    numbers = there.assign(y_pred=[50.0, 60.0, 70.0])[["id", "y_pred"]]
    assert differing(numbers, numbers[1:], 1e-3) == ""
    assert "differ by up to" in differing(numbers, numbers.assign(y_pred=[50.0, 60.0, 71.0]), 1e-3)
