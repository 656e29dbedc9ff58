"""Fixtures shared by all tests."""

import gc
import os
import tempfile
from pathlib import Path

import pytest

from tests.skips import unlisted_skips

# Read by the Hugging Face libraries when they are imported: no test reads or leaves anything in the user's caches.
_HOME = tempfile.TemporaryDirectory(prefix="cardiobench-tests-")
os.environ["HF_HOME"] = _HOME.name
os.environ["CARDIOBENCH_CACHE"] = str(Path(_HOME.name) / "cardiobench")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("CARDIOBENCH_DATA", None)

# Imports make millions of objects that live to the end: the collector would walk over them again and again.
gc.disable()

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def samples() -> Path:
    """Real recordings that travel with the tests; see the README there for their licences."""
    return ROOT / "tests" / "samples"


@pytest.fixture(scope="session")
def shared() -> Path:
    """A folder of real samples and reference outputs beside the checkout; tests that need it skip without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder of real samples beside this checkout")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _undrawn():
    """Runs save no figures, which take as long as all else in a small run; tests that look at them ask for `figures`."""
    from cardiobench.report.plots.draw import ReportFigures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cardiobench.report.markdown.draw_report", lambda *_, **__: ReportFigures())
        patch.setattr("cardiobench.runner.analyze.save_figures", lambda *_: [])
        yield


@pytest.fixture
def figures(monkeypatch):
    """Let runs save their figures."""
    from cardiobench.report.plots import draw, save_figures

    monkeypatch.setattr("cardiobench.report.markdown.draw_report", draw.draw_report)
    monkeypatch.setattr("cardiobench.runner.analyze.save_figures", save_figures)


def pytest_collection_finish():
    """Leave all that was imported to the end of the process, and collect what the tests make."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session, exitstatus):
    """Fail a run with a skip that `skips.txt` does not allow; let the process take down what was imported, in its own order."""
    gc.unfreeze()
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    if terminal and unlisted_skips(terminal.stats.get("skipped", ())) and not exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Name skips that are not allowed, and the number of faults tried and survived (tests/faults and the marker `fault`)."""
    for skip in unlisted_skips(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(f"not on the list of skips, tests/skips.txt: {skip}", red=True)
    reports = [report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, ())]
    counted = [dict(report.user_properties) for report in reports if getattr(report, "user_properties", None)]
    alone = [report for report in reports if report.when == "call" and "fault" in report.keywords]
    tried = sum(properties.get("faults_tried", 0) for properties in counted) + len(alone)
    if tried:
        survived = sum(properties.get("faults_survived", 0) for properties in counted)
        survived += sum(report.passed for report in alone)
        terminalreporter.write_line(f"faults: tried {tried}, survived {survived}")
