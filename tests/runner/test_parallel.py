"""Test cells in workers: bitwise equal results, only missing cells run again, and costs are predicted."""

import importlib.util
import json
import pickle
from dataclasses import replace
from types import SimpleNamespace

import joblib
import pandas as pd
import pytest

from cardiobench.core import plugins
from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.extensions import Extension
from cardiobench.data.media.limits import LIMIT_VARIABLE, max_bytes
from cardiobench.models.facts import without_network
from cardiobench.models.load import load_model
from cardiobench.protocols import list_protocols, protocol_class
from cardiobench.results.paths import predictions_path
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner import backends, compute, evaluate, workers
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.eta import DurationEstimator, format_seconds
from cardiobench.runner.run import run
from cardiobench.runner.summarize import drawing_jobs
from tests.acceptance.encoders import Leads, Thumbnails
from tests.results.test_formatting import result as made_up
from tests.runner.shipped import Shipped

WORKERS = [("loky", "joblib"), ("dask", "distributed"), ("ray", "ray")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def config(tmp_path, cache, monkeypatch):
    """Return two cells on real records for one core."""
    # Skip the page of results.
    monkeypatch.setattr("cardiobench.runner.run.finalize", lambda context: None)
    toy = Extension(protocols={"shipped": "tests.runner.shipped:Shipped"})
    monkeypatch.setattr("cardiobench.core.extensions.extensions", lambda: {"toy": toy})
    return RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl_sample/cd",),
        protocols=("shipped",),
        output_dir=tmp_path / "results",
        cache_dir=cache,
        resamples=50,
        workers=0,
        jobs=1,
    )


def cells(config):
    return {path.parent.name: path for path in sorted(config.output_dir.glob("*/*/shipped.*/*.json"))}


def numbers(config):
    """Return all outputs of a cell with full precision."""
    return {
        name: (ScoreResult.load(path).overall, pd.read_parquet(predictions_path(path)).to_csv(float_format="%.17g"))
        for name, path in cells(config).items()
    }


@pytest.mark.slow
def test_interrupted_run_continues_with_missing_cells(config, monkeypatch, capsys):
    real, worked = Cell.compute, []

    def interrupted(cell, recent):
        if worked:
            raise KeyboardInterrupt
        worked.append(cell.label)
        return real(cell, recent)

    monkeypatch.setattr(Cell, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(config, Console())
    first = cells(config)
    assert list(first) == ["shipped.stiff"] and worked == ["shipped.stiff"]
    before = first["shipped.stiff"].stat().st_mtime_ns
    capsys.readouterr()

    monkeypatch.setattr(Cell, "compute", lambda cell, recent: worked.append(cell.label) or real(cell, recent))
    outcome = run(config, Console())
    assert worked == ["shipped.stiff", "shipped.soft"], "only the missing cells"
    assert sorted(cells(config)) == ["shipped.soft", "shipped.stiff"]
    assert cells(config)["shipped.stiff"].stat().st_mtime_ns == before
    assert len(outcome.results) == 2 and outcome.exit_code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 cells of ptb_xl_sample" in said and "1 kept, 1 to do" in said
    goes_on = numbers(config)
    never_stopped = replace(config, output_dir=config.output_dir.with_name("whole"))
    run(never_stopped)
    assert numbers(never_stopped) == goes_on

    # A damaged file of another cell has no effect; a changed option renews all cells.
    cells(config)["shipped.soft"].unlink()
    worked.clear()
    run(config, Console())
    assert worked == ["shipped.soft"] and numbers(config) == goes_on
    worked.clear()
    run(replace(config, seed=1))
    assert len(worked) == 2


@pytest.fixture(scope="module")
def alone():
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "package"), WORKERS)
def test_every_backend_gives_bitwise_equal_results(config, alone, backend, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the optional package '{package}' is not installed: make test-cluster")
    if not alone:
        run(config, Console())
        alone |= numbers(config)
    shipped = replace(config, jobs=2, backend=backend, output_dir=config.output_dir.with_name("shipped"))
    outcome = run(shipped)
    assert outcome.exit_code == 0 and len(outcome.results) == 2
    assert numbers(shipped) == alone


def records(folder):
    """Return all outputs of a run except dates, durations and the checksums that cover them."""
    found = {}
    for path in sorted(folder.glob("*/*/*/*.json")):
        record = json.loads(path.read_text("utf-8"))
        found[str(path.relative_to(folder))] = {name: record[name] for name in record if name not in ("stamp", "seal")}
    for path in sorted(folder.glob("*/*/*/*.predictions.parquet")):
        found[str(path.relative_to(folder))] = pd.read_parquet(path).to_csv(float_format="%.17g")
    return found


@pytest.fixture(scope="module")
def of_embeddings(cache, tmp_path_factory):
    """Return settings of all protocols that need embeddings only, and their run on one core."""
    config = RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl_sample/cd",),
        protocols=tuple(name for name in list_protocols() if protocol_class(name).from_embeddings),
        limit=60,
        output_dir=tmp_path_factory.mktemp("alone"),
        cache_dir=cache,
        resamples=50,
        workers=0,
        jobs=1,
    )
    return config, run(config)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "package"), WORKERS)
def test_embedding_protocols_give_bitwise_equal_results_in_workers(of_embeddings, tmp_path, backend, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the optional package '{package}' is not installed: make test-cluster")
    config, alone = of_embeddings
    apart = run(replace(config, output_dir=tmp_path, backend=backend, jobs=2))
    assert records(config.output_dir) == records(tmp_path)
    assert {"probe", "knn"} <= {result.protocol for result in alone.results}
    assert [one.task for one in alone.results] == [one.task for one in apart.results], "the order of a single process"
    assert alone.not_applicable == apart.not_applicable


@pytest.mark.slow
def test_text_and_attention_protocols_give_bitwise_equal_results_in_workers(tmp_path, cache, monkeypatch):
    sent, real = set(), workers.compute_group

    def dispatched(cells, *more):
        sent.update(cell.protocol.name for _, cell in cells)
        return real(cells, *more)

    protocols = ("zero_shot", "alignment", "prompt_sensitivity", "attention_probe", "frame_similarity")
    config = RunConfig(
        models=(),
        tasks=("phantom_ecg/cd", "phantom_echo/ef"),
        protocols=protocols,
        options={"attention_probe": {"epochs": 3, "seeds": 1}},
        limit=20,
        output_dir=tmp_path / "alone",
        cache_dir=cache,
        resamples=50,
        workers=0,
        jobs=1,
    )
    models = [Leads(), Thumbnails()]
    alone = run(config, encoders=models)
    apart = run(replace(config, output_dir=tmp_path / "apart", jobs=2), encoders=models)
    assert records(tmp_path / "alone") == records(tmp_path / "apart")
    made = {one.protocol for one in (*alone.results, *alone.analyses)}
    assert made == set(protocols) and alone.not_applicable == apart.not_applicable
    # Without workers, this process computes the same messages.
    monkeypatch.setattr(workers, "compute_group", dispatched)
    monkeypatch.setattr(workers, "share_calls", lambda function, calls, *_: (function(*one) for one in calls))
    run(replace(config, output_dir=tmp_path / "watched", jobs=2), encoders=models)
    assert sent == set(protocols), "the main process computes nothing else"


def test_memory_and_launched_processes_bound_the_workers(monkeypatch):
    monkeypatch.setattr(workers, "memory_limit", lambda: 10_000_000_000)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert workers.jobs_by_memory(1_000_000_000) == 2, "8 GB; a worker takes 0.5 and three times 1"
    assert workers.jobs_by_memory(100_000_000_000) == 1
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert workers.n_jobs(RunConfig(models=("a/b",))) == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert workers.n_jobs(RunConfig(models=("a/b",))) == 2
    assert workers.n_jobs(RunConfig(models=("a/b",), jobs=3)) == 3


def test_workers_draw_figures_if_asked_for_or_if_there_are_many(monkeypatch):
    """Without `--jobs`, two processes draw the figures of 23 tasks; those of seven take no longer than starting a worker."""
    monkeypatch.setattr("cardiobench.runner.workers.memory_limit", lambda: 8_000_000_000)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    config = RunConfig(models=("a/b",))
    assert [drawing_jobs(config, tasks) for tasks in (0, 7, 15, 16, 23)] == [1, 1, 1, 2, 2]
    assert [drawing_jobs(replace(config, jobs=2), tasks) for tasks in (0, 1, 2, 7)] == [1, 1, 2, 2]
    assert drawing_jobs(replace(config, jobs=1), 60) == 1
    monkeypatch.setattr("cardiobench.runner.workers.memory_limit", lambda: 1_000_000_000)
    assert drawing_jobs(replace(config, jobs=2), 60) == 1, "two workers take 1 GB"


def test_workers_of_jobs_import_their_libraries_before_the_plan(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(evaluate, "prepared", lambda jobs, function, config: started.append(jobs))
    monkeypatch.setattr(workers, "memory_limit", lambda: 8_000_000_000)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 16)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    config = RunConfig(models=("a/b",), output_dir=tmp_path)
    for jobs in (None, 1, 3, 100):
        evaluate.workers_from_start(replace(config, jobs=jobs))
    assert started == [1, 1, 3, 12], "8 GB have room for 12 workers of 0.5 GB each"
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    evaluate.workers_from_start(replace(config, jobs=100))
    assert started.pop() == 4, "more imports at a time than cores would delay the run"
    started.clear()
    evaluate.workers_from_start(replace(config, jobs=3, backend="ray"))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    evaluate.workers_from_start(replace(config, jobs=3))
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    (tmp_path / "model" / "dataset" / "knn").mkdir(parents=True)
    (tmp_path / "model" / "dataset" / "knn" / "task.json").touch()
    evaluate.workers_from_start(replace(config, jobs=3))
    assert started == [1, 1, 1], "not for a cluster, several launched processes, or a run that may be complete"


def test_workers_start_only_if_they_save_time():
    tiny, large = 1_000_000, 1_000_000_000  # About 0.15 and 3.15 s.
    assert not workers.workers_pay([tiny] * 20, jobs=8), "3 s of work, 2.7 s of it saved"
    assert workers.workers_pay([tiny] * 24, jobs=8), "3.7 s of work, 3.2 s of it saved"
    assert not workers.workers_pay([tiny] * 24, jobs=2), "only half is saved"
    assert not workers.workers_pay([100 * large], jobs=8), "a single cell takes equally long anywhere"
    assert not workers.workers_pay([10 * large, tiny], jobs=2), "the small cell runs next to the large one"
    assert workers.workers_pay([large, large], jobs=2)


def test_workers_do_not_receive_encoding_code():
    model = load_model("cardiobench/ecg-morphology")
    assert b"ecg_morphology" in pickle.dumps(model.code)
    assert b"ecg_morphology" not in pickle.dumps(without_network(model)), "otherwise, it would import PyTorch"


def test_long_cells_start_first(result_of):
    """Cells with more embeddings come first, then those whose protocol took longer on the same task for another model."""
    known = {("knn", "view"): 0.4, ("probe", "view"): 2.2, ("probe", "ef"): 1.1}
    others = [replace(result_of("", s), protocol=name, task=task) for (name, task), s in known.items()]
    names = [("knn", "view"), ("probe", "ef"), ("probe", "view"), ("knn", "view"), ("new", "view")]
    cells = [SimpleNamespace(protocol=SimpleNamespace(name=p), tasks=[SimpleNamespace(name=t)]) for p, t in names]
    key = compute.expected_cost(cells, dict(enumerate([10, 10, 10, 20, 10])), others)
    assert sorted(range(5), key=key, reverse=True) == [3, 2, 1, 0, 4]


def test_worker_knows_the_variables_of_a_run(tmp_path, monkeypatch):
    """It may have started before the run set them, in another folder or on another machine."""
    variable = plugins.VARIABLES["hf_datasets"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "mine")
    monkeypatch.setenv(LIMIT_VARIABLE, "7")
    of_run = backends.environment()
    monkeypatch.chdir("/")
    monkeypatch.setenv(variable, "of an earlier run")
    monkeypatch.delenv(LIMIT_VARIABLE)
    cell = SimpleNamespace(compute=lambda _: ((plugins.folders("hf_datasets"), max_bytes()), []))
    (outcome,) = workers.compute_group([(0, cell)], of_run)
    assert outcome.record == ((plugins.folders("hf_datasets")[0], tmp_path / "mine"), 7_000_000)


def test_cells_of_a_task_share_a_worker_if_tasks_suffice():
    positions, keys = [5, 1, 4, 0], ["a", "b", "a", "b"]
    assert workers.grouped(positions, keys, jobs=2) == [[5], [1], [4], [0]]
    names = [f"task {n}" for n in range(8)]
    assert workers.grouped(range(16), [*names, *names], jobs=2) == [[n, n + 8] for n in range(8)]


def test_costs_without_a_workload_are_estimated_by_variant(result_of):
    made = DurationEstimator(Shipped(), [result_of("stiff", 2), result_of("stiff", 4), result_of("soft", 30)])
    assert made.estimate("stiff") == pytest.approx(3) and made.estimate("soft", records=7) == pytest.approx(30)
    assert not DurationEstimator(Shipped(), [replace(result_of("stiff", 2), protocol="knn")])


@pytest.fixture
def result_of():
    """Return a function that creates the result of a cell with a given duration."""
    return lambda variant, seconds: replace(
        made_up(), protocol="shipped", variant=variant, options={}, stamp={"seconds": seconds}
    )


def test_durations_are_written_in_words():
    assert [format_seconds(seconds) for seconds in (12.4, 89, 600, 5399, 7200)] == [
        "12 s",
        "89 s",
        "10 min",
        "90 min",
        "2.0 h",
    ]
