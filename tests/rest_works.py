"""Check a checkout without some extensions: `python -m tests.rest_works OUT NAME ...`, in one process.

The check imports every module, lists commands and protocols, runs a suite of two cells, and collects all tests.
"""

import contextlib
import io
import sys
from importlib import import_module
from pathlib import Path

import pytest


def modules(root: Path) -> list[str]:
    """Return the names of all modules except those that run on import or have a separate environment."""
    return [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((root / "cardiobench").rglob("*.py"))
        if path.name != "__main__.py" and "space" not in path.parts and path.parent.name != "leaderboard"
    ]


def check(out: Path, names: set[str]) -> None:
    """Raise an error if anything needs one of the deleted extensions."""
    root = Path(__file__).parents[1]
    for name in modules(root):
        assert Path(import_module(name).__file__).is_relative_to(root), name  # type: ignore[arg-type]

    from cardiobench.cli.main import main
    from cardiobench.protocols import list_protocols

    assert not names & {*list_protocols()}
    with contextlib.redirect_stdout(io.StringIO()) as listed:
        assert main(["list"]) == 0
    assert "probe" in listed.getvalue()
    settings = ("--model", "cardiobench/ecg-morphology", "--tasks", "ptb_xl_sample/cd", "--protocols", "probe")
    assert (
        main(["eval", *settings, "--limit", "12", "--resamples", "20", "--workers", "0", "--output-dir", str(out)]) == 0
    )
    assert [*out.rglob("ptb_xl_sample__cd.json")]
    assert pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "tests/extensions"]) in (0, 5)


if __name__ == "__main__":
    check(Path(sys.argv[1]), {*sys.argv[2:]})
    sys.stdout.write("without: works\n")
