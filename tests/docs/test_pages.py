"""The manual: what its pages tell a reader to type works as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cardiobench.data import catalog

BLOCK = re.compile(r"```(bash|python)\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the blocks of a page that are meant to be run: (language, code); `text` blocks are not."""
    return [(language, code) for language, code in BLOCK.findall(page.read_text(encoding="utf-8"))]


def run_page(page: Path, folder: Path) -> list[str]:
    """Run the blocks of a page in order in a folder; return what each printed."""
    done = []
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for language, code in blocks(page):
        if "make demo" in code:  # A make target of its own, which CI runs.
            continue
        code = code.replace("cardiobench ", f"{sys.executable} -m cardiobench.cli ") if language == "bash" else code
        line = ["bash", "-ec", code] if language == "bash" else [sys.executable, "-c", code]
        run = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, (code, run.stderr[-2000:])
        done.append(run.stdout)
    return done


@pytest.mark.slow
def test_the_first_hour_runs_as_it_stands(root, tmp_path):
    done = run_page(root / "docs" / "first_hour.md", tmp_path)
    assert len(done) == 5
    assert "collapsed" in done[2], "the constant answer is told from a model"
    assert (tmp_path / "twin").is_dir()


@pytest.mark.slow
def test_the_page_of_ones_own_recordings_runs_as_it_stands(root, tmp_path):
    done = run_page(root / "docs" / "my_recordings.md", tmp_path)
    assert len(done) == 4 and "my_hospital/block" in done[3]
    assert (tmp_path / "my_datasets" / "my_hospital" / "splits.csv").is_file()


def test_every_page_is_in_the_contents(root):
    contents = (root / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (root / "docs").glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", contents, re.MULTILINE), page.name


@pytest.mark.parametrize("name", catalog.list_datasets())
def test_the_table_of_data_names_every_dataset_and_its_tasks_of_single_frames(root, name):
    table = (root / "docs" / "usage.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| [^|]*`{name}`.*$", table, re.MULTILINE)
    for task in catalog.list_dense_tasks():
        dataset, _, target = task.partition("/")
        assert dataset != name or f"`{target}`" in row, task
