"""Put result folders of several machines into one; nothing is overwritten, and what differs is refused."""

import glob
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cardiobench.core.errors import BadData, MissingData, first_n
from cardiobench.core.io import write_atomic
from cardiobench.results.analysis_result import AnalysisResult, is_analysis
from cardiobench.results.paths import PATTERN, predictions_path
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.record import Record
from cardiobench.results.score_result import ScoreResult


@dataclass(frozen=True)
class Merged:
    """The outcome of a merge.

    Attributes:
        copied: records that are new in the target.
        kept: records that it held already, made from the same things.
        files: written.
    """

    copied: int
    kept: int
    files: tuple[Path, ...]


def merge(folders: Sequence[Path], target: Path) -> Merged:
    """Copy every result and analysis of some folders to another, with predictions, tables and figures.

    All are read and checked before anything is written.

    Raises:
        MissingData: a folder is not there, or holds no result.
        BadData: a record that cannot be read or was edited, or two of one place that were made from different things.
    """
    chosen: dict[str, tuple[Path, str]] = {}
    kept, wrong = 0, []
    for folder in (target, *folders):
        if not folder.is_dir() and folder != target:
            raise MissingData(f"there is no folder {folder}. Name the --output-dir of a run.")
        paths = sorted(folder.rglob(PATTERN))
        if not paths and folder != target:
            raise MissingData(f"no result in {folder}. Name the --output-dir of a run.")
        for path in paths:
            name, identity = path.relative_to(folder).as_posix(), _identity(_load(path))
            first, held = chosen.setdefault(name, (path, identity))
            if first == path:
                continue
            if held == identity:
                kept += 1
            else:
                wrong.append(f"{first} and {path}")
    if wrong:
        raise BadData(
            f"{len(wrong)} results of one place were made from different things: {first_n(wrong)}. "
            "Compare their stamps, and merge one of them only."
        )
    new = {name: path for name, (path, _) in chosen.items() if not path.is_relative_to(target)}
    files = [file for name, path in new.items() for file in _copy(path, target / name)]
    return Merged(len(new), kept, tuple(files))


def _load(path: Path) -> Record:
    """Read a record, and check the files that it answers for."""
    if not path.is_file():  # a pipe would be waited for
        raise BadData(f"{path} is no regular file. Take it out of the folder.")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror or error}.") from error
    if is_analysis(text):
        return AnalysisResult.load(path)
    result = ScoreResult.load(path)
    if predictions_path(path).exists():
        load_predictions(result, predictions_path(path))
    return result


def _identity(record: Record) -> str:
    """Return what two records of one place must share; the time at which they were made may differ."""
    return str(record.stamp.get("key") or record.to_json())


def _copy(source: Path, target: Path) -> list[Path]:
    """Copy a record after the files beside it, so that a reader never sees it without them."""
    beside = [
        path
        for path in sorted(source.parent.glob(f"{glob.escape(source.stem)}.*"))
        if path.is_file() and path != source
    ]
    return [write_atomic(target.with_name(path.name), partial(shutil.copyfile, path)) for path in (*beside, source)]
