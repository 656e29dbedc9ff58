"""Reuse unchanged figures of an earlier report."""

import json
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cardiobench
from cardiobench.core import plugins
from cardiobench.core.errors import BadData
from cardiobench.core.io import parse_json, sha256_of_file, sha256_of_json, write_json
from cardiobench.data.task_facts import task_facts
from cardiobench.report.plots.figure import SavedFigure
from cardiobench.report.plots.job import FigureJob
from cardiobench.results.collect import ResultEntry

SUFFIX = ".figures"
"""File with the digest of a job's inputs, its captions and SVG elements, and digests of its files."""


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
                [_result_digest(entry), entry.predictions and sha256_of_file(entry.predictions)]
                for entry in job.entries
            ],
            "records": [
                [record.to_json(), {name: table.to_csv() for name, table in record.tables.items()}]
                for record in job.records
            ],
        }
    )


def kept_figures(folder: Path, stem: str, digest: str) -> tuple[SavedFigure, ...] | None:
    """Return the figures of an earlier report, or None if inputs or files have changed.

    Args:
        folder: Folder of the figures.
        stem: Stem of the file names.
        digest: Expected digest of the inputs (`shown_digest`).
    """
    note = folder / f"{stem}{SUFFIX}"
    if not note.is_file():
        return None
    try:
        stated = parse_json(note.read_bytes())
    except BadData:
        return None
    if stated.get("digest") != digest or stated.get("note") != sha256_of_json(stated.get("figures")):
        return None
    figures = []
    for one in stated["figures"]:
        files = {folder / Path(name).name: known for name, known in one["files"].items()}
        if any(not file.is_file() or sha256_of_file(file) != known for file, known in files.items()):
            return None
        figures.append(SavedFigure(one["name"], one["caption"], one["svg"], tuple(files)))
    return tuple(figures)


def keep_figures(figures: Sequence[SavedFigure], folder: Path, stem: str, digest: str) -> None:
    """Save figures with the digests of inputs and files for the next report in the same folder."""
    listed: list[dict[str, Any]] = [
        {
            "name": one.name,
            "caption": one.caption,
            "svg": one.svg,
            "files": {file.name: sha256_of_file(file) for file in one.files},
        }
        for one in figures
    ]
    write_json({"digest": digest, "figures": listed, "note": sha256_of_json(listed)}, folder / f"{stem}{SUFFIX}")


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
