"""Reuse unchanged figures of an earlier report, from the user's own cache."""

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cardiobench
from cardiobench.core import plugins
from cardiobench.core.config import default_cache
from cardiobench.core.errors import BadData, UnwritableOutput
from cardiobench.core.foreign import MOST_BYTES
from cardiobench.core.io import parse_json, sha256_of_file, sha256_of_json, write_atomic, write_json
from cardiobench.data.task_facts import task_facts
from cardiobench.report.plots.figure import SavedFigure
from cardiobench.report.plots.job import FigureJob
from cardiobench.results.collect import ResultEntry

FOLDER = "figures"
"""Folder of the cache, with a folder for each digest of what is drawn."""
NOTE = "figures.json"
"""File with captions, SVG elements and digests of the other files of its folder."""
UNUSED_SECONDS = 30 * 24 * 3600


def shown_digest(job: FigureJob, png: bool) -> str:
    """Return the digest of all inputs of a job's figures.

    Args:
        job: Results and records; predictions are hashed as files.
        png: Whether PNG files are requested.
    """
    return sha256_of_json(
        {
            "program": _program(),
            "job": [job.kind, job.name, png],
            "tasks": {name: task_facts(task) if task else None for name, task in sorted(job.tasks.items())},
            "results": [
                [_result_digest(entry), entry.predictions and _digest_or_size(entry.predictions)]
                for entry in job.entries
            ],
            "records": [
                [record.to_json(), {name: table.to_csv() for name, table in record.tables.items()}]
                for record in job.records
            ],
        }
    )


def kept_figures(folder: Path, digest: str) -> tuple[SavedFigure, ...] | None:
    """Copy figures of an earlier report into the folder of this one and return them; None if they are not kept.

    Figures are kept in the user's own cache, because a folder of results may be somebody else's: what lies there is
    replaced by what was drawn here.

    Args:
        folder: Folder of the figures.
        digest: Digest of what they draw (`shown_digest`).
    """
    home = _home(digest)
    if not (home / NOTE).is_file():
        return None
    try:
        listed = parse_json((home / NOTE).read_bytes())["figures"]
        figures = [
            SavedFigure(one["name"], one["caption"], one["svg"], tuple(folder / name for name in one["files"]))
            for one in listed
        ]
        known = {name: digest for one in listed for name, digest in one["files"].items()}
    except (BadData, OSError, KeyError, TypeError, AttributeError):  # Damaged by a full disk or a killed process.
        return None
    if any(not (home / name).is_file() or sha256_of_file(home / name) != known[name] for name in known):
        return None
    for name in known:
        path = folder / name
        if path.is_symlink() or not path.is_file() or _digest_or_size(path) != known[name]:
            write_atomic(path, partial(shutil.copyfile, home / name))
    os.utime(home)
    return tuple(figures)


def keep_figures(figures: Sequence[SavedFigure], digest: str) -> None:
    """Keep drawn figures in the user's cache; without space or permission there, they are drawn again next time."""
    home = _home(digest)
    listed: list[dict[str, Any]] = [
        {
            "name": one.name,
            "caption": one.caption,
            "svg": one.svg,
            "files": {file.name: sha256_of_file(file) for file in one.files},
        }
        for one in figures
    ]
    with suppress(UnwritableOutput):
        for file in {file for one in figures for file in one.files}:
            write_atomic(home / file.name, partial(shutil.copyfile, file))
        write_json({"figures": listed}, home / NOTE)  # The last file, so that an unfinished copy is not used.


def remove_unused() -> None:
    """Remove kept figures that no report has used for a month."""
    oldest = time.time() - UNUSED_SECONDS
    for home in default_cache().joinpath(FOLDER).glob("*"):
        with suppress(OSError):  # Another report may remove it at the same time.
            if home.stat().st_mtime < oldest:
                shutil.rmtree(home)


def _home(digest: str) -> Path:
    return default_cache() / FOLDER / digest[:32]


def _digest_or_size(path: Path) -> str | int:
    """Return the digest of a file, or the size of one that is too large to be read."""
    size = path.stat().st_size
    return sha256_of_file(path) if size <= MOST_BYTES else size


def _result_digest(entry: ResultEntry) -> str:
    """Return the digest of a result's file, which is faster to read than serialising the result again."""
    return sha256_of_file(entry.path) if entry.path.is_file() else sha256_of_json(entry.result.to_json())


@cache
def _program() -> str:
    """Return the digest of the drawing code: this package, extensions and matplotlib."""
    package = Path(str(cardiobench.__file__)).parent
    sources = {
        path.relative_to(package).as_posix(): sha256(path.read_bytes()).hexdigest()
        for suffix in ("*.py", "*.csv")
        for path in sorted(package.rglob(suffix))
    }
    points = plugins.entry_points("extensions")
    others = {name: plugins.package_of(point) for name, point in sorted(points.items())}
    return sha256(json.dumps([version("matplotlib"), others, sources]).encode()).hexdigest()
