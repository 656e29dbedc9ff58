"""Copy the checkout without some folders: `python -m tests.without_extensions OUT` leaves out all extensions and families."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cardiobench.core.extensions import PACKAGE

ROOT = Path(__file__).parents[1]
KEPT = {"phantom_ecg", "phantom_echo", "ptb_xl_sample"}
"""Datasets that come with the package. The demo, the trial of a model and most tests run on them."""
FAMILIES = "cardiobench.models.families"
PLACES = {"dataset": "hf_datasets", "metric": "hf_metrics"}


def copy_without(
    names: Iterable[str],
    out: Path,
    *,
    datasets: Iterable[str] = (),
    metrics: Iterable[str] = (),
    families: Iterable[str] = (),
) -> Path:
    """Copy files tracked by git, and new ones, without some extensions, datasets, metrics, families and their tests.

    Times of change and bytecode are copied too, so that a copy does not compile every module again.
    """
    left_out = [f"{place}/{name}/" for name in names for place in ("cardiobench/extensions", "tests/extensions")]
    for home, chosen in (("hf_datasets", datasets), ("hf_metrics", metrics)):
        left_out += [f"{place}/{name}/" for name in chosen for place in (home, f"tests/{home}")]
    for name in families:
        left_out += [f"{place}/{name}/" for place in (FAMILIES.replace(".", "/"), "tests/models/families")]
        left_out += [str(card.relative_to(ROOT)) for card in cards_of(name)]
    git = ("git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listed = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split("\0")
    for file in map(Path, listed):
        if file.name and (ROOT / file).is_file() and not str(file).startswith(tuple(left_out)):
            compiled = (ROOT / file.parent).glob(f"__pycache__/{file.stem}.*.pyc") if file.suffix == ".py" else ()
            for path in (file, *(path.relative_to(ROOT) for path in compiled)):
                (out / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, out / path)
    return out


def own_extensions() -> tuple[str, ...]:
    """Return the names of the extensions that are folders of this package."""
    return tuple(sorted(path.parent.name for path in (ROOT / PACKAGE.replace(".", "/")).glob("*/__init__.py")))


def own_families() -> tuple[str, ...]:
    """Return the names of the families of models that are folders of this package."""
    return tuple(sorted(path.parent.name for path in (ROOT / FAMILIES.replace(".", "/")).glob("*/__init__.py")))


def cards_of(family: str) -> list[Path]:
    """Return the model cards that name the adapter of a family."""
    line = f"\nadapter: {FAMILIES}.{family}."
    return [path for path in sorted((ROOT / "model_cards").glob("*.md")) if line in path.read_text(encoding="utf-8")]


def names_in(place: str) -> tuple[str, ...]:
    """Return the names of the folders in `hf_datasets` or `hf_metrics`."""
    return tuple(sorted(path.parent.name for path in (ROOT / place).glob("*/README.md")))


@cache
def deleted() -> frozenset[str]:
    """Return the datasets and metrics that the recorded versions list and whose folder was deleted."""
    recorded = json.loads((ROOT / "tests" / "golden" / "versions.json").read_text("utf-8"))["versions"]
    parts = [name.split(" ", 1) for name in recorded if name.startswith(("dataset ", "metric "))]
    return frozenset(name for kind, name in parts if not (ROOT / PLACES[kind] / name / "README.md").is_file())


@cache
def names_deleted(path: Path) -> bool:
    """Return whether a test file, or a module of tests that it imports, names a deleted dataset or metric as a text.

    Such tests use the folder as an example, and are not collected without it.
    """
    text = path.read_text("utf-8")
    if deleted() and re.search(rf"""(?<![\w-])({"|".join(map(re.escape, deleted()))})(?![\w-])""", text):
        return True
    imported = re.findall(r"^\s*from (tests(?:\.\w+)*) import ([\w, ]+)", text, re.MULTILINE)
    modules = [[*module.split("."), name.strip()] for module, names in imported for name in names.split(",")]
    files = [
        ROOT.joinpath(*parts[:end]).with_suffix(".py") for parts in modules for end in (len(parts), len(parts) - 1)
    ]
    return any(names_deleted(file) for file in files if file.is_file() and file != path)


if __name__ == "__main__":
    copy_without(own_extensions(), Path(sys.argv[1]), families=own_families())
