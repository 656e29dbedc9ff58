"""Check that the commands on the pages of the manual work."""

import re
import shlex
from pathlib import Path

import pytest

from cardiobench.cli.main import main
from cardiobench.data import catalog
from tests.forked import run_python

BLOCK = re.compile(r"(?:<!-- write: (\S+) -->\n)?```(bash|python)\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Return the blocks of a page to save or run as (file, language, code), without `text` blocks."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def run_here(code: str, capsys) -> str:
    """Run lines of the command in this process and return their output."""
    for line in code.replace("\\\n", " ").splitlines():
        assert main(shlex.split(line)[1:]) == 0, (line, capsys.readouterr().err[-2000:])
    return capsys.readouterr().out


def run_apart(code: str, folder: Path) -> str:
    """Run lines of the command, each in its own process, and return their output; a line with `||` may fail."""
    said = []
    for line in code.replace("\\\n", " ").splitlines():
        line, _, otherwise = line.partition(" || ")
        command, *words = shlex.split(line)
        assert command == "cardiobench", line
        run = run_python("-m", "cardiobench.cli", *words, cwd=folder)
        assert run.returncode == 0 or otherwise, (line, run.stderr[-2000:])
        said.append(run.stdout)
    return "".join(said)


def run_page(page: Path, folder: Path, capsys) -> list[str]:
    """Save the file blocks of a page and run the others in order in a folder; return the output of each."""
    done = []
    for file, language, code in blocks(page):
        if file:
            (folder / file).write_text(code, encoding="utf-8")
            continue
        if language == "bash":
            done.append(run_apart(code, folder) if page.stem in OWN_DATA else run_here(code, capsys))
            continue
        run = run_python("-c", code, cwd=folder)
        assert run.returncode == 0, (code, run.stderr[-2000:])
        done.append(run.stdout)
    return done


# Mapping from page to the number of run blocks, an expected output, and a file that exists at the end.
# `tests/wheel_smoke.py` runs the first hour.
TUTORIALS = {
    "my_model": (4, 1, "carries information", "results/report.html"),
    "my_recordings": (7, 6, "klinik/schenkelblock", "my_datasets/klinik/splits.csv"),
    "my_predictions": (6, 3, "theirs", "exported.parquet"),
}
OWN_DATA = ("my_recordings",)
"""Pages with other datasets, which a process remembers: each command runs in its own process."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial_pages_run_unchanged(root, tmp_path, name, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    count, position, printed, file = TUTORIALS[name]
    done = run_page(root / "docs" / f"{name}.md", tmp_path, capsys)
    assert len(done) == count and printed in done[position]
    assert (tmp_path / file).exists()


def test_every_page_is_in_the_table_of_contents(root):
    contents = (root / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (root / "docs").glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", contents, re.MULTILINE), page.name


@pytest.mark.parametrize("name", catalog.list_datasets())
def test_table_of_data_names_every_dataset_and_its_tasks_of_single_frames(root, name):
    table = (root / "docs" / "data.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| [^|]*`{name}`.*$", table, re.MULTILINE)
    for task in catalog.list_dense_tasks():
        dataset, _, target = task.partition("/")
        assert dataset != name or f"`{target}`" in row, task
