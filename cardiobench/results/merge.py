"""Merge result folders from several machines, rejecting conflicting files."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cardiobench.core.errors import BadConfig, BadData, MissingData, first_n
from cardiobench.core.io import files_below, read_file, write_atomic
from cardiobench.results.analysis_result import AnalysisResult, is_analysis
from cardiobench.results.paths import PATTERN, predictions_path, validation_path
from cardiobench.results.predictions_file import load_predictions, load_validation
from cardiobench.results.record import LONGEST, Record
from cardiobench.results.score_result import ScoreResult


@dataclass(frozen=True)
class Merged:
    """Outcome of a merge.

    Attributes:
        copied: Number of new records in the target.
        kept: Number of records that were already in the target.
        files: Paths of the written files.
        empty: Folders without records, such as those of empty shards.
        bare: Scores without predictions.
    """

    copied: int
    kept: int
    files: tuple[Path, ...]
    empty: tuple[Path, ...] = ()
    bare: tuple[Path, ...] = ()


class _Found(NamedTuple):
    path: Path
    identity: str
    bare: bool
    beside: tuple[Path, ...]


def merge(folders: Sequence[Path], target: Path) -> Merged:
    """Copy all results and analyses with their predictions and tables to another folder.

    All files are validated before any is written. A score with predictions replaces one without.

    Raises:
        MissingData: A folder does not exist or is not a results folder.
        BadConfig: A source folder contains the target, or the target contains it.
        BadData: A record is unreadable or modified, or two records with the same path have different inputs.
    """
    chosen: dict[str, _Found] = {}
    kept, wrong, empty = 0, [], []
    for folder in (target, *folders):
        if folder != target:
            _check_folder(folder, target)
        paths = files_below(folder, PATTERN)
        if not paths and folder != target:
            empty.append(folder)
        for path in paths:
            name, record = path.relative_to(folder).as_posix(), _load(path)
            found = _Found(path, _identity(record), _is_bare(path, record), _beside(path, record))
            first = chosen.setdefault(name, found)
            if first.path == path:
                continue
            if first.identity != found.identity:
                wrong.append(f"{first.path} and {path}")
            elif first.bare and not found.bare:
                chosen[name] = found
            else:
                kept += 1
    if wrong:
        raise BadData(
            f"{len(wrong)} results with the same path were made from different inputs: {first_n(wrong)}. "
            "Compare their stamps, and merge only one of them."
        )
    new = {name: found for name, found in chosen.items() if not found.path.is_relative_to(target)}
    files = [file for name, found in new.items() for file in _copy(found, target / name)]
    bare = tuple(found.path for found in chosen.values() if found.bare)
    return Merged(len(new), kept, tuple(files), tuple(empty), bare)


def _check_folder(folder: Path, target: Path) -> None:
    """Reject folders without results and folders that overlap the target."""
    if not folder.is_dir():
        raise MissingData(f"there is no folder {folder}. Give the --output-dir of a run.")
    if not files_below(folder, PATTERN) and not (folder / "runs").is_dir():
        raise MissingData(f"no result in {folder}. Give the --output-dir of a run.")
    inner, outer = Path(os.path.realpath(folder)), Path(os.path.realpath(target))
    if inner != outer and (inner.is_relative_to(outer) or outer.is_relative_to(inner)):
        raise BadConfig(f"{folder} and --out {target} contain one another. Choose a separate folder for --out.")


def _load(path: Path) -> Record:
    """Load a record and validate its accompanying files."""
    if is_analysis(read_file(path, LONGEST)):
        return AnalysisResult.load(path)
    result = ScoreResult.load(path)
    if predictions_path(path).exists():
        load_predictions(result, predictions_path(path))
        load_validation(result, path)
    return result


def _identity(record: Record) -> str:
    """Return the fields that records with the same path must share; the creation time may differ."""
    return str(record.stamp.get("key") or record.to_json())


def _copy(found: _Found, target: Path) -> list[Path]:
    """Copy the files under the record's checksum before the record, so that readers never see an incomplete record."""
    return [
        write_atomic(target.with_name(path.name), partial(shutil.copyfile, path))
        for path in (*found.beside, found.path)
    ]


def _is_bare(path: Path, record: Record) -> bool:
    return isinstance(record, ScoreResult) and not predictions_path(path).exists()


def _beside(path: Path, record: Record) -> tuple[Path, ...]:
    """Return the files that belong to a record; figures can be drawn again from these, and no checksum covers them."""
    if not isinstance(record, ScoreResult):
        return tuple(record.files(path)[1:])
    return tuple(file for file in (predictions_path(path), validation_path(path)) if file.is_file())
