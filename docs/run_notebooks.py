"""Run the notebooks of the manual and store their outputs: `python docs/run_notebooks.py`."""

import ast
import contextlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one code cell and return its outputs: the printed text, then the value of the last expression.

    As in Jupyter, a semicolon at the end suppresses the value.
    """
    tree = ast.parse(source)
    shown = tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")
    last = tree.body.pop() if shown else None
    value, printed = None, io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            html = re.sub(r"<style.*?</style>\n?", "", value._repr_html_(), flags=re.DOTALL)
            data["text/html"] = html.splitlines(keepends=True)
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def run(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of all its code cells, run in order in an empty working folder."""
    content = json.loads(path.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = run_cell("".join(cell["source"]), names)
        assert not list(Path(folder).iterdir()), f"{path.name} leaves files in the working folder"
    return content


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.ipynb")):
        file.write_text(json.dumps(run(file), indent=1, ensure_ascii=False) + "\n", "utf-8")
