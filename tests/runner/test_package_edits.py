"""Check that edits of the package without a new version reuse all results, and a new version only renews its dependents."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cardiobench.core.resources import PACKAGE
from tests.forked import run_python

FOLDERS = ("cardiobench", "hf_datasets", "hf_metrics", "model_cards")
TASKS = ("phantom_echo/ef", "ptb_xl_sample/cd")


@pytest.fixture
def checkout(tmp_path) -> Path:
    """Copy the package and the folders next to it."""
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE.parent / name, tmp_path / "checkout" / name, ignore=ignored)
    return tmp_path / "checkout"


def earlier(checkout: Path, folder: Path) -> dict[str, bool]:
    """Run the constant model; return task -> whether the result was reused, and dataset -> whether all was encoded."""
    given = ("--model", "cardiobench/constant", "--tasks", *TASKS, "--protocols", "knn", "--limit", "30", "--json")
    folders = ("--output-dir", str(folder / "out"), "--cache-dir", str(folder / "cache"), "--workers", "0")
    done = run_python(
        *("-m", "cardiobench.eval", *given, *folders, "--resamples", "20"),
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    taken = summary["from_earlier_run"]
    found = {result["task"]: number in taken for number, result in enumerate(summary["results"])}
    assert found.keys() == set(TASKS)
    encoded = [line for line in done.stderr.splitlines() if line.startswith("encoding ")]
    return found | {
        name.partition("/")[0]: not any(name.partition("/")[0] in line for line in encoded) for name in TASKS
    }


@pytest.mark.slow
def test_only_a_version_changes_the_key(checkout, tmp_path):
    assert not any(earlier(checkout, tmp_path).values())
    for path in [path for name in FOLDERS for path in (checkout / name).rglob("*.py")]:
        path.write_text(path.read_text("utf-8") + "\n# a comment\nA_NEW_CONSTANT = 1\n", "utf-8")
    config = checkout / "cardiobench" / "core" / "config.py"
    config.write_text("# another comment\n" + config.read_text("utf-8").replace('"""', '"""Words. ', 1), "utf-8")
    (checkout / "cardiobench" / "cli" / "commands" / "new.py").write_text('"""A new command."""\n')
    video = checkout / "cardiobench" / "data" / "media" / "video.py"
    video.rename(video.with_name("moving.py"))  # Moving a module changes no key.
    for path in (checkout / "cardiobench").rglob("*.py"):
        text = path.read_text("utf-8")
        if "data.media.video" in text or "still, video" in text:
            text = text.replace("data.media.video", "data.media.moving").replace(
                "still, video", "still, moving as video"
            )
            path.write_text(text, "utf-8")
    assert all(earlier(checkout, tmp_path).values())
    moved = video.with_name("moving.py")
    moved.write_text(moved.read_text("utf-8").replace("VERSION = 1", "VERSION = 2"), "utf-8")
    found = earlier(checkout, tmp_path)
    assert found == {"phantom_echo/ef": False, "phantom_echo": False, "ptb_xl_sample/cd": True, "ptb_xl_sample": True}
