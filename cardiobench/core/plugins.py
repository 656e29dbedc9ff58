"""Parts from outside this package: entry points of installed packages, and the user's own folders."""

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
"""Folder of this package -> environment variable with user folders of the same format, which worker processes inherit."""

_given: dict[str, Path] = {}


def folders(name: str) -> tuple[Path, ...]:
    """Return the folder `hf_datasets` or `model_cards` of this package, followed by the user's folders as absolute paths."""
    own = os.environ.get(VARIABLES[name], "").split(os.pathsep)
    return (folder(name), *(Path(entry).expanduser().absolute() for entry in own if entry))


def add_folder(name: str, path: Path | None) -> None:
    """Add a user folder to `hf_datasets` or `model_cards`, for this process and its child processes.

    Raises:
        BadConfig: There is no such folder.
    """
    if path is None:
        return
    _given[name] = path
    if path.absolute() in folders(name):
        return
    if not path.is_dir():
        raise BadConfig(f"there is no folder {path}. Give a folder of the same form as {name}/ of CardioBench.")
    _, *own = folders(name)
    os.environ[VARIABLES[name]] = os.pathsep.join(map(str, [*own, path.absolute()]))


def given_folders() -> dict[str, Path]:
    """Return `hf_datasets` or `model_cards` -> the user folder that this process added, as it was given."""
    return {name: path for name, path in _given.items() if path.absolute() in folders(name)}


def add_folders(datasets: Path | None, models: Path | None) -> None:
    """Add the user folders of a run; raises `BadConfig` if one does not exist."""
    add_folder("hf_datasets", datasets)
    add_folder("model_cards", models)


@cache
def entry_points(group: str) -> Mapping[str, metadata.EntryPoint]:
    """Return the entry points of installed packages by name; `group` is datasets, models, metrics or protocols."""
    points = metadata.entry_points(group=f"cardiobench.{group}")
    return by_name(group.removesuffix("s"), ((point.name, point) for point in points))


def package_of(point: metadata.EntryPoint) -> str:
    """Return the name and version of the package that an entry point comes from."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


def load(group: str, name: str) -> Any:
    """Import the object of an entry point.

    Raises:
        BadConfig: The package cannot be imported, or has no such object.
    """
    point = entry_points(group)[name]
    try:
        return point.load()
    except Exception as error:  # Importing third-party code can raise anything.
        raise BadConfig(
            f"the {group.removesuffix('s')} '{name}' ({point.value}) of the installed package {package_of(point)} "
            f"cannot be loaded: {error}. Repair that package, or uninstall it."
        ) from error


def shown(location: object) -> str:
    """Return the location of a part: a path, or an entry point and its package."""
    return f"{location.value} of {package_of(location)}" if isinstance(location, metadata.EntryPoint) else str(location)


def by_name(kind: str, pairs: Iterable[tuple[str, Location]]) -> dict[str, Location]:
    """Return a mapping from name to location.

    Raises:
        BadConfig: Two parts of a kind have the same name; neither silently replaces the other.
    """
    named: dict[str, Location] = {}
    for name, location in pairs:
        if name in named:
            first, second = map(shown, (named[name], location))
            raise BadConfig(f"two {kind}s are called '{name}': {first} and {second}. Rename or remove one.")
        named[name] = location
    return named
