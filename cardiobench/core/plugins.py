"""Parts that do not come with this package: entry points of installed packages, and folders of the user's own."""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from cardiobench.core.errors import BadConfig
from cardiobench.core.resources import folder

Location = TypeVar("Location")

VARIABLES = {"hf_datasets": "CARDIOBENCH_DATASETS_DIR", "model_cards": "CARDIOBENCH_MODELS_DIR"}
"""Folder of this package -> environment variable with the user's own folders of the same form; workers inherit it."""


def folders(name: str) -> tuple[Path, ...]:
    """Return the folder `hf_datasets` or `model_cards` of this package, and those that the user has beside it."""
    own = os.environ.get(VARIABLES[name], "").split(os.pathsep)
    return (folder(name), *(Path(entry).expanduser() for entry in own if entry))


def add_folder(name: str, path: Path | None) -> None:
    """Let a folder of the user stand beside `hf_datasets` or `model_cards`, in this process and in those that it starts.

    Raises:
        BadConfig: there is no such folder.
    """
    if path is None or path.absolute() in folders(name):
        return
    if not path.is_dir():
        raise BadConfig(f"there is no folder {path}. Give a folder of the same form as {name}/ of CardioBench.")
    own = os.environ.get(VARIABLES[name])
    os.environ[VARIABLES[name]] = os.pathsep.join(filter(None, [own, str(path.absolute())]))


@cache
def entry_points(group: str) -> Mapping[str, metadata.EntryPoint]:
    """Return name -> entry point of the installed packages, `group` being datasets, models, metrics or protocols."""
    points = metadata.entry_points(group=f"cardiobench.{group}")
    return by_name(group.removesuffix("s"), ((point.name, point) for point in points))


def package_of(point: metadata.EntryPoint) -> str:
    """Return the name and version of the package that an entry point comes from."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


def load(group: str, name: str) -> Any:
    """Import the object of an entry point.

    Raises:
        BadConfig: its package cannot be imported, or has no such thing.
    """
    point = entry_points(group)[name]
    try:
        return point.load()
    except Exception as error:  # The code of a package can raise anything as it is imported.
        raise BadConfig(
            f"the {group.removesuffix('s')} '{name}' ({point.value}) of the installed package {package_of(point)} "
            f"cannot be loaded: {error}. Repair that package, or uninstall it."
        ) from error


def shown(location: object) -> str:
    """Return where a part comes from: a path, or an entry point and its package."""
    return f"{location.value} of {package_of(location)}" if isinstance(location, metadata.EntryPoint) else str(location)


def by_name(kind: str, pairs: Iterable[tuple[str, Location]]) -> dict[str, Location]:
    """Return name -> location.

    Raises:
        BadConfig: two things of a kind have one name: nothing takes the place of another unseen.
    """
    named: dict[str, Location] = {}
    for name, location in pairs:
        if name in named:
            first, second = map(shown, (named[name], location))
            raise BadConfig(f"two {kind}s are called '{name}': {first} and {second}. Rename or remove one.")
        named[name] = location
    return named
