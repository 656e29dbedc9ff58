"""A Sphinx extension that makes a page of every dataset, model, metric, protocol, feature and command from the repository."""

import inspect
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx

FOLDER = "generated"


def body(card: Path) -> str:
    """Return the text of a card without its YAML front matter."""
    text = card.read_text(encoding="utf-8")
    return re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL).strip() + "\n"


def index(title: str, intro: str, names: list[str]) -> str:
    """Return a page that lists other pages of its folder."""
    pages = "\n".join(names)
    return f"# {title}\n\n{intro}\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n"


def pages() -> dict[str, str]:
    """Return path below the generated folder -> Markdown text; parts of packages that happen to be installed have none."""
    from cardiobench.core.extensions import contributions, extensions
    from cardiobench.core.plugins import entry_points
    from cardiobench.core.resources import folder
    from cardiobench.data.catalog import is_own, list_datasets
    from cardiobench.metrics.load import own_metrics
    from cardiobench.protocols import list_protocols, protocol_class

    made = {}
    datasets, metrics = list(filter(is_own, list_datasets())), own_metrics()
    elsewhere = {*entry_points("protocols"), *contributions("protocols")}
    protocols = [name for name in list_protocols() if name not in elsewhere]
    features = [name for name in extensions() if name not in entry_points("extensions")]
    for name in datasets:
        made[f"datasets/{name}"] = body(folder("hf_datasets") / name / "README.md")
    cards = sorted(folder("model_cards").glob("*.md"))
    for card in cards:
        made[f"models/{card.stem}"] = body(card)
    for name in metrics:
        made[f"metrics/{name}"] = body(folder("hf_metrics") / name / "README.md")
    for name in protocols:
        kind = protocol_class(name)
        made[f"protocols/{name}"] = f"# {name}\n\n{inspect.getdoc(sys.modules[kind.__module__])}\n\n{options(name)}"
    for name in features:
        page = (feature_folder(name) / "docs.md").read_text(encoding="utf-8")
        made[f"features/{name}"] = "\n".join([page, *map(options, extensions()[name].protocols)])
    made["datasets/index"] = index("Datasets", "What is measured on, and what is wrong with it.", datasets)
    made["models/index"] = index("Models", "Every registered model and baseline.", [card.stem for card in cards])
    made["metrics/index"] = index("Metrics", "Each is a module of `evaluate`.", metrics)
    made["protocols/index"] = index("Protocols", "How predictions come about.", protocols)
    made["features/index"] = questions({name: made[f"features/{name}"] for name in features})
    made["commands"] = commands()
    return made


def questions(features: dict[str, str]) -> str:
    """Return the list of features, each with the first sentence of its page, which is the question that it answers."""
    rows = "\n".join(f"| {first_sentence(page)} | {{doc}}`{name}` |" for name, page in features.items())
    intro = f"Each feature is a folder that can be deleted.\n\n| what it does | page |\n|---|---|\n{rows}"
    return index("Features", intro, [*features])


def first_sentence(page: str) -> str:
    """Return the first sentence below the title of a page."""
    paragraph = " ".join(page.split("\n\n")[1].split())
    return re.split(r"(?<=[.?])\s|(?<=\w):$|(?<=\w):\s", paragraph)[0]


def feature_folder(name: str) -> Path:
    """Return the folder of a feature, with its page and its images."""
    from cardiobench.core.extensions import PACKAGE

    return Path(str(import_module(f"{PACKAGE}.{name}").__file__)).parent


def options(name: str) -> str:
    """Return the section of a protocol's options."""
    from cardiobench.protocols import protocol_class

    kind = protocol_class(name)
    return f"## Options of {name}\n\n```{{eval-rst}}\n.. autoclass:: {kind.__module__}.{kind.__qualname__}\n```\n"


def commands() -> str:
    """Return the help of every command."""
    from cardiobench.cli.commands import commands as registered

    sections = ["# Commands\n"]
    for name in ("eval", *registered()):
        line = [sys.executable, "-m", "cardiobench.cli", name, "--help-all" if name == "eval" else "--help"]
        help_text = subprocess.run(line, capture_output=True, text=True, check=True, env=_plain()).stdout
        sections.append(f"## cardiobench {name}\n\n```text\n{help_text.strip()}\n```\n")
    return "\n".join(sections)


def _plain() -> dict[str, str]:
    import os

    # A fixed width, and no home of whoever builds the manual in a default path.
    return {**os.environ, "COLUMNS": "100", "CARDIOBENCH_CACHE": "~/.cache/cardiobench", "NO_COLOR": "1"}


def write_pages(app: Sphinx) -> None:
    """Write the pages that have changed, so that a second build is quick, and remove pages of removed parts."""
    folder, made = Path(app.srcdir) / FOLDER, pages()
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).with_suffix("").as_posix() not in made:
            path.unlink()
    for name, text in made.items():
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        if path.parent.name == "features" and name != "features/index":
            for picture in feature_folder(path.stem).glob("*.png"):
                shutil.copy2(picture, path.parent)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
