"""Test the six kinds of task, and one from another package, which must support everything that the six do."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core import plugins
from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.report.overview import find_task
from cardiobench.results.context import ResultContext
from cardiobench.runner.run import run
from cardiobench.scoring.metrics import narrow_metrics
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.tasks.classes import Binary, Multiclass
from cardiobench.tasks.multilabel import Multilabel
from cardiobench.tasks.regression import Regression
from cardiobench.tasks.task import KINDS, Task, TaskKind, list_kinds, metrics_of
from tests.scoring.factories import BINARY, VALUE, references, test_rows


class Count(Regression):
    """Kind of numbers with a single report."""

    def reports(self, task):
        return ("regression_report",)


OTHERS = {
    "count": Count,
    "finding": Binary,
    "grade": type("Grade", (Multiclass,), {}),
    "statements": type("Statements", (Multilabel,), {}),
}
INSTEAD = {"regression": "count", "binary": "finding", "multiclass": "grade", "multilabel": "statements"}


@pytest.fixture
def others(monkeypatch):
    """Register kinds of another package as classes."""
    for name, kind in OTHERS.items():
        monkeypatch.setitem(KINDS, name, kind)


def test_every_kind_has_rules():
    assert {"regression", "binary", "multiclass", "multilabel", "segmentation", "landmarks"} <= {*list_kinds()}
    for name in catalog.list_datasets():
        for task in catalog.spec(name).all_tasks:
            assert isinstance(task.rules, TaskKind) and task.rules is KINDS[task.kind]
            assert (task.rules.answer == "frames") is task.dense is bool(task.rules.frame_metrics)
            assert task.rules.answer in {"class", "labels"} or not task.classes


def test_unknown_kind_is_refused_with_the_known_kinds(others):
    with pytest.raises(ValueError, match=r"no kind of task 'counts'. The kinds are regression, .*landmarks, count, "):
        Task("toy/n", "counts", "n", ("mae",))
    with pytest.raises(ValueError, match="a finding task has structures"):
        Task("toy/n", "finding", "n", ("f1_macro",), classes=("no", "yes"), structures=("cavity",))
    with pytest.raises(ValueError, match="a binary task has two classes"):
        Task("toy/n", "finding", "n", ("f1_macro",), classes=("a", "b", "c"))


@pytest.mark.parametrize("task", [VALUE, BINARY], ids=lambda task: task.kind)
def test_user_kind_is_scored_like_its_base_class(others, task):
    other, table = replace(task, kind=INSTEAD[task.kind]), references(task)
    truth = test_rows(table)
    if task.classes:
        answers = truth[["id"]].assign(y_pred=np.where(np.arange(len(truth)) % 4 > 0, truth["y_true"], task.classes[0]))
    else:
        answers = truth[["id"]].assign(y_pred=truth["y_true"] + np.arange(len(truth)) % 7 - 3)
    context = ResultContext(resamples=50, metrics=narrow_metrics(other))
    found, known = (
        replace(score(Predictions.join(table, answers, one), table, context), stamp={}) for one in (other, task)
    )
    assert found.to_json() == known.to_json()


def test_kind_names_its_reports(others):
    ef = catalog.task("phantom_echo/ef")
    assert metrics_of(ef)[1:] == ("regression_report", "ejection_fraction_report")
    assert metrics_of(replace(ef, kind="count"))[1:] == ("regression_report",)


def test_kind_in_manual_works(root, monkeypatch):
    page = (root / "CONTRIBUTING.md").read_text("utf-8")
    code = page.split("## Add a kind of task")[1].split("```python\n")[1].split("```")[0]
    monkeypatch.setitem(KINDS, "count", None)
    exec(code, {"__name__": "manual"})
    with pytest.raises(ValueError, match=r"a count task has a label_range from 0, got \(1, 9\)"):
        Task("toy/n", "count", "n", ("mae",), label_range=(1, 9))
    assert Task("toy/n", "count", "n", ("mae",), label_range=(0, 9)).rules.answer == "number"


def test_kind_of_an_installed_package_is_known(monkeypatch):
    class Point:
        value, dist, module = "toy:Count", None, "toy"

        def load(self):
            return Count

    real = plugins.entry_points
    monkeypatch.setattr(plugins, "entry_points", lambda group: {"count": Point()} if group == "kinds" else real(group))
    monkeypatch.delitem(KINDS, "count", raising=False)
    assert list_kinds()[-1] == "count" and isinstance(Task("toy/n", "count", "n", ("mae",)).rules, Count)
    del KINDS["count"]


@pytest.mark.slow
def test_user_kinds_run_under_built_in_protocols(others, monkeypatch, tmp_path, request):
    request.addfinalizer(find_task.cache_clear)  # The report of the run keeps the tasks of the other kinds.
    for name in ("phantom_echo", "phantom_ecg"):
        builder = catalog.builder(name)
        tasks = tuple(replace(task, kind=INSTEAD.get(task.kind, task.kind)) for task in builder.SPEC.tasks)
        monkeypatch.setattr(builder, "SPEC", replace(builder.SPEC, tasks=tasks))
    found = run(
        RunConfig(
            models=("cardiobench/pixel-motion", "cardiobench/ecg-morphology"),
            tasks=("phantom_echo/ef", "phantom_echo/view", "phantom_ecg/cd", "phantom_ecg/findings"),
            protocols=("probe", "knn"),
            output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache",
            resamples=50,
            limit=30,
            options={name: {"comparison_refits": 2} for name in ("probe", "knn")},
        )
    )
    assert not found.failures and len(found.results) == 8
    assert {(one.task, one.metric) for one in found.results} == {
        ("phantom_echo/ef", "mae"),
        ("phantom_echo/view", "f1_macro"),
        ("phantom_ecg/cd", "f1_macro"),
        ("phantom_ecg/findings", "auroc_macro"),
    }
