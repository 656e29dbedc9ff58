"""Fixtures that every test may use."""

import gc
import os
import tempfile
from pathlib import Path

import pytest

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


def pytest_collection_finish():
    """Leave all that was imported to the end of the process, and collect what the tests make."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish():
    """Let the process take down what was imported, in its own order."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter):
    """Say how many faults were tried and survived (tests/faults and the marker `fault`), from whichever process ran them."""
    reports = [report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, ())]
    counted = [dict(report.user_properties) for report in reports if getattr(report, "user_properties", None)]
    alone = [report for report in reports if report.when == "call" and "fault" in report.keywords]
    tried = sum(properties.get("faults_tried", 0) for properties in counted) + len(alone)
    if tried:
        survived = sum(properties.get("faults_survived", 0) for properties in counted)
        survived += sum(report.passed for report in alone)
        terminalreporter.write_line(f"faults: tried {tried}, survived {survived}")
