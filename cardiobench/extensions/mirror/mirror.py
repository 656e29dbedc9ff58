"""Write metrics and datasets to the folders that `datasets` and `evaluate` read offline."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiobench.core import resources
from cardiobench.core.errors import BadData, MissingData
from cardiobench.core.io import remove_orphans, temporary_folder, unwritable
from cardiobench.core.registry import look_up
from cardiobench.data import catalog
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import has_twin, write_twin
from cardiobench.metrics.load import own_metrics

NAMESPACE = "cardiobench"


@dataclass(frozen=True)
class Outcome:
    """Outcome for one dataset.

    Attributes:
        problem: First line of the error if writing failed; otherwise empty.
        twin: Whether a synthetic twin was written.
    """

    problem: str = ""
    twin: bool = False


def mirror_metrics(folder: Path) -> list[str]:
    """Copy all metrics to `folder/cardiobench/<name>/` and return their names.

    Raises:
        BadData: A target folder contains something other than the metric.
        UnwritableOutput: The folder cannot be written to, or its disk is full.
    """
    for name in own_metrics():
        source, target = resources.folder("hf_metrics") / name, folder / NAMESPACE / name
        if target.exists() and not (target / f"{name}.py").is_file():
            raise BadData(f"{target} exists and is not the metric {name}. Choose a new folder.")
        try:
            remove_orphans(target.parent)
            with temporary_folder(target) as work:
                _copy(source, work / "new")
                if target.exists():
                    target.rename(work / "old")
                (work / "new").rename(target)
        except OSError as error:
            raise unwritable(f"{name} in {folder}", error) from None
    return list(own_metrics())


def _copy(source: Path, target: Path) -> None:
    """Copy the files of a folder; unlike `shutil.copytree`, keep the number of an error."""
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def mirror_datasets(
    folder: Path, names: Sequence[str] | None = None, *, data_dir: Path | None = None, twins: bool = False
) -> Iterator[tuple[str, Outcome]]:
    """Prepare datasets one by one as `folder/cardiobench/<name>/`.

    Args:
        folder: Root folder of the mirror.
        names: Dataset names; None for all registered datasets.
        data_dir: Folder with raw datasets; None for CARDIOBENCH_DATA.
        twins: Whether to write synthetic twins of datasets without local data.

    Yields:
        Dataset name and outcome.

    Raises:
        UnknownName: A name is not registered.
        UnwritableOutput: The folder cannot be written to, or its disk is full.
    """
    look_up(names or (), catalog.spec)
    for name in names or catalog.list_datasets():
        try:
            prepare(name, data_dir, folder)
        except MissingData as error:
            if not twins or not has_twin(name):
                yield name, Outcome(problem=str(error).splitlines()[0])
                continue
            try:
                with tempfile.TemporaryDirectory() as raw:
                    write_twin(name, Path(raw) / name)
                    prepare(name, Path(raw) / name, folder)
            except OSError as error:
                raise unwritable(f"the twin of {name} in {tempfile.gettempdir()}", error) from None
            yield name, Outcome(twin=True)
        else:
            yield name, Outcome()
