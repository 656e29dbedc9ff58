"""Test hooks of the runner for extensions, with toy manifests in place of installed extensions."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, CardioBenchError
from cardiobench.core.extensions import Extension
from cardiobench.runner.hooks import RunHooks
from cardiobench.runner.run import run


@pytest.fixture
def install(monkeypatch):
    """Return a function that installs a toy extension with a condition and hooks of a run."""

    def make(condition=None, **methods):
        module = ModuleType("toy")
        vars(module).update(condition or {}, Hooks=type("Hooks", (RunHooks,), methods))
        monkeypatch.setitem(sys.modules, "toy", module)
        manifest = Extension(conditions={"toy": "toy"} if condition else {}, hooks="toy:Hooks" if methods else "")
        monkeypatch.setattr("cardiobench.core.extensions.extensions", lambda: {"toy": manifest})

    return make


@pytest.fixture
def config(tmp_path):
    def make(**changes):
        settings = {"models": "cardiobench/constant", "tasks": "ptb_xl_sample/cd", "protocols": "probe"}
        folders = {"output_dir": tmp_path / "results", "cache_dir": tmp_path / "cache"}
        return RunConfig(**settings, **folders, resamples=50, workers=0, **changes)

    return make


def test_results_are_handed_over_at_the_end(install, config):
    seen = []
    install(
        check=lambda self, config: seen.append(config),
        after_run=lambda self, results, config: seen.append((list(results), config)),
    )
    summary = run(config())
    checked, (results, settings) = seen
    assert results == summary.results and len(results) == 1
    assert checked == settings == config()


def test_settings_are_refused_before_any_work(install, config, tmp_path):
    def refuse(self, config):
        raise BadConfig("the tape is full")

    install(check=refuse)
    with pytest.raises(BadConfig, match="tape is full"):
        run(config())
    install()
    with pytest.raises(BadConfig, match="--report-to tape: no installed extension can report results"):
        run(config(report_to="tape"))
    assert not list(tmp_path.rglob("*.json"))


def test_finished_cells_are_passed_to_after_model_hooks(install, config):
    seen = []
    install(after_model=lambda self, cells, context: seen.append([cell.load_cached() for cell in cells]))
    summary = run(config())
    assert [[cached.to_json() for cached in found] for found in seen] == [[one.to_json() for one in summary.results]]


def condition(calls, **attributes):
    """Condition that predicts the class named after `=`."""

    def apply(cell, data, output, value):
        calls.append((cell.task.name, value))
        codes = np.full(len(output.indices), data.task.classes.index(value))
        return replace(output, values=np.eye(len(data.task.classes))[codes])

    module = {"VERSION": 1, "check": lambda config, value: None, "applies": lambda task, value: bool(task.classes)}
    return {**module, "apply": apply, **attributes}


@pytest.mark.slow
def test_condition_is_a_separate_result(install, config, tmp_path):
    calls = []
    install(condition(calls))
    (plain,) = run(config()).results
    (one,) = run(config(conditions="toy=CD")).results
    assert calls == [("ptb_xl_sample/cd", "CD")]
    assert (plain.variant, one.variant) == ("", "toy=CD")
    folders = {
        path.parent.name: set(pd.read_parquet(path)["y_pred"]) for path in tmp_path.rglob("*cd.predictions.parquet")
    }
    assert folders.keys() == {"probe", "probe.toy=CD"} and folders["probe.toy=CD"] == {"CD"}


@pytest.mark.slow
def test_condition_that_does_not_apply_changes_nothing(install, config):
    install(condition([], applies=lambda task, value: False))
    run(config())
    again = run(config(conditions="toy"))
    assert len(again.earlier) == 1 and again.results[0].variant == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("toys", "no condition 'toys'. Did you mean 'toy'"),
        ("toy=", "--condition 'toy=': expected NAME or NAME=VALUE"),
        ("toy=../x", "expected NAME or NAME=VALUE"),
        (("toy", "toy=1"), "'toy' is given twice"),
        ("toy=no", "no is no answer"),
    ],
)
def test_condition_is_refused_before_any_work(install, config, tmp_path, given, message):
    def check(config, value):
        if value:
            raise BadConfig(f"{value} is no answer")

    install(condition([], check=check))
    with pytest.raises(CardioBenchError, match=message):
        run(config(conditions=given))
    assert not list(tmp_path.rglob("*.json"))
