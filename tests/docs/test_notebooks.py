"""Check that the notebooks run offline on bundled data and reproduce their stored outputs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name: str, kind: str, folder: Path = FOLDER) -> list[dict]:
    content = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def output(cell: dict) -> str:
    """Return the text outputs of a cell."""
    texts = [one["text"] if one["output_type"] == "stream" else one["data"]["text/plain"] for one in cell["outputs"]]
    return "".join("".join(text) for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_reproduces_its_stored_outputs(name, tmp_path):
    """Run all cells in order in a new process; the last digits may differ between processors."""
    for folder in ("notebooks", "run_notebooks.py"):
        source, target = FOLDER.parent / folder, tmp_path / folder
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    for other in set(NOTEBOOKS) - {name}:
        (tmp_path / "notebooks" / f"{other}.ipynb").unlink()
    run = subprocess.run(
        [sys.executable, str(tmp_path / "run_notebooks.py")],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(FOLDER.parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    number = re.compile(r"\d+\.\d+")
    for stored, again in zip(cells(name, "code"), cells(name, "code", tmp_path / "notebooks"), strict=True):
        assert number.sub("0", output(again)) == number.sub("0", output(stored))
        values = [[float(one) for one in number.findall(output(cell))] for cell in (again, stored)]
        assert values[0] == pytest.approx(values[1], rel=0.02)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_outputs_are_small_and_contain_no_local_paths(name):
    code = cells(name, "code")
    assert sum(bool(cell["outputs"]) for cell in code) >= 2
    assert all(cell["execution_count"] is None for cell in code)
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text) < 20_000, "outputs are small"
    assert not re.search(r"[\"'( ](/(?!/)\w+/|[A-Z]:\\\\|~/)", text), "an absolute path"


def test_manual_links_every_notebook(root):
    page = (root / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    for name in NOTEBOOKS:
        assert f"<notebooks/{name}.ipynb>`" in page, name
