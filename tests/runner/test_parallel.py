"""Cells shipped to workers: the same bits everywhere, only the missing ones made again, and what they will cost said before."""

import importlib.util
import json
import os
from dataclasses import replace

import joblib
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import CardioBenchError
from cardiobench.results.paths import predictions_path
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner import evaluate, parallel
from cardiobench.runner.eta import DurationEstimator, format_seconds, variants_of_run
from cardiobench.runner.run import run
from tests.report.test_ecg_tables import result as made_up

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
        sizes=("XS",),
        classifiers=CLASSIFIERS,
        grids=grids,
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
    with distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None) as cluster:
        with parallel.backend(f"dask={cluster.scheduler_address}", 1):
            pids = joblib.Parallel(batch_size=1)(joblib.delayed(os.getpid)() for _ in range(4))
        with distributed.Client(cluster) as client:
            assert set(pids) == set(client.run(os.getpid).values()), "its only worker did all, and is there still"


@pytest.mark.slow
def test_all_cores_of_a_ray_cluster_are_used_and_it_is_left_running():
    engine = pytest.importorskip("ray", reason="ray is not installed: make test-cluster")
    engine.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with parallel.backend("ray", 1):
            assert joblib.effective_n_jobs() == 2, "not as many as this machine has, or was told"
        assert engine.is_initialized()
    finally:
        engine.shutdown()


def test_an_unknown_backend_or_one_that_is_not_installed_is_said(monkeypatch):
    with pytest.raises(CardioBenchError, match="no backend 'slurm'"):
        parallel.backend("slurm", 2)
    for name, package, advice in (("dask", "dask.distributed", r"dask\[distributed\]"), ("ray", "ray", "install ray")):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(CardioBenchError, match=advice), parallel.backend(name, 2):
            pytest.fail("it is not there")


def test_a_cell_is_priced_by_those_most_like_it():
    def paid(variant, seconds, protocol="cross_validation"):
        size, _, name = variant.partition(".")
        return replace(made_up(size=size, classifier=name), protocol=protocol, stamp={"seconds": seconds})

    made = DurationEstimator(
        [paid("XS.tree", 2), paid("XS.tree", 4), paid("S.mlp", 30), paid("S.x", 9, "knn")], "cross_validation"
    )
    assert bool(made) and not DurationEstimator()
    assert made.estimate("XS.tree") == 3
    # Sizes hold at most 499, 2,499 and, without an upper end, twice 5,000 records.
    assert made.estimate("L.mlp") == pytest.approx(30 * 10_000 / 2499), "of another size, the same classifier"
    other = replace(paid("XS.tree", 40), model={"name": "other/model"})
    assert DurationEstimator([other], "cross_validation").estimate("XS.tree", "org/any") == 40, "of another model"
    made.update(other)
    assert made.estimate("XS.tree", "other/model") == 40 and made.knows("XS.tree", "other/model")
    assert not made.knows("S.tree", "other/model")
    made = DurationEstimator([paid("XS.tree", 2), paid("XS.tree", 4), paid("S.mlp", 30)], "cross_validation")
    assert made.estimate("S.forest") == pytest.approx((2 * 2499 / 499 + 4 * 2499 / 499 + 30) / 3), "the mean of all"


def test_all_cells_of_a_grid_are_counted_before_they_start(config):
    """6 models x 4 datasets x 4 sizes x 2 labels, five classifiers each."""
    from types import SimpleNamespace

    from cardiobench.protocols.cross_validation.protocol import CrossValidation

    cell = SimpleNamespace(model=SimpleNamespace(modalities=("ecg",)), protocol=CrossValidation())
    tasks = [f"{name}/{label}" for name in ("ptb_xl", "code15", "georgia", "chapman_ningbo") for label in ("cd", "af")]
    asked = replace(config, models=tuple("abcdef"), tasks=tuple(tasks))
    assert len(variants_of_run(cell, asked)) == 192 * 5
    assert len(variants_of_run(cell, replace(asked, poolings=("last", "max")))) == 192 * 5 * 2
    assert variants_of_run(cell, replace(asked, tasks=())) == []
    assert len(variants_of_run(cell, replace(asked, tasks=("ptb_xl/cd", "camus/ef")))) == 4 * 5 * 6


def test_spans_of_time_in_words():
    assert [format_seconds(seconds) for seconds in (12.4, 89, 600, 5399, 7200)] == [
        "12 s",
        "89 s",
        "10 min",
        "90 min",
        "2.0 h",
    ]
