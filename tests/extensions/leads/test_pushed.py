"""Test results of fewer leads on the Hub: pushed, verified, reused only for the same leads, and never a headline."""

import pytest
from huggingface_hub import ModelCard

from cardiobench.cli.main import main
from cardiobench.leaderboard import source, table
from cardiobench.results.score_result import ScoreResult
from tests.hub.conftest import client, hub  # noqa: F401

BOARD, MODEL, TASK = "org/cardiobench-results", "org/model", "ptb_xl_sample/cd"
NAME, LABEL = "cardiobench/ecg-morphology", "knn.leads=I,II"


def run(folder, leads, *more):
    """Run the k-nearest-neighbour protocol; return the result."""
    line = ["eval", "--model", NAME, "--tasks", TASK, "--protocols", "knn", "--condition", f"leads={leads}"]
    line += ["--workers", "0", "--jobs", "1", "--output-dir", str(folder / "results")]
    assert main([*line, "--cache-dir", str(folder / "cache"), *more]) == 0
    return ScoreResult.load(next((folder / "results").glob(f"*/*/knn.leads={leads}/*.json")))


@pytest.mark.slow
def test_results_are_reused_only_for_the_same_leads(hub, client, tmp_path, capsys):  # noqa: F811
    hub.store.put("dataset", BOARD, {"README.md": b"a card"})
    hub.store.put("model", MODEL, {"README.md": b"# Net"})
    result = run(tmp_path / "theirs", "I,II")
    pushed = ["push", str(tmp_path / "theirs" / "results"), "--yes"]
    assert main([*pushed, "--to-dataset", BOARD, "--with-predictions"]) == 0, capsys.readouterr()
    capsys.readouterr()
    assert main(["verify", BOARD, "--revision", "main"]) == 0
    assert f"ok alice: {NAME}, {TASK}, {LABEL}" in " ".join(capsys.readouterr().out.split())

    same = run(tmp_path / "same", "I,II", "--reuse", BOARD, "--reuse-from", "alice")
    assert same.overall == result.overall and same.stamp["reused"] == {"dataset": BOARD, "owner": "alice"}
    assert "run by alice" in (tmp_path / "same" / "results" / "report.md").read_text()
    other = run(tmp_path / "other", "I", "--reuse", BOARD, "--reuse-from", "alice")
    assert "reused" not in other.stamp

    (view,) = source.load([BOARD]).values()
    assert "leads=I,II" in str(table.scores(view, TASK).rows)
    assert main([*pushed, "--to", MODEL, "--model", NAME]) == 0, capsys.readouterr()
    files = hub.store.repository("model", MODEL).files()
    assert f"cardiobench/alice/{LABEL}/ptb_xl_sample__cd.json" in files
    assert not [path for path in files if path.startswith(".eval_results")], "no dataset's page lists it"
    assert all("leads=I,II" in one.metric_name for one in ModelCard.load(MODEL).data.eval_results)
