"""Fixtures shared by all tests."""

import atexit
import gc
import os
import tempfile
from pathlib import Path

import pytest

from tests.skips import unlisted_skips
from tests.without_extensions import deleted, names_deleted

# The Hugging Face libraries read these variables at import. They keep tests away from the user's caches.
_HOME = tempfile.TemporaryDirectory(prefix="cardiobench-tests-")
os.environ["HF_HOME"] = _HOME.name
os.environ["CARDIOBENCH_CACHE"] = str(Path(_HOME.name) / "cardiobench")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("CARDIOBENCH_DATA", None)
os.environ["PANDAS_COPY_ON_WRITE"] = "1"  # As in pandas 3, whose columns are read-only arrays.

# Imported objects live until the end; without this, the garbage collector would traverse millions of them repeatedly.
gc.disable()

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def samples() -> Path:
    """Return the folder of real recordings in the repository; its README lists their licences."""
    return ROOT / "tests" / "samples"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return a folder of real samples and reference outputs next to the checkout; skip the test if it is missing."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no folder of real samples beside this checkout")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _undrawn():
    """Disable figures, which take as long as the rest of a small run; tests of figures request `figures`."""
    from cardiobench.report.plots.draw import ReportFigures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cardiobench.report.markdown.draw_report", lambda *_, **__: ReportFigures())
        patch.setattr("cardiobench.runner.cells.analysis.save_figures", lambda *_: [])
        yield


@pytest.fixture(scope="session", autouse=True)
def _accepted():
    """Check each command that a message prints, in every test: the parser has to accept it."""
    from tests.printed import Recorder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cardiobench.core.command.shlex", Recorder())
        yield


@pytest.fixture
def printed(monkeypatch):
    """Return the commands that messages print during a test."""
    from tests.printed import Recorder

    recorder = Recorder()
    monkeypatch.setattr("cardiobench.core.command.shlex", recorder)
    return recorder


@pytest.fixture
def figures(monkeypatch):
    """Let runs save their figures."""
    from cardiobench.report.plots import draw, save_figures

    monkeypatch.setattr("cardiobench.report.markdown.draw_report", draw.draw_report)
    monkeypatch.setattr("cardiobench.runner.cells.analysis.save_figures", save_figures)


def pytest_ignore_collect(collection_path):
    """Leave out tests that use a dataset or a metric whose folder was deleted."""
    return True if deleted() and collection_path.suffix == ".py" and names_deleted(collection_path) else None


LONGEST = {"test_extensions.py", "test_full_size.py", "test_mimic_suite.py", "test_validity.py", "test_verdict.py"}
"""Files with tests of up to a minute, which start first, so that no worker waits for one at the end."""


def pytest_collection_modifyitems(items):
    """Put the longest tests first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_collection_finish():
    """Exclude imported objects from garbage collection, and collect less often than the default of 700 new objects."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # After the collections at the end of pytest, which would traverse all of them again.
    gc.set_threshold(10_000)
    gc.enable()


def pytest_sessionfinish(session, exitstatus):
    """Fail the test session if a skip is missing in `skips.txt`."""
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    if terminal and unlisted_skips(terminal.stats.get("skipped", ())) and not exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Report skips that are not allowed."""
    for skip in unlisted_skips(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(f"not on the list of skips, tests/skips.txt: {skip}", red=True)
