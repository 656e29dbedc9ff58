"""Test the views of all datasets pooled together."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.output import OTHERS, print_summary
from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.extensions.pooled_views.hooks import PooledViewHooks
from cardiobench.extensions.pooled_views.pool import pool
from cardiobench.extensions.pooled_views.tasks import POOLED
from cardiobench.hub.outgoing import not_a_benchmark_score
from cardiobench.report.overview import missing_reason, table_name
from cardiobench.report.page.content import task_part
from cardiobench.report.ranks import compare_all_pairs
from cardiobench.results.collect import collect
from cardiobench.results.context import ResultContext
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.runner.context import RunSummary
from cardiobench.runner.no_result import requested
from cardiobench.runner.plan import resolve_tasks
from cardiobench.runner.run import run
from cardiobench.scoring.score import score
from tests.hub.results import result


def views(name, view, n=30):
    ids = [f"{i}" for i in range(n)]
    return pd.DataFrame({"id": ids, "patient_id": ids, "y_true": view, "y_pred": view})


def unanswered(frames):
    return {name: frame[:0] for name, frame in frames.items()}


def test_datasets_with_one_view_are_scored_together():
    """Check that one dataset has a single class and no verdict, and that equal patient numbers stay separate when pooled."""
    frames = {name: views(name, view) for name, view in (("a", "A4C"), ("b", "A2C"), ("c", "PLAX"))}
    joined = pool(frames, unanswered(frames), 90)
    assert len(set(joined.patients)) == 90 and joined.expected == 90
    found = score(joined, joined.frame.assign(split="test"))
    assert found.task == POOLED.name and found.floor.value == pytest.approx(1 / 3)
    assert found.verdict.word == "above the floor" and found.score.value == 1
    wrong = {name: frame.assign(y_pred=np.resize(["A4C", "A2C", "PLAX"], 30)) for name, frame in frames.items()}
    references = joined.frame.assign(split="test")
    assert score(pool(wrong, unanswered(frames), 90), references).verdict.word == "no information shown"
    # Ten units per dataset have no prediction: the verdict treats all of them as wrong.
    some = {name: frame[10:] for name, frame in frames.items()}
    partly = score(pool(some, {name: frame[:10] for name, frame in frames.items()}, 90), references)
    assert partly.bounds.missing == 30 and 0.6 < partly.bounds.worst < 0.67 and partly.score.value == 1


def test_pooled_task_is_ranked_but_not_pushed(tmp_path):
    assert catalog.task("echo/view") is POOLED and catalog.spans_datasets(POOLED) and catalog.modality(POOLED) == "echo"
    names = {task.name for task in resolve_tasks(["echo/view"])}
    assert {"camus/view", "echonet_dynamic/view"} <= names and "phantom_echo/view" not in names
    assert POOLED.name not in catalog.list_tasks(), "no dataset has the view"
    frames = {name: views(name, view) for name, view in (("a", "A4C"), ("b", "A2C"), ("c", "PLAX"))}
    poor = {name: frame.assign(y_pred=np.resize(["A4C", "A2C", "PLAX"], 30)) for name, frame in frames.items()}
    for model, answers in (("x/good", frames), ("x/poor", poor)):
        joined = pool(answers, unanswered(answers), 90)
        found = score(
            joined,
            joined.frame.assign(split="test"),
            ResultContext(protocol="probe", model={"name": model}, resamples=50),
        )
        save_scored(found, joined.frame, result_path(tmp_path / model / "r", "probe", POOLED.name))
    entries = collect([tmp_path]).entries
    (pair,), left_out, *_ = compare_all_pairs(entries, resamples=50)
    assert {pair.a, pair.b} == {"x/good", "x/poor"} and not left_out
    assert table_name(found) == "Echo: views" and missing_reason(None, "probe", POOLED) == "not run"
    assert task_part(entries, [], [])["title"] == "echo/view"
    assert not_a_benchmark_score(found) == ["combined from results of several datasets, which are pushed separately"]


FOUR = ("ptb_xl/cd", "camus/ef", "camus/view", "tmed2/view")


@pytest.mark.parametrize(
    ("asked", "found", "rows"),
    [
        (FOUR, FOUR, FOUR),
        ((), FOUR, FOUR),
        (("camus",), ("camus/ef", "camus/view"), ("camus/ef", "camus/view")),
        (("echo/view",), ("camus/view", "tmed2/view"), ("echo/view",)),
    ],
)
def test_rows_of_a_run_equal_the_request(asked, found, rows, capsys, tmp_path):
    request = requested(RunConfig(models=("lab/a",), tasks=asked), [catalog.task(name) for name in found], (), ("knn",))
    summary = RunSummary(results=[result(task=name) for name in (*found, POOLED.name)], asked=request.rows)
    first, others = summary.by_request()
    assert {one.task for one in first} == set(rows) and len(first) == len(rows)
    print_summary(Console(), summary, tmp_path)
    above, _, below = capsys.readouterr().out.partition(OTHERS)
    assert [all(one.task in above for one in first), all(one.task in below for one in others)] == [True, True]


def test_pooled_task_is_named_before_the_run():
    def datasets(**generated):
        return {name: SimpleNamespace(generated=made) for name, made in generated.items()}

    def lines(here, **settings):
        tasks = [catalog.task(f"{name}/view") for name in ("camus", "tmed2", "phantom_echo")]
        return list(PooledViewHooks().announce(tasks, here, RunConfig(models=("lab/a",), **settings)))

    both = datasets(camus=False, tmed2=False, phantom_echo=True)
    (line,) = lines(both)
    assert line == "echo/view: the views of camus, tmed2 are also scored together, beside the requested tasks"
    assert lines(datasets(camus=False, phantom_echo=True)) == lines(both, shard="1/2") == []


@pytest.mark.slow
def test_pooled_result_states_run_and_suite(tmp_path, monkeypatch):
    datasets = ("hmc_qu", "segrwma")
    for name in datasets:
        write_twin(name, tmp_path / "data" / name, patients=12)
    suite = SimpleNamespace(name="views", tasks=("echo/view",), protocols=("probe",), options={"probe": {"refits": 0}})
    for module in ("names", "run"):
        monkeypatch.setattr(f"cardiobench.runner.{module}.load_suite", lambda name: suite)
    config = RunConfig(
        models=("cardiobench/constant",),
        suite="views",
        data_dir=tmp_path / "data",
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        workers=0,
        resamples=20,
    )
    outcome = run(config)
    stamps = {result.task: result.stamp for result in outcome.results}
    assert stamps.keys() == {POOLED.name, *(f"{name}/view" for name in datasets)}, outcome.failures
    assert {stamp["suite"] for stamp in stamps.values()} == {"views"}
    assert (
        len({stamp["key"] for stamp in stamps.values()}) == 3
        and len({len(stamp["key"]) for stamp in stamps.values()}) == 1
    )
