"""Catalogue of datasets and tasks: folders of `hf_datasets/`, of the user, and installed packages.

A folder holds a builder (`builder.py`), or declares its dataset in a file (`dataset.yaml`).
"""

import importlib.util
import inspect
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cardiobench.core import extensions, plugins, resources
from cardiobench.core.errors import BadConfig, MissingData, UnknownName
from cardiobench.core.file_state import FileState, file_state, state_or_none
from cardiobench.core.registry import check_text, nearest, unknown_name
from cardiobench.core.user_code import user_code
from cardiobench.data.spec import DatasetSpec, Modality, Task

if TYPE_CHECKING:
    from cardiobench.data.builder import CardioBuilder

FILES = ("builder.py", "dataset.yaml")
"""Files that define a dataset folder."""


def _locations() -> dict[str, Path | EntryPoint]:
    roots = plugins.folders("hf_datasets")
    return _locations_in(roots, tuple(map(state_or_none, roots)))


@cache
def _locations_in(roots: tuple[Path, ...], states: tuple[FileState | None, ...]) -> dict[str, Path | EntryPoint]:
    """Return a mapping from dataset to file of its builder or declaration, or entry point of an installed package."""
    files = [(path.parent.name, path) for root in roots for name in FILES for path in sorted(root.glob(f"*/{name}"))]
    return plugins.by_name("dataset", [*files, *plugins.entry_points("datasets").items()])


def list_datasets() -> tuple[str, ...]:
    """Return the names of all datasets, in alphabetical order.

    >>> "phantom_ecg" in list_datasets()
    True
    """
    return tuple(sorted(_locations()))


def is_own(name: str) -> bool:
    """Return whether a dataset is part of this package."""
    return (resources.folder("hf_datasets") / name / "builder.py").is_file()


def dataset_folder(name: str) -> Path:
    """Return the folder of a dataset: its builder, card, splits and prompts."""
    location = _location(name)
    return location.parent if isinstance(location, Path) else Path(inspect.getfile(builder(name))).parent


def builder(name: str) -> "type[CardioBuilder]":
    """Return the builder class of a dataset, imported from its file or package.

    Raises:
        UnknownName: There is no such dataset.
        BadConfig: The object found is not a builder of a dataset with that name.
    """
    location = _location(name)
    # An edited declaration is read again; the code of a builder is imported once per process.
    declared = isinstance(location, Path) and location.name == FILES[1]
    return _builder(name, location, file_state(location) if isinstance(location, Path) and declared else None)


def _location(name: str) -> Path | EntryPoint:
    if name not in (locations := _locations()):
        raise unknown("dataset", name, locations)
    return locations[name]


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """Return the error for an unknown name of a dataset or task.

    If no known name is similar and no folder of datasets was given, it names the flag for one.
    """
    error = unknown_name(kind, name, known := sorted(known))
    dataset = name.partition("/")[0]
    if dataset in list_datasets() or nearest(name, known) or "hf_datasets" in plugins.given_folders():
        return error
    return UnknownName(*error.args, "A dataset of your own is found with --datasets-dir DIR.")


@cache
def _builder(name: str, location: Path | EntryPoint, state: FileState | None) -> "type[CardioBuilder]":
    from cardiobench.data.builder import CardioBuilder

    origin = plugins.shown(location)
    try:
        kind = _from_file(name, location) if isinstance(location, Path) else plugins.load("datasets", name)
    except (TypeError, ValueError) as error:  # `DatasetSpec.__post_init__` raises these for invalid values.
        raise BadConfig(f"the dataset {name} ({origin}) cannot be loaded: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, CardioBuilder)):
        raise BadConfig(
            f"{origin}: {kind!r} is not a dataset. A dataset is a subclass of cardiobench.data.CardioBuilder."
        )
    if kind.SPEC.name != name:
        raise BadConfig(f"{origin}: its SPEC is called '{kind.SPEC.name}'; expected '{name}'. Give both the same name.")
    return kind


def _from_file(name: str, path: Path) -> "type[CardioBuilder]":
    if path.name == FILES[1]:
        from cardiobench.data.declared.builder import declared_builder

        return declared_builder(path)
    from cardiobench.data.builder import CardioBuilder

    module = import_file(f"cardiobench_builder_{name}", path, TypeError, ValueError)
    builders = [
        member
        for member in vars(module).values()
        if isinstance(member, type) and issubclass(member, CardioBuilder) and member.__module__ == module.__name__
    ]
    if len(builders) != 1:
        raise BadConfig(
            f"{path} must define exactly one CardioBuilder, but defines {len(builders)}. Move the others to folders of their own"
        )
    return builders[0]


def import_file(module_name: str, path: Path, *passing: type[Exception]) -> ModuleType:
    """Import a file of a dataset's folder under the name of a module.

    Args:
        module_name: Name under which the module is registered.
        path: Path of the file.
        passing: Exceptions that are re-raised for the caller.

    Raises:
        BadConfig: The file raises any other error.
    """
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    if module_spec is None or module_spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_name] = module
    with user_code(f"the import of {path}", *passing, error_class=BadConfig):
        module_spec.loader.exec_module(module)
    return module


def spec(name: str) -> DatasetSpec:
    """Return the spec of a dataset."""
    return builder(name).SPEC


def replaced_by(name: str) -> tuple[str, ...]:
    """Return the datasets that have the same recordings in another form, or some of them, and that a dataset replaces.

    A name that is not in the catalog replaces none.
    """
    return spec(name).replaces if name in list_datasets() else ()


def generated_dataset(modality: str) -> str:
    """Return the first dataset of generated recordings of a modality.

    Raises:
        MissingData: There is none, because its folder was deleted.
    """
    for name in list_datasets():
        if is_own(name) and spec(name).generated and spec(name).modality == modality:
            return name
    raise MissingData(f"there is no dataset of generated {modality} recordings. Install cardiobench again.")


def list_tasks() -> tuple[str, ...]:
    """Return the names of the benchmark's own tasks, `<dataset>/<target>`, in alphabetical order.

    >>> [name for name in list_tasks() if name.startswith("phantom_echo/")]
    ['phantom_echo/ef', 'phantom_echo/view']
    """
    return tuple(sorted(task.name for name in list_datasets() for task in spec(name).tasks))


def list_dense_tasks() -> tuple[str, ...]:
    """Return the names of the segmentation and landmark tasks, in alphabetical order."""
    return tuple(sorted(task.name for name in list_datasets() for task in spec(name).dense_tasks))


def defined_tasks(spec: DatasetSpec) -> tuple[Task, ...]:
    """Return additional tasks of a dataset defined by extensions."""
    return tuple(task for define in extensions.offers("tasks", "definitions") for task in define(spec))


def list_defined_tasks() -> tuple[str, ...]:
    """Return the names of additional tasks defined by extensions, in alphabetical order."""
    return tuple(sorted(task.name for name in list_datasets() for task in defined_tasks(spec(name))))


def tasks_over_datasets() -> tuple[Task, ...]:
    """Return the tasks over several datasets, which are defined by extensions and belong to no dataset."""
    return tuple(task for tasks in extensions.offers("tasks", "COMBINED") for task in tasks)


def spans_datasets(task: Task) -> bool:
    """Return whether a task is over several datasets."""
    return task in tasks_over_datasets()


def members(task: Task) -> tuple[Task, ...]:
    """Return the member tasks of a task over several datasets: those of this package's datasets of patients."""
    real = (spec(name) for name in list_datasets() if is_own(name) and not spec(name).generated)
    return tuple(
        one for found in real for one in found.tasks if (one.target, one.classes) == (task.target, task.classes)
    )


def modality(task: Task) -> Modality:
    """Return the noun for the recordings of a task."""
    return spec((members(task)[0] if spans_datasets(task) else task).dataset).modality


def task(name: str) -> Task:
    """Return the task with that name: of a dataset, over several, or defined by an extension.

    Raises:
        UnknownName: There is no such task; the message suggests the most similar name.
    """
    check_text("task", name)
    for candidate in tasks_over_datasets():
        if candidate.name == name:
            return candidate
    dataset = name.partition("/")[0]
    if dataset in list_datasets():
        for candidate in (*spec(dataset).all_tasks, *defined_tasks(spec(dataset))):
            if candidate.name == name:
                return candidate
    raise unknown("task", name, sorted([*list_tasks(), *list_dense_tasks(), *list_defined_tasks()]))
