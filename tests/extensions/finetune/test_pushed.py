"""Test fine-tuned results on the Hub: separate from frozen ones, and scored again with an interval that covers the seeds."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from cardiobench.cli.main import main
from cardiobench.data import catalog
from cardiobench.hub.push_results import push
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.hub.submission import without_additions
from cardiobench.leaderboard import table, verify
from cardiobench.leaderboard.boards import NOT_VERIFIABLE
from cardiobench.report.contests import contest_of
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from cardiobench.stats.variability import SEEDS
from tests.extensions.finetune.test_processes import MODEL
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import MODEL as REPOSITORY
from tests.hub.results import consistent, sent_predictions

RESULTS, SUITE = "org/cardiobench-results", "cheap_finetuned"
TUNED = {"protocol": "finetune", "variant": "full", "seen_in_pretraining": False}


def test_fine_tuned_networks_are_ranked_separately():
    frozen = consistent(value=0.7, seen_in_pretraining=False)
    refitted = replace(frozen, protocol="knn", overall={
        **frozen.overall, "f1_macro": replace(frozen.score, covers="test and training patients")})  # fmt: skip
    tuned = consistent(value=0.9, **TUNED)
    seeds = replace(tuned, variant="lora", overall={**tuned.overall, "f1_macro": replace(tuned.score, covers=SEEDS)})
    given = [ResultEntry(Path(f"{one.label}.json"), one, pushed_by="bob") for one in (frozen, refitted, tuned, seeds)]
    found = table.board(Collection(given), frozen.task)
    assert {one.entry.result.label: (one.condition, one.text) for one in found} == {
        "probe": ("frozen", "1"),
        "knn": (f"frozen, {NOT_VERIFIABLE}", "1"),
        "finetune.full": ("fine-tuned", "1"),
        "finetune.lora": (f"fine-tuned, {NOT_VERIFIABLE}", "1"),
    }
    assert len({contest_of(entry.result) for entry in given}) == 4


def test_card_names_protocol_and_page_lists_frozen_models(hub, client):  # noqa: F811
    repository = hub.store.put("model", REPOSITORY, {"README.md": b"# A model\n"})
    tuned = consistent(value=0.9, **TUNED)
    push([tuned], REPOSITORY, dry_run=False, on_diff=lambda text: None)
    assert not any("eval_results" in path for path in repository.files())
    push([tuned, consistent(protocol="study")], REPOSITORY, dry_run=False, on_diff=lambda text: None)
    assert "protocol study" in repository.files()[".eval_results/cardiobench-tmed2.yaml"].decode()
    found = {(one.metric_args["protocol"], one.metric_type) for one in ModelCard.load(REPOSITORY).data.eval_results}
    assert (
        "finetune.full",
        "f1_macro",
    ) in found and "cardiobench/alice/finetune.full/tmed2__as.json" in repository.files()


@pytest.mark.slow
def test_run_is_pushed_and_scored_again_with_its_seeds(hub, client, tmp_path, monkeypatch, capsys):  # noqa: F811
    """Test a suite with short training; an interval without the spread of seeds is refused."""
    suite = {
        "title": "Short trainings", "tasks": ["ptb_xl_sample/cd"], "protocols": ["finetune"],
        "options": {"finetune": {"epochs": 1, "seeds": 2, "rates": [1e-2]}},
        "primary_tasks": ["ptb_xl_sample/cd"], "primary_variants": {"finetune": ["full.rates=0.01.epochs=1.seeds=2"]},
    }  # fmt: skip
    (file := tmp_path / f"{SUITE}.json").write_text(json.dumps(suite))
    monkeypatch.setattr("cardiobench.scoring.suites.suite_files", lambda: {SUITE: file})
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path / "cache"))
    out = ["--output-dir", str(tmp_path / "results"), "--workers", "0"]
    modes = ["--option", 'finetune.modes=["full","last"]']
    assert main(["eval", "--model", MODEL, "--seen-in-pretraining", "none", "--suite", SUITE, *modes, *out]) == 0
    hub.store.put("dataset", RESULTS, {"README.md": b"a card"})
    assert main(["push", str(tmp_path / "results"), "--to-dataset", RESULTS, "--with-predictions", "--yes"]) == 0
    capsys.readouterr()
    assert main(["verify", RESULTS, "--revision", "main"]) == 0, capsys.readouterr()
    said = capsys.readouterr().out
    assert "refits or seeds" not in said, "their answers are in the file"
    assert "finetune.full" in said and "finetune.last" in said
    (path,) = (tmp_path / "results").glob("*/*/finetune.full.*/*.json")
    result = ScoreResult.load(path)
    content = sent_predictions(path.with_suffix(".predictions.parquet"), catalog.task(result.task))
    assert result.score.covers == SEEDS and result.verdict.family == f"{SUITE}/finetune"

    def problems(changed):
        record = {name: value for name, value in without_additions(changed).to_json().items() if name != CHECKSUM}
        lie = ScoreResult.from_json({**record, CHECKSUM: checksum(record)})
        return verify.check(ResultEntry(path, lie, pushed_by="bob"), {predictions_path(lie, "bob"): content}).problems

    assert not problems(result)
    hidden = replace(result.score, se=0.5 * result.score.se)
    assert problems(replace(result, overall={**result.overall, result.metric: hidden}))
    assert problems(replace(result, options={**result.options, "epochs": 50}))
