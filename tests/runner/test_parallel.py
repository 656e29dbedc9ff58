"""Cells shipped to workers: the same bits everywhere, only the missing ones made again, and what they will cost said before."""

import importlib.util
import json
import os
import signal
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import CardioBenchError
from cardiobench.data import catalog
from cardiobench.protocols.cross_validation.protocol import CrossValidation
from cardiobench.results.paths import predictions_path
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner import evaluate, parallel
from cardiobench.runner.eta import (
    UNIT_COSTS,
    DurationEstimator,
    count_records,
    format_seconds,
    max_records,
    one_of_each_first,
    remaining_seconds,
    variants_of_run,
)
from cardiobench.runner.run import run
from tests.results.test_formatting import result as made_up

CLASSIFIERS = ("tree", "logistic")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


GRIDS = {"tree": {"max_depth": [2], "min_samples_leaf": [5, 1]}, "logistic": {"C": [0.01, 1.0]}}


@pytest.fixture
def config(tmp_path, cache, monkeypatch):
    """Two cells of real records on one core, with grids of two points."""
    # The page of the results is of no interest here.
    monkeypatch.setattr("cardiobench.runner.run.finalize", lambda context: None)
    grids = tmp_path / "grids.json"
    grids.write_text(json.dumps(GRIDS))
    return RunConfig(
        models=("cardiobench/ecg-morphology",),
        tasks=("ptb_xl_sample/cd",),
        protocols=("cross_validation",),
        options={"cross_validation": {"sizes": "XS", "classifiers": CLASSIFIERS, "grids": str(grids)}},
        output_dir=tmp_path / "results",
        cache_dir=cache,
        resamples=50,
        workers=0,
        jobs=1,
    )


def cells(config) -> dict[str, ScoreResult]:
    found = sorted(config.output_dir.glob("*/*/cross_validation.*/*.json"))
    return {path.parent.name: path for path in found if not path.parent.name.endswith(".best")}


def numbers(config) -> dict[str, tuple]:
    """Everything that a cell came to, to the last bit."""
    return {
        name: (
            ScoreResult.load(path).options["f1_folds"],
            ScoreResult.load(path).options["chosen"],
            ScoreResult.load(path).overall,
            pd.read_parquet(predictions_path(path)).to_csv(float_format="%.17g"),
        )
        for name, path in cells(config).items()
    }


@pytest.mark.slow
def test_every_cell_has_its_own_file_and_an_interrupted_run_goes_on_with_the_missing_ones(config, monkeypatch, capsys):
    real, worked = evaluate.evaluate_cell, []

    def interrupted(cell):
        if worked:
            raise KeyboardInterrupt
        worked.append(cell.label)
        return real(cell)

    monkeypatch.setattr(evaluate, "evaluate_cell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(config, Console())
    first = cells(config)
    assert list(first) == ["cross_validation.XS.tree"] and worked == ["cross_validation.XS.tree"]
    before = first["cross_validation.XS.tree"].stat().st_mtime_ns
    capsys.readouterr()

    monkeypatch.setattr(evaluate, "evaluate_cell", lambda cell: worked.append(cell.label) or real(cell))
    outcome = run(config, Console())
    assert worked == ["cross_validation.XS.tree", "cross_validation.XS.logistic"], "only what was missing"
    assert sorted(cells(config)) == ["cross_validation.XS.logistic", "cross_validation.XS.tree"]
    assert cells(config)["cross_validation.XS.tree"].stat().st_mtime_ns == before
    assert len(outcome.results) == 3 and outcome.exit_code == 0, "two classifiers, and the best of each fold"
    said = " ".join(capsys.readouterr().out.split())
    assert "2 cells of ptb_xl_sample" in said and "1 kept, 1 to do" in said
    goes_on = numbers(config)
    never_stopped = replace(config, output_dir=config.output_dir.with_name("whole"))
    run(never_stopped)
    assert numbers(never_stopped) == goes_on

    # A damaged neighbour does not matter; a changed option makes them all anew.
    cells(config)["cross_validation.XS.logistic"].unlink()
    worked.clear()
    run(config, Console())
    assert worked == ["cross_validation.XS.logistic"] and numbers(config) == goes_on
    worked.clear()
    run(replace(config, seed=1))
    assert len(worked) == 2


@pytest.fixture(scope="module")
def alone():
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "package"), [("loky", "joblib"), ("dask", "distributed"), ("ray", "ray")])
def test_workers_of_every_kind_come_to_the_same_bits(config, alone, backend, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the optional package '{package}' is not installed: make test-cluster")
    if not alone:
        run(config, Console())
        alone |= numbers(config)
    shipped = replace(config, jobs=2, backend=backend, output_dir=config.output_dir.with_name("shipped"))
    outcome = run(shipped)
    assert outcome.exit_code == 0 and len(outcome.results) == 3
    assert numbers(shipped) == alone


@pytest.mark.slow
def test_a_dask_cluster_is_used_where_it_is_and_left_running():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
        with parallel.backend(f"dask={cluster.scheduler_address}", 8, 4) as slots:
            assert slots == 3, "its cores, not those of this machine"
            pids = joblib.Parallel(batch_size=1)(joblib.delayed(os.getpid)() for _ in range(4))
        with distributed.Client(cluster) as client:
            assert set(pids) <= set(client.run(os.getpid).values()), "its workers did all, and are there still"


@pytest.mark.slow
def test_a_dask_cluster_of_this_machine_has_a_worker_for_each_job():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    for jobs, cells, workers in ((3, 5, 3), (3, 2, 2)):
        with parallel.backend("dask", jobs, cells), distributed.get_client() as client:
            assert len(client.run(os.getpid)) == workers


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_ends_the_cells_as_one_of_this_machine_does():
    pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    import dask

    once = {"distributed.scheduler.allowed-failures": 0}
    with dask.config.set(once), pytest.raises(BrokenExecutor), parallel.backend("dask", 2, 2):
        joblib.Parallel(batch_size=1)(joblib.delayed(signal.raise_signal)(signal.SIGKILL) for _ in range(2))


@pytest.mark.slow
def test_all_cores_of_a_ray_cluster_are_used_and_it_is_left_running():
    engine = pytest.importorskip("ray", reason="ray is not installed: make test-cluster")
    engine.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with parallel.backend("ray", 1, 1) as slots:
            assert slots == joblib.effective_n_jobs() == 2, "not as many as this machine has, or was told"
        assert engine.is_initialized()
    finally:
        engine.shutdown()


def test_an_unknown_backend_or_one_that_is_not_installed_is_said(monkeypatch):
    with pytest.raises(CardioBenchError, match="no backend 'slurm'"):
        parallel.backend("slurm", 2, 2)
    for name, package, advice in (("dask", "dask.distributed", r"dask\[distributed\]"), ("ray", "ray", "install ray")):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(CardioBenchError, match=advice), parallel.backend(name, 2, 2):
            pytest.fail("it is not there")


def finished(variant, seconds, records=None, model="a/b", protocol="cross_validation"):
    """The result of a cell that took so long."""
    options = {"records": records or max_records(variant.partition(".")[0])}
    return replace(
        made_up(model=model), protocol=protocol, variant=variant, options=options, stamp={"seconds": seconds}
    )


def test_a_cell_is_priced_by_those_most_like_it():
    assert not DurationEstimator()
    assert not DurationEstimator([finished("XS.tree", 9, protocol="knn"), finished("XS.best", 1)], "cross_validation")
    done = [finished("XS.tree", 2), finished("XS.tree", 4), finished("S.mlp", 30), finished("M.mlp", 50)]
    made = DurationEstimator(done, "cross_validation")
    assert made.estimate("XS.tree") == pytest.approx(3), "the mean of its kind"
    assert made.estimate("XS.tree", records=100) == pytest.approx(3 * 100 / 499), "in proportion to the records"
    assert made.estimate("XS.tree", records=0) == 0, "a size that is not available costs nothing"
    # Sizes hold at most 499, 2,499, 4,999 and, without an upper end, twice 5,000 records.
    assert made.estimate("L.mlp") == pytest.approx(50 * 10_000 / 4999), "the same classifier at the nearest size"
    ratio = UNIT_COSTS["forest"] / UNIT_COSTS["mlp"]
    assert made.estimate("S.forest") == pytest.approx(30 * ratio), "another one of the same size, by what each costs"
    other = finished("XS.tree", 40, model="other/model")
    assert DurationEstimator([other], "cross_validation").estimate("XS.tree", "org/any") == pytest.approx(40)
    made.update(other)
    assert made.estimate("XS.tree", "other/model") == pytest.approx(40) and made.knows("XS.tree", "other/model")
    assert not made.knows("S.tree", "other/model")
    assert set(UNIT_COSTS) == set(CrossValidation().classifiers)


@pytest.mark.parametrize("jobs", [1, 4])
def test_what_is_announced_is_right_within_a_factor_of_two_once_the_first_of_each_kind_is_done(jobs):
    """Cells on a clock of their own: their costs are unlike those of the table, and do not grow in proportion to the records."""
    rng = np.random.default_rng(0)
    costs = dict(zip(UNIT_COSTS, (300.0, 2.0, 40.0, 90.0, 0.5), strict=True))  # seconds of a cell of 499 records
    growth = {"xgboost": 0.7, "forest": 1.15}
    made = DurationEstimator([], "cross_validation")
    ratios = []
    for largest in (7000, 15_000, 5200):  # records of the largest size of three datasets, two tasks each
        records = {"XS": 499, "S": 2499, "M": 4999, "L": largest}
        variants = [f"{size}.{name}" for _ in range(2) for size in records for name in costs]
        turns = [variants[position] for position in one_of_each_first(variants)]
        done, free = [], [0.0] * jobs  # (end, variant) of each cell; when each worker is free
        for variant in turns:
            size, _, name = variant.partition(".")
            seconds = costs[name] * (records[size] / 499) ** growth.get(name, 1) * rng.uniform(0.8, 1.25)
            start = min(free)
            free[free.index(start)] = start + seconds
            done.append((start + seconds, variant, seconds))
        unknown, waiting = {variant for variant in turns if not made.knows(variant, "a/b")}, list(turns)
        for end, variant, seconds in [(0.0, "", 0.0), *sorted(done)]:
            if variant:
                made.update(finished(variant, seconds, records[variant.partition(".")[0]]))
                waiting.remove(variant)
            unknown.discard(variant)
            if not unknown and len(waiting) > 2 * jobs:
                prices = [made.estimate(name, "a/b", records[name.partition(".")[0]]) for name in waiting]
                ratios.append(remaining_seconds(prices, jobs) / (max(free) - end))
    assert len(ratios) > 60 and 0.5 < min(ratios) and max(ratios) < 2


def test_all_cells_of_a_grid_are_counted_before_they_start(config):
    """6 models x 4 datasets x 4 sizes x 2 labels, five classifiers each."""
    cell = SimpleNamespace(model=SimpleNamespace(modalities=("ecg",)), protocol=CrossValidation())
    tasks = [f"{name}/{label}" for name in ("ptb_xl", "code15", "georgia", "chapman_ningbo") for label in ("cd", "af")]
    asked = replace(config, models=tuple("abcdef"), tasks=tuple(tasks))
    assert len(variants_of_run(cell, asked)) == 192 * 5
    assert len(variants_of_run(cell, replace(asked, poolings=("last", "max")))) == 192 * 5 * 2
    assert variants_of_run(cell, replace(asked, tasks=())) == []
    assert len(variants_of_run(cell, replace(asked, tasks=("ptb_xl/cd", "camus/ef")))) == 4 * 5 * 6


def test_the_records_of_a_cell_are_those_that_its_size_draws():
    rows = pd.DataFrame({"id": [f"r{n}" for n in range(80)], "patient_id": [f"p{n // 2}" for n in range(80)]})
    task, protocol = catalog.task("ptb_xl_sample/cd"), CrossValidation()
    rows[task.target] = [task.classes[n < 36] for n in range(80)]
    cells = [
        SimpleNamespace(task=task, variant=variant, rows=rows, protocol=protocol)
        for variant in ("XS.tree", "S.tree", "XS.mlp")
    ]
    assert count_records(cells) == [36, 0, 36], "18 patients with it; too few for S"


def test_spans_of_time_in_words():
    assert [format_seconds(seconds) for seconds in (12.4, 89, 600, 5399, 7200)] == [
        "12 s",
        "89 s",
        "10 min",
        "90 min",
        "2.0 h",
    ]
