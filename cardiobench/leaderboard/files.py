"""Create the files of a leaderboard Space for a dataset of results."""

import json
from pathlib import Path

import cardiobench
from cardiobench.core.errors import BadData
from cardiobench.core.io import write_text
from cardiobench.hub.commit import RepoOptions, Target
from cardiobench.hub.publish import GRADIO, Publication
from cardiobench.leaderboard.source import is_repository

FOLDER = Path(__file__).parent / "space"


def files(dataset: str) -> dict[str, str]:
    """Return a mapping from file name to content for the Space.

    Args:
        dataset: Dataset of results, `org/name`.

    Raises:
        BadData: The name is invalid.
    """
    if not is_repository(dataset):
        raise BadData(f"{dataset!r} is not the name of a dataset on the Hub, which the Space reads. Give org/name.")
    places = {"{DATASET}": json.dumps(dataset), "{GRADIO}": GRADIO, "{VERSION}": cardiobench.__version__}
    made = {}
    for name in ("README.md", "app.py", "requirements.txt"):
        text = (FOLDER / f"{name}.in").read_text(encoding="utf-8")
        for place, filled in places.items():
            text = text.replace(place, filled)
        made[name] = text
    return made


def write_files(dataset: str, out: Path) -> list[Path]:
    """Write the Space to a folder, for inspection or manual upload."""
    return sorted(write_text(text, out / name) for name, text in files(dataset).items())


def publication(dataset: str, space: str, *, private: bool = False) -> Publication:
    """Return the Space on the Hub."""
    content = {name: text.encode() for name, text in files(dataset).items()}
    return Publication(
        Target("space", space),
        lambda snapshot: content,
        RepoOptions(private, sdk="gradio"),
        f"CardioBench {cardiobench.__version__}",
    )
