"""Compare a dry run with the subsequent run: encoded recordings and size of the files."""

from collections import Counter

import pyarrow as pa
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.embeddings import extract as extraction
from cardiobench.metrics import load
from cardiobench.protocols import list_protocols
from cardiobench.runner.dry_run import dry_run
from cardiobench.runner.run import run
from tests.models.tiny import tiny_open_clip

TASKS = ("phantom_echo/view", "phantom_echo/lv_seg", "phantom_echo/landmarks")


@pytest.fixture
def counted(monkeypatch):
    """Return the recordings passed to the encoding loop, by model."""
    given: Counter[str] = Counter()
    original = extraction.extract

    def extract(model, jobs, **options):
        given[model.name] += len(jobs)
        return original(model, jobs, **options)

    monkeypatch.setattr(extraction, "extract", extract)
    return given


def on_disk(folder):
    """Return total bytes and number of recordings of the shards in a cache."""
    shards = list(folder.rglob("*.arrow"))
    ids = 0
    for shard in shards:
        with pa.memory_map(str(shard)) as source:
            ids += len(pa.ipc.open_file(source).read_all()["id"].unique())
    return sum(shard.stat().st_size for shard in shards), ids


def test_task_without_its_metric_is_left_out_as_in_a_run(tmp_path, monkeypatch):
    """Each folder of a metric can be deleted; the results of a task without its metric have no key."""
    here = load.list_metrics()
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: [name for name in here if name != "auroc_macro"])
    versions = {name: load.formula_version(name) for name in here if name != "auroc_macro"}
    monkeypatch.setattr("cardiobench.runner.cells.base.formula_version", versions.__getitem__)
    settings = RunConfig(
        models=("cardiobench/constant",),
        tasks=("phantom_ecg/af", "phantom_ecg/findings"),
        protocols=("knn",),
        limit=2,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
    )
    plan = dry_run(settings, Console(main=False))
    assert [hole["task"] for hole in plan.holes] == ["phantom_ecg/af"]


@pytest.mark.slow
def test_dry_run_estimates_all_encoding(tmp_path, counted):
    if lacking := {"attention_probe", "dense", "stress"} - set(list_protocols()):
        pytest.skip(f"no installed extension provides {', '.join(sorted(lacking))}")
    # Both models share the tokens of the floors, and one model is a floor itself.
    models = (str(tiny_open_clip(tmp_path / "org" / "clip")), "cardiobench/random-vit")
    settings = RunConfig(
        models=models,
        tasks=TASKS,
        protocols=("probe", "attention_probe", "dense", "stress"),
        poolings=("own", "tokens"),
        limit=2,
        resamples=20,
        workers=0,
        options={
            "dense": {"penalties": [0.1]},
            "stress": {"kinds": ["shuffle", "speckle"]},
            "attention_probe": {"epochs": 1, "seeds": 1},
        },
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
    )
    plan = dry_run(settings, Console(main=False))
    assert not plan.problems and not counted and not (tmp_path / "cache").exists()
    run(settings, Console(main=False))
    size, ids = on_disk(tmp_path / "cache")
    assert sum(row["to_encode"] for row in plan.rows) == sum(counted.values())
    assert sum(counted.values()) < ids, "a frame-wise model has the stored vectors of shuffled frames"
    assert sum(row["bytes"] for row in plan.rows) == pytest.approx(size, rel=0.03)
    again = dry_run(settings, Console(main=False))
    assert all(row["to_encode"] == row["bytes"] == 0 for row in again.rows)
