"""What the runner does for extensions, with toy manifests: whatever is installed takes no part."""

import sys
from types import ModuleType

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig
from cardiobench.core.extensions import Extension
from cardiobench.runner.run import run

FUNCTIONS = {"after_model": ["derive"]}
"""Field of a manifest that refers to a function -> the function's name."""


@pytest.fixture
def install(monkeypatch):
    """Install a toy extension in place of all others: fields of its manifest -> attributes of the module they name."""

    def make(**parts):
        for field, attributes in parts.items():
            module = ModuleType(f"toy_{field}")
            vars(module).update(attributes)
            monkeypatch.setitem(sys.modules, module.__name__, module)
        manifest = Extension(**{field: ":".join([f"toy_{field}", *FUNCTIONS.get(field, [])]) for field in parts})
        monkeypatch.setattr("cardiobench.core.extensions.extensions", lambda: {"toy": manifest} if parts else {})

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
    install(after_run={"check": seen.append, "execute": lambda results, config: seen.append((list(results), config))})
    summary = run(config())
    checked, (results, settings) = seen
    assert results == summary.results and len(results) == 1
    assert checked == settings == config()


def test_settings_are_refused_before_any_work(install, config, tmp_path):
    def refuse(config):
        raise BadConfig("the tape is full")

    install(after_run={"check": refuse, "execute": None})
    with pytest.raises(BadConfig, match="tape is full"):
        run(config())
    install()
    with pytest.raises(BadConfig, match="--report-to tape: no installed extension reports results"):
        run(config(report_to="tape"))
    assert not list(tmp_path.rglob("*.json"))


def test_finished_cells_are_handed_over_for_what_is_derived_from_them(install, config):
    seen = []
    install(after_model={"derive": lambda cells, context: seen.append([cell.load_cached() for cell in cells])})
    summary = run(config())
    assert [[cached.to_json() for cached in found] for found in seen] == [[one.to_json() for one in summary.results]]
