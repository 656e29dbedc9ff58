"""The notebooks of the manual: they run from top to bottom on bundled data, offline, and carry nothing of the machine they were written on."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name: str, kind: str) -> list[dict]:
    content = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_from_top_to_bottom(name, tmp_path):
    """Run the code cells in order in one namespace of a new process, as "run all" does."""
    script = tmp_path / f"{name}.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells(name, "code")), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(FOLDER.parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "floor" in run.stdout or name == "model_from_the_hub"
    assert [path.name for path in tmp_path.iterdir()] == [script.name], "it leaves nothing behind"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_stripped_and_of_no_machine(name):
    for cell in cells(name, "code"):
        assert cell["outputs"] == [] and cell["execution_count"] is None
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert not re.search(r"[\"'( ](/(?!/)\w+/|[A-Z]:\\\\|~/)", text), "an absolute path"


def test_the_manual_links_every_notebook(root):
    page = (root / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    for name in NOTEBOOKS:
        assert f"<notebooks/{name}.ipynb>`" in page, name
