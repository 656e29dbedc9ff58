"""Test complete runs in this process: files, resuming, coverage, inapplicable protocols and failures."""

import dataclasses
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from cardiobench.core.config import RunConfig, ScoreConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import BadConfig, BadData, MissingData, NotApplicable, UnknownName, UnwritableOutput
from cardiobench.core.io import write_atomic
from cardiobench.data import catalog
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.results.paths import predictions_path
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.context import RunContext, RunSummary
from cardiobench.runner.external_predictions import score_file, task_references
from cardiobench.runner.run import check_writable, load_models, resolve, run

SAMPLE = catalog.dataset_folder("ptb_xl_sample") / "data"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Share embeddings among the tests; a test of encoding uses a separate folder."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def config(tmp_path, cache):
    return RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl_sample/cd",),
        protocols=("probe",),
        output_dir=tmp_path / "results",
        cache_dir=cache,
        resamples=200,
        workers=0,
    )


@pytest.fixture
def release(tmp_path):
    """Use the bundled records as an incomplete PTB-XL with its official folds."""
    return shutil.copytree(SAMPLE, tmp_path / "ptb_xl")


def test_runs_that_start_at_once_check_one_folder(tmp_path, monkeypatch):
    """Remove a file that another run has removed meanwhile, without an error."""

    def removed_by_another(path, write):
        write_atomic(path, write).unlink()
        return path

    monkeypatch.setattr("cardiobench.runner.output_folder.write_atomic", removed_by_another)
    check_writable(tmp_path)


def result_of(config, task="ptb_xl_sample__cd", protocol="probe"):
    (path,) = config.output_dir.glob(f"*/*/{protocol}/{task}.json")
    return path, ScoreResult.load(path)


@pytest.mark.slow
def test_protocols_of_one_task_share_data(config, monkeypatch):
    loaded, load = [], EmbeddingStore.load

    def counted(store, ids, fingerprints):
        loaded.append(len(ids))
        return load(store, ids, fingerprints)

    monkeypatch.setattr(EmbeddingStore, "load", counted)
    both = dataclasses.replace(config, protocols=("probe", "knn"))
    assert len(run(both).results) == 2 and len(loaded) == 1
    alone = run(dataclasses.replace(config, protocols=("knn",), output_dir=config.output_dir / "alone"))
    assert [result.score for result in alone.results] == [result_of(both, protocol="knn")[1].score]


@pytest.mark.usefixtures("figures")
def test_result_has_all_facts_of_the_number(config):
    outcome = run(config)
    assert outcome.exit_code == 0
    path, result = result_of(config)
    assert path.relative_to(config.output_dir).parts[0] == "cardiobench__ecg-morphology"
    assert result.coverage == {"scored": 122, "expected": 122}
    assert (
        result.score.n == 122
        and result.score.n_patients == 103
        and result.score.low < result.score.value < result.score.high
    )
    assert result.floors["best_constant"].value == pytest.approx(105 / 227), "105 of 122 are negative: F1 210/227 and 0"
    assert set(result.groups) <= {"sex", "age"} and result.seen_in_pretraining is False
    assert result.model["preprocessing"] and result.dataset["digest"] and result.options["penalty"]
    predictions = pd.read_parquet(predictions_path(path))
    assert {"id", "patient_id", "y_true", "y_pred", "p_CD", "p_no CD"} <= set(predictions)
    assert (config.output_dir / "report.md").is_file() and list((config.output_dir / "figures").glob("*.svg"))


@pytest.mark.slow
def test_refits_widen_the_interval_around_the_same_score(config, tmp_path):
    run(config)
    _, alone = result_of(config)
    wider = dataclasses.replace(config, output_dir=tmp_path / "wider", options={"probe": {"refits": 8}})
    run(wider)
    _, both = result_of(wider)
    assert both.score.value == alone.score.value and alone.score.covers == "test patients"
    assert both.score.covers == "test and training patients" and both.options["refits"] == 8
    assert both.score.low < alone.score.low and both.score.high > alone.score.high
    assert both.overall["auroc"].covers == "test patients", "only the ranking metric"


@pytest.mark.slow
def test_run_computes_the_named_metrics_only(config):
    run(dataclasses.replace(config, metrics=("f1_macro",)))
    _, result = result_of(config)
    assert set(result.overall) == {"f1_macro"}
    run(config)
    _, result = result_of(config)
    assert {"f1_macro", "auroc"} <= set(result.overall) and "brier" in result.further, (
        "not mistaken for the same result"
    )
    with pytest.raises(BadConfig, match="lack f1_macro, which ranks models"):
        run(dataclasses.replace(config, metrics=("classification_report",)))


def test_file_of_predictions_is_scored_by_the_named_metrics_only(tmp_path):
    references, _ = task_references("ptb_xl_sample/cd", None)
    test = references.table[references.table["split"] == "test"]
    test.assign(y_pred=test["y_true"])[["id", "y_pred"]].to_csv(tmp_path / "perfect.csv", index=False)
    config = ScoreConfig(
        predictions=tmp_path / "perfect.csv",
        task="ptb_xl_sample/cd",
        output_dir=tmp_path,
        resamples=20,
        metrics=("f1_macro",),
    )
    assert set(score_file(config)[0].overall) == {"f1_macro"}
    with pytest.raises(BadConfig, match="lack f1_macro, which ranks models"):
        score_file(dataclasses.replace(config, metrics=("calibration_report",)))


def test_repeated_command_recomputes_nothing(config, monkeypatch):
    run(config)
    path, _ = result_of(config)
    before = path.stat().st_mtime_ns
    monkeypatch.setattr("cardiobench.embeddings.extract.PartEncoder.__call__", lambda *_: pytest.fail("encoded again"))
    outcome = run(config)
    assert path.stat().st_mtime_ns == before and len(outcome.results) == 1
    run(dataclasses.replace(config, seed=1))
    assert path.stat().st_mtime_ns > before, "another seed gives another result from the same embeddings"


@pytest.mark.slow
def test_recordings_are_encoded_once(config, tmp_path, monkeypatch):
    from cardiobench.models.baselines.ecg_morphology import EcgMorphology

    seen = []
    real = EcgMorphology.transform
    monkeypatch.setattr(EcgMorphology, "transform", lambda self, ecg: seen.append(1) or real(self, ecg))
    config = dataclasses.replace(config, protocols=("probe", "knn"), cache_dir=tmp_path / "cache")
    run(config)
    run(dataclasses.replace(config, seed=3))
    assert len(seen) == 393


@pytest.mark.slow
def test_one_bad_recording_is_reported_and_counted(config, release, tmp_path):
    config = dataclasses.replace(
        config, tasks=("ptb_xl/cd",), data_dir=release, allow_missing=True, cache_dir=tmp_path / "cache"
    )
    source_rows = catalog.builder("ptb_xl").table(release, allow_missing=True).frame
    victim = source_rows[source_rows["split"] == "test"].iloc[0]
    path = release / victim["media"]
    path.write_bytes(path.read_bytes()[:999])
    outcome = run(config)
    assert outcome.exit_code == 1
    (failure,) = outcome.failures
    assert failure[1:3] == ("ptb_xl", victim["id"]) and path.stem in failure[3]
    _, result = result_of(config, "ptb_xl__cd")
    assert result.coverage == {"scored": 53, "expected": 2198}
    assert any("have no prediction" in warning for warning in result.warnings)
    assert not any(victim["id"] in warning for warning in result.warnings), (
        "failures.csv names it, only on this machine"
    )
    assert pd.read_csv(config.output_dir / "failures.csv", dtype=str)["id"].tolist() == [victim["id"]]

    whole = SAMPLE / victim["media"]
    shutil.copyfile(whole, path)
    outcome = run(config)
    assert outcome.exit_code == 0
    assert result_of(config, "ptb_xl__cd")[1].coverage == {"scored": 54, "expected": 2198}


@pytest.mark.slow
def test_incomplete_copy_is_refused_then_stamped(config, release):
    config = dataclasses.replace(config, tasks=("ptb_xl/cd",), data_dir=release)
    with pytest.raises(MissingData, match="--allow-missing"):
        run(config)
    run(dataclasses.replace(config, allow_missing=True))
    _, result = result_of(config, "ptb_xl__cd")
    assert result.coverage == {"scored": 54, "expected": 2198}
    assert any("absent" in warning for warning in result.warnings)


def test_recordings_above_size_limit_are_listed(config, tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_MAX_RECORDING_MB", "")
    summary = run(dataclasses.replace(config, max_recording_mb=0.01, cache_dir=tmp_path / "cache"))
    assert summary.failures and all("--max-recording-mb" in str(failure) for failure in summary.failures)


def test_limit_uses_the_first_patients(config):
    run(dataclasses.replace(config, limit=30))
    _, result = result_of(config)
    assert result.score.n_patients == 30 and any("first 30 patients" in warning for warning in result.warnings)


def test_inapplicable_protocols_give_a_reason(config):
    outcome = run(dataclasses.replace(config, protocols=("zero_shot",)))
    assert outcome.exit_code == 1 and not outcome.results
    assert "no text tower" in outcome.not_applicable[0][3] and "no text tower" in outcome.no_result
    outcome = run(dataclasses.replace(config, tasks=("phantom_echo/view",)))
    assert "takes ecg, and phantom_echo is echo" in outcome.not_applicable[0][3]


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"tasks": ("ptb_xl_sample/CD",)}, UnknownName, "Did you mean 'ptb_xl_sample/cd'"),
        (
            {"tasks": ("ptbxl", "ptb_xl_sample/CD", "tmed2")},
            UnknownName,
            "no task or dataset 'ptbxl'. Did you mean 'ptb_xl'. No task 'ptb_xl_sample/CD'. Did you mean 'ptb_xl_sample/cd'.$",
        ),
        (
            {"protocols": ("prob", "knm")},
            UnknownName,
            "no protocol 'prob'. Did you mean 'probe'. No protocol 'knm'. Did you mean 'knn'",
        ),
        (
            {"options": {"prob": {"seed": 1}, "knm": {"seed": 1}}},
            UnknownName,
            "no protocol 'prob'. Did you mean 'probe'. No protocol 'knm'. Did you mean 'knn'",
        ),
        (
            {"metrics": ("auroc", "f1")},
            UnknownName,
            "no metric of these tasks 'auroc'. No metric of these tasks 'f1'. Known",
        ),
        (
            {"models": ("cardiobench/ecg-morfology", "unknown", "cardiobench/constnt")},
            UnknownName,
            "'cardiobench/ecg-morphology'. No model 'unknown'. .*Did you mean 'cardiobench/constant'",
        ),
        (
            {"models": ("cardiobench/constnt",), "tasks": ("tmed/as",), "protocols": ("prob",)},
            UnknownName,
            "'probe'. .* No task 'tmed/as'. Did you mean 'tmed2/as'. No model 'cardiobench/constnt'. Did you mean 'cardiobench/constant'.$",
        ),
        (
            {"suite": "quik", "models": ("cardiobench/constnt",)},
            UnknownName,
            "no suite 'quik'.* No model 'cardiobench/constnt'",
        ),
        ({"models": ("cardiobench/ecg-morfology",)}, UnknownName, "Did you mean 'cardiobench/ecg-morphology'"),
        ({"tasks": ("tmed2/as",)}, MissingData, "TMED-2 was not found"),
    ],
)
def test_invalid_requests_are_refused_before_any_work(config, change, error, message):
    with pytest.raises(error, match=message):
        run(dataclasses.replace(config, **change))


def test_missing_prompts_and_models_without_text(config, tmp_path):
    with pytest.raises(BadData, match="there is no prompt set"):
        run(dataclasses.replace(config, prompts=tmp_path / "none.json"))
    (tmp_path / "mine.json").write_text('{"version": "1"}')
    with pytest.raises(NotApplicable, match=r"no text tower\. Leave --prompts out"):
        run(dataclasses.replace(config, prompts=tmp_path / "mine.json"))


@pytest.mark.slow
def test_missing_pooling_is_skipped_and_others_run(config):
    models = ("cardiobench/pixel-motion", "cardiobench/random-vit")
    asked = dataclasses.replace(
        config, models=models, tasks=("phantom_echo/view",), poolings=("mean", "tokens", "own", "own")
    )

    def settings(asked):
        context = RunContext(asked, SimpleNamespace(device="cpu"), RunSummary(), Console(main=False))
        return [(model.name, model.setting) for model, *_ in load_models(resolve(asked), context)], context.summary

    loaded, summary = settings(asked)
    assert loaded == [(models[0], ""), (models[1], "pooling-tokens"), (models[1], "")]
    refused = [(model, task, pooling) for model, task, pooling, _ in summary.not_applicable]
    assert refused == [
        (models[0], "every task", "--pooling mean"),
        (models[0], "every task", "--pooling tokens"),
        (models[1], "every task", "--pooling mean"),
    ]
    assert summary.exit_code == 0 and "It has only one" in summary.not_applicable[0][3]
    for several in (models, models[:1]):  # No cell is left to run.
        with pytest.raises(NotApplicable, match="pixel-motion has no pooling 'max'"):
            settings(dataclasses.replace(asked, models=several, poolings=("max",)))


def test_unwritable_output_folder(config, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableOutput, match="--output-dir"):
        run(dataclasses.replace(config, output_dir=tmp_path / "file" / "below"))


@pytest.mark.slow
def test_one_broken_model_does_not_stop_the_others(config, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("no weights here")
    outcome = run(dataclasses.replace(config, models=(str(tmp_path / "empty"), *config.models)))
    assert outcome.exit_code == 1 and len(outcome.results) == 1
    assert outcome.failures[0][2] == "model"


@pytest.mark.slow
def test_collapsed_model_is_flagged_in_every_protocol(config):
    outcome = run(dataclasses.replace(config, models=("cardiobench/constant",), protocols=("probe", "knn")))
    assert len(outcome.results) == 2
    for result in outcome.results:
        assert result.collapsed and result.verdict.word != "above the floor"


def test_not_applicable_is_a_separate_error():
    assert not issubclass(NotApplicable, MissingData)


@pytest.mark.slow
def test_suite_fixes_tasks_and_options(config, tmp_path):
    plain = run(dataclasses.replace(config, tasks=("phantom_ecg/af",), protocols=("knn",), limit=8)).results[0]
    outcome = run(dataclasses.replace(config, tasks=(), protocols=(), suite="quick", limit=8))
    again = next(one for one in outcome.results if (one.task, one.protocol) == ("phantom_ecg/af", "knn"))
    kept = ScoreResult.load(next(config.output_dir.rglob("knn/phantom_ecg__af.json")))
    assert "suite" not in plain.stamp and kept == again
    assert again.stamp == {**plain.stamp, "suite": "quick"}, "taken from the earlier run"
    assert {result.task for result in outcome.results} == {"phantom_ecg/cd", "phantom_ecg/af", "phantom_ecg/findings"}
    assert {result.stamp["suite"] for result in outcome.results} == {"quick"}
    assert "suite: quick" in outcome.config_file.read_text()
    with pytest.raises(BadConfig, match="fixes tasks, protocols"):
        run(dataclasses.replace(config, suite="quick"))
    with pytest.raises(UnknownName, match="Did you mean 'cardiobench_ecg_v1'"):
        run(dataclasses.replace(config, suite="cardiobench_ecg"))


@pytest.mark.slow
def test_stored_embeddings_are_evaluated_without_pytorch(config):
    """Check that only encoding and a model's own network import PyTorch, half a gigabyte that a probe does not need."""
    config = dataclasses.replace(config, models=("cardiobench/constant",), protocols=("probe", "knn"))
    run(config)
    line = [
        "--model",
        "cardiobench/constant",
        "--tasks",
        "ptb_xl_sample/cd",
        "--protocols",
        "probe",
        "knn",
        "--overwrite",
    ]
    line += ["--output-dir", str(config.output_dir), "--cache-dir", str(config.cache_dir)]
    code = f"import sys; from cardiobench.cli.eval import main; main({line!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "accelerate", "transformers"} & set(done.stdout.split())
