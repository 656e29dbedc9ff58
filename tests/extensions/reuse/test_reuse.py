"""Test reuse of results from the loopback Hub: equal, verified results are taken; all others give a reason."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig
from cardiobench.extensions.reuse import known
from cardiobench.hub.outgoing import public_result
from cardiobench.hub.results_dataset import parquet, predictions_path, records
from cardiobench.leaderboard.verify import Submission, check
from cardiobench.results.collect import ResultEntry
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.known import check_reuse
from tests.hub.conftest import BOB, client, hub  # noqa: F401

REPOSITORY, TASK = "org/cardiobench-results", "ptb_xl_sample/cd"
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
    only = run(tmp_path / "same", "--protocols", "knn", "--reuse", REPOSITORY)["knn"]
    said = capsys.readouterr().out
    assert f"reused from {REPOSITORY}: cardiobench/ecg-morphology, {TASK}, knn, run by alice" in said
    assert only.overall == result.overall and only.verdict == result.verdict
    assert only.stamp["reused"] == {"dataset": REPOSITORY, "owner": "alice"}
    assert any("run by alice" in sentence for sentence in only.warnings)
    assert not list((tmp_path / "same" / "cache").rglob("*.arrow")), "nothing was encoded"
    again = run(tmp_path / "same", "--protocols", "knn")["knn"]
    assert again == only, "later it is present, with its predictions"

    client(BOB)
    mine = str(tmp_path / "same" / "results")
    for target in (("--to", "bob/m", "--model", "cardiobench/ecg-morphology"), ("--to-dataset", REPOSITORY)):
        assert main(["push", mine, *target, "--yes"]) != 0
        refused = " ".join(capsys.readouterr().err.split())
        assert "only its owner can push it (dataset org/cardiobench-results, owner alice)" in refused
    lie = ResultEntry(Path("x"), public_result(again), pushed_by="bob")
    assert "only its owner can push it" in check(lie, {}).problems[0], "verify rejects it too"

    both = run(tmp_path / "more", "--protocols", "knn", "probe", "--reuse", REPOSITORY)
    assert "1 of 2 results that are not here are reused" in capsys.readouterr().out
    assert "reused" in both["knn"].stamp and "reused" not in both["probe"].stamp
    assert list((tmp_path / "more" / "cache").rglob("*.arrow"))


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
    for more, count in (((), 2), (("--reuse", REPOSITORY), 1)):
        capsys.readouterr()
        assert main([*line, *more]) == 0
        said = capsys.readouterr().out
        assert f"{count} results are missing; nothing was written" in said and "about" in said
    assert not (tmp_path / "out").exists()


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
    "data": (lambda record: record["dataset"].update(version="0.9"), "another data version: 0.9 there, 1."),
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
    found = run(tmp_path, "--protocols", "knn", "--reuse", REPOSITORY)["knn"]
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


def test_reuse_and_overwrite_are_mutually_exclusive():
    check_reuse(RunConfig())
    with pytest.raises(BadConfig, match="Remove one of these flags"):
        check_reuse(replace(RunConfig(), reuse=REPOSITORY, overwrite=True))
