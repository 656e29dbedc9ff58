"""Check a checkout without some folders: `python -m tests.rest_works OUT NAME ...`, in one process.

The check imports every module, lists commands and protocols, runs a suite of two cells, writes a report, and
collects all tests.
"""

import contextlib
import io
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.without_extensions import deleted


def modules(root: Path) -> list[str]:
    """Return the names of all modules except those that run on import or have a separate environment."""
    return [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((root / "cardiobench").rglob("*.py"))
        if path.name != "__main__.py" and "space" not in path.parts and path.parent.name != "leaderboard"
    ]


def check(out: Path, names: set[str]) -> None:
    """Raise an error if anything needs one of the deleted folders."""
    root = Path(__file__).parents[1]
    for name in modules(root):
        assert Path(import_module(name).__file__).is_relative_to(root), name  # type: ignore[arg-type]

    from cardiobench.cli.main import main
    from cardiobench.core.errors import UnknownName
    from cardiobench.data.catalog import list_datasets, spec
    from cardiobench.metrics.load import own_metrics
    from cardiobench.protocols import list_protocols
    from cardiobench.scoring.suites import list_suites, load_suite

    assert not names & {*list_protocols(), *list_datasets(), *own_metrics()}
    assert all(spec(name).tasks for name in list_datasets())
    with contextlib.suppress(UnknownName):  # A suite may name what was deleted.
        assert all(load_suite(name).tasks for name in list_suites())
    with contextlib.redirect_stdout(io.StringIO()) as listed:
        assert main(["list"]) == 0
    assert "probe" in listed.getvalue()
    settings = ("--model", "cardiobench/ecg-morphology", "--tasks", "ptb_xl_sample/cd", "--protocols", "probe")
    assert (
        main(["eval", *settings, "--limit", "30", "--resamples", "20", "--workers", "0", "--output-dir", str(out)]) == 0
    )
    assert [*out.rglob("ptb_xl_sample__cd.json")]
    assert main(["report", str(out), "--out", str(out / "report")]) == 0
    collected = ["-q", "--collect-only", "-p", "no:cacheprovider"]
    whole = ["tests"] if deleted() else ["tests/extensions", "tests/models"]
    assert pytest.main([*collected, *whole]) in (0, 5)


if __name__ == "__main__":
    check(Path(sys.argv[1]), {*sys.argv[2:]})
    sys.stdout.write("without: works\n")
