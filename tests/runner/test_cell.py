"""Test the key of a result: it depends on versions of scoring code, not of code that prints, draws or sends."""

import json
import re
from dataclasses import replace
from inspect import getfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cardiobench import scoring
from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.task_facts import task_facts
from cardiobench.metrics import load
from cardiobench.protocols import knn, list_protocols, protocol, protocol_class
from cardiobench.runner.analyze import compare_models
from cardiobench.runner.cells.base import BaseCell
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.compute import applies
from cardiobench.runner.context import RunSummary
from cardiobench.scoring.metrics import metrics_of
from cardiobench.tasks.task import KINDS, task_kind

TASK = catalog.task("camus/ef")


class Keyed(BaseCell):
    """Cell without data."""

    recordings = ""

    def inputs(self):
        return {}

    def load_cached(self):
        return None

    def compute(self, recent):
        raise AssertionError("nothing is computed here")


def cell(name: str = "knn", task=TASK) -> Keyed:
    model = SimpleNamespace(pooling="mean", revision="1", setting="", name="org/model")
    return Keyed(model, protocol(name), RunConfig(), task.name, (task,))


@pytest.mark.parametrize("name", list_protocols())
def test_components_of_a_result_are_its_protocol_scoring_and_metrics(name):
    code = cell(name).code
    assert code.keys() == {"protocol", "scoring", *(f"metric {one}" for one in metrics_of(TASK))}
    assert code["protocol"].startswith(f"protocol {name} ") and "cardiobench" not in json.dumps(code)


def test_new_version_scores_affected_results(monkeypatch):
    before = {name: cell(name).key for name in ("knn", "probe")}
    monkeypatch.setattr(knn, "VERSION", 99)
    assert cell("knn").key != before["knn"] and cell("probe").key == before["probe"]
    monkeypatch.setattr(scoring, "VERSION", 99)
    assert cell("probe").key != before["probe"]


def test_metric_version_rescores_its_tasks(monkeypatch):
    tasks = [TASK, catalog.task("ptb_xl_sample/cd")]
    before = [cell(task=task).key for task in tasks]
    monkeypatch.setattr(load.load_formula("regression_report"), "VERSION", 2, raising=False)
    assert [cell(task=task).key != key for task, key in zip(tasks, before, strict=True)] == [True, False]


def test_user_formulas_are_keyed_by_code_ours_by_version(tmp_path, monkeypatch):
    path = tmp_path / "within.py"
    path.write_text("HIGHER_IS_BETTER = True\n")
    module = ModuleType("within")
    module.__file__ = str(path)
    monkeypatch.setattr(load, "load_formula", lambda name: module)
    assert load.formula_version("mae") == "1"
    monkeypatch.setattr(load.plugins, "entry_points", lambda group: {"within": None})
    before = load.formula_version("within")
    path.write_text("HIGHER_IS_BETTER = True  # a comment\n")
    assert load.formula_version("within") == before
    path.write_text("HIGHER_IS_BETTER = False\n")
    assert load.formula_version("within") != before
    module.VERSION = 4
    assert load.formula_version("mae") == load.formula_version("within") == "4"


def test_descriptions_and_default_fields_do_not_change_the_key():
    facts = task_facts(TASK)
    assert task_facts(replace(TASK, description="reworded", expected={"rows": {"total": 7}})) == facts
    assert {"classes", "structures", "partially_labelled"}.isdisjoint(facts)
    assert json.loads(json.dumps(facts)) == facts
    for change in ({"unit": "cm"}, {"where": {"view": ("A4C",)}}, {"groups": ()}, {"label_range": (0, 1)}):
        assert task_facts(replace(TASK, **change)) != facts


@pytest.mark.parametrize(
    ("name", "reason"), [("zero_shot", "cannot compare recordings"), ("native", "no trained heads")]
)
def test_unsuitable_model_is_refused_before_reading(name, reason):
    model = SimpleNamespace(encoder=SimpleNamespace(name="org/pictures"), name="org/pictures", given=frozenset())
    task = catalog.task("camus/ef")
    refused = Cell(model, protocol(name), RunConfig(), task.name, (task,), None, "", frozenset())
    assert reason in applies(refused), "the dataset has neither rows nor a store"


@pytest.mark.parametrize(
    "name", [one for one in list_protocols() if getattr(protocol_class(one), "runs_in_parallel", False)]
)
def test_long_cells_are_sent_to_workers(name):
    model = SimpleNamespace(encoder=SimpleNamespace(name="org/model"), name="org/model", given=frozenset())
    assert Cell(model, protocol(name), RunConfig(), TASK.name, (TASK,), None, "", frozenset()).sendable


def test_protocol_without_its_metrics_is_left_out_before_any_work(monkeypatch):
    """Each folder of a metric can be deleted."""
    here = load.list_metrics()
    asked = SimpleNamespace(name="drift", formulas=("mae", "linear_cka"), comparison_formulas=("linear_cka",))
    cells = [
        SimpleNamespace(
            protocol=asked,
            tasks=(TASK,),
            subject="camus",
            label="drift",
            check=lambda: None,
            model=SimpleNamespace(name=name, given=()),
        )
        for name in ("org/a", "org/b")
    ]
    assert applies(cells[0]) == ""
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: [one for one in here if one != "linear_cka"])
    assert applies(cells[0]) == "drift needs linear_cka, not among the metrics here"
    context = SimpleNamespace(summary=RunSummary())
    compare_models(cells, context)
    reason = "the comparison of models needs linear_cka, not among the metrics here"
    assert context.summary.not_applicable == [("org/a, org/b", "camus", "drift", reason)]


@pytest.mark.parametrize("name", list_protocols())
def test_protocol_names_the_metrics_that_it_computes(name):
    made = protocol_class(name)
    folder = Path(getfile(made)).parent
    if folder.parent.name != "extensions":
        return
    used = {
        found
        for path in folder.glob("*.py")
        for found in re.findall(r'load_(?:metric|formula)\("(\w+)"\)', path.read_text("utf-8"))
    }
    of_tasks = {one for kind in KINDS for one in task_kind(kind).frame_metrics}
    assert used <= {*made.formulas, *getattr(made, "comparison_formulas", ()), *of_tasks}
