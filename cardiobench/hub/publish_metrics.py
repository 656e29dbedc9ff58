"""Metric Spaces: the module for `evaluate.load`, its card, and the page from `metric_space/`."""

import subprocess
from pathlib import Path

import cardiobench
from cardiobench.core import resources
from cardiobench.hub.commit import RepoOptions, Target
from cardiobench.hub.publish import GRADIO, Publication
from cardiobench.metrics.load import own_metrics

PAGE = Path(__file__).parent / "metric_space"


def publication(name: str, namespace: str, *, private: bool = False) -> Publication:
    """Return the Space of a metric."""
    folder = resources.folder("hf_metrics") / name
    replacements = {"{GRADIO}": GRADIO, "{COMMIT}": source_commit(folder), "{NAME}": name}
    if namespace != "cardiobench":
        replacements[f"cardiobench/{name}"] = f"{namespace}/{name}"
    sources = {file: folder / file for file in ("README.md", f"{name}.py", "formula.py")}
    sources |= {file: PAGE / f"{file}.in" for file in ("app.py", "requirements.txt")}
    files = {}
    for file, source in sources.items():
        text = source.read_bytes().decode()
        for placeholder, value in replacements.items():
            text = text.replace(placeholder, value)
        files[file] = text.encode()
    return Publication(
        Target("space", f"{namespace}/{name}"),
        lambda snapshot: files,
        RepoOptions(private, sdk="gradio"),
        f"CardioBench {cardiobench.__version__}",
    )


def source_commit(folder: Path) -> str:
    """Commit that last changed a folder of the checkout, so that a Space changes only with its own files.

    For an installed copy this is the release; uncommitted changes are marked.
    """

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = (
        git("log", "-1", "--format=%H", "--", ".")
        if (resources.folder("hf_metrics").parent / ".git").exists()
        else None
    )
    if not commit:
        return f"of release {cardiobench.__version__}"
    return commit + (" with changes" if git("status", "--porcelain", "--", ".") else "")


def publications(names: list[str], namespace: str, *, private: bool = False) -> list[Publication]:
    """Return the Spaces of these metrics; of all if none are named."""
    return [publication(name, namespace, private=private) for name in names or own_metrics()]
