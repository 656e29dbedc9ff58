"""Metrics and datasets in the folders that `datasets` and `evaluate` read for `cardiobench/<name>`."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiobench.core import resources
from cardiobench.core.errors import BadData, MissingData
from cardiobench.core.io import temporary_folder
from cardiobench.data import catalog
from cardiobench.data.phantom.twins import TWINS
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.metrics.load import own_metrics

NAMESPACE = "cardiobench"


@dataclass(frozen=True)
class Outcome:
    """Result of one dataset.

    Attributes:
        problem: Reason why it was not written, first line; empty otherwise.
        twin: Whether its synthetic twin was written.
    """

    problem: str = ""
    twin: bool = False


def mirror_metrics(folder: Path) -> list[str]:
    """Copy every metric of the package to `folder/cardiobench/<name>/`; return their names.

    Raises:
        BadData: A folder of that name holds something else than this metric.
    """
    for name in own_metrics():
        source, target = resources.folder("hf_metrics") / name, folder / NAMESPACE / name
        if target.exists() and not (target / f"{name}.py").is_file():
            raise BadData(f"{target} exists and is not the metric {name}. Name a new folder.")
        with temporary_folder(target) as work:
            shutil.copytree(source, work / "new", ignore=shutil.ignore_patterns("__pycache__"))
            if target.exists():
                target.rename(work / "old")
            (work / "new").rename(target)
    return list(own_metrics())


def mirror_datasets(
    folder: Path, names: Sequence[str] | None = None, *, data_dir: Path | None = None, twins: bool = False
) -> Iterator[tuple[str, Outcome]]:
    """Prepare datasets as `folder/cardiobench/<name>/`, one after the other.

    Args:
        folder: Folder of the mirror.
        names: Names of datasets; None for all that are registered.
        data_dir: Folder with raw folders; None for CARDIOBENCH_DATA.
        twins: Whether datasets without data here are written as their synthetic twins.

    Yields:
        Name of a dataset and its outcome.

    Raises:
        UnknownName: A name is not registered.
    """
    for name in names or catalog.list_datasets():
        catalog.spec(name)
    for name in names or catalog.list_datasets():
        try:
            prepare(name, data_dir, folder)
        except MissingData as error:
            if not twins or name not in TWINS:
                yield name, Outcome(problem=str(error).splitlines()[0])
                continue
            with tempfile.TemporaryDirectory() as raw:
                write_twin(name, Path(raw) / name)
                prepare(name, Path(raw) / name, folder)
            yield name, Outcome(twin=True)
        else:
            yield name, Outcome()
