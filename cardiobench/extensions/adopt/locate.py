"""Locate the file of each table row, and the record within it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig, BadData, BadMedia, MissingData, counted, first_n
from cardiobench.data.declared.formats import ECHO_FORMATS, SUFFIXES, format_of
from cardiobench.data.media import ecg_arrays, frame_folder
from cardiobench.extensions.adopt import files as listing
from cardiobench.extensions.adopt.answers import AdoptionRequest, Answers, column_of_role, named_column
from cardiobench.extensions.adopt.questions import Questions

ARRAYS = ("npy", "hdf5")
"""Formats that can store many recordings in one file."""
PEEKED = 20
"""Number of recordings to try when reading the facts that files state."""


@dataclass(frozen=True)
class Located:
    """Locations of the recordings.

    Attributes:
        files: Relative path of each row's file; None if missing.
        records: Record within each row's file; None if each file holds one recording.
        column: Column with file names; None if all recordings are in one array.
        formats: Formats of the recordings, sorted.
        ids: Name of the HDF5 dataset with the record ids.
        others: Number of recordings in the folder that no row names.
        note: Sentence on names that differ from those of the files in spelling; empty if there are none.
    """

    files: list[str | None]
    records: list[str | None]
    column: str | None
    formats: tuple[str, ...]
    ids: str | None
    others: int
    note: str = ""


def locate(request: AdoptionRequest, table: pd.DataFrame, questions: Questions) -> Located:
    """Locate the recordings of all rows.

    Args:
        request: Folder, labels and the user's answers.
        table: Table of labels.
        questions: Prompt for facts that the files do not state.

    Raises:
        MissingData: No column names the recordings.
        BadConfig: The table names both ECGs and echo.
    """
    folder, answers = request.folder, request.answers
    assert folder is not None  # The caller knows that there are recordings.
    files = candidates(request, folder)
    folders = listing.frame_folders(files)
    finder = listing.Finder([*files, *folders], folder)
    column = named_column(answers.file_column, table) or listing.best_column(table, finder)
    note = ""
    if column is not None:
        named, note = _with_spellings(
            table[column], listing.named_files(table[column], finder), finder, answers, questions
        )
    else:
        named = _one_array(files, len(table))
    here = [name for name in named if name is not None]
    if not here:
        linked = listing.linked_folders(folder)
        links = f" Its {len(linked)} links to folders, such as {linked[0]}, are not followed." if linked else ""
        if not files:
            raise MissingData(
                f"{folder} holds no recording of a known format; its files are {listing.suffixes(folder)}.{links} "
                f"Convert them to one of {', '.join(sorted(SUFFIXES))}, or install a reader and name it with --format."
            )
        raise MissingData(
            f"no column of {request.labels} names a recording in {folder}, which holds {len(files)} recordings, "
            f"such as {first_n(files, 2)}.{links} Name the column with paths or names of files: --file-column COLUMN."
        )
    formats = (answers.format,) if answers.format else _formats(folder, here)
    records, ids = _records(request, folder, table, formats, here, questions)
    rest = set(files) - set(here)
    if not set(formats) & set(ECHO_FORMATS):
        rest = {name for name in rest if answers.format or format_of(name) in formats}
    others = 0 if set(here) & set(folders) else len(rest)
    return Located(named, records, column, formats, ids, others, note)


def _with_spellings(
    cells: pd.Series, named: Sequence[str | None], finder: listing.Finder, answers: Answers, questions: Questions
) -> tuple[list[str | None], str]:
    """Return the file of each cell, those in another spelling included if the user says so or has not answered, and a note."""
    taken = {file for file in named if file is not None}
    found = {cell: finder.similar(cell) - taken for cell, file in zip(cells, named, strict=True) if file is None}
    counts = Counter(file for files in found.values() for file in files)
    pairs = {cell: file for cell, files in found.items() if len(files) == 1 and counts[file := next(iter(files))] == 1}
    if not pairs:
        return list(named), ""
    shown = first_n([f"{cell!r} = {file}" for cell, file in pairs.items()], 3)
    decided = answers.files or questions.ask(
        f"Column '{cells.name}' names {counted(len(pairs), 'recording')} in another spelling than the folder: {shown}. "
        "Are they the same?",
        "--files same; or --files as-written if they are others",
        ("same", "as-written"),
    )
    if decided == "as-written":
        return list(named), ""
    note = f"{counted(len(pairs), 'name')} of '{cells.name}' differ from those of the files in spelling: {shown}"
    return [file or pairs.get(cell) for cell, file in zip(cells, named, strict=True)], note if decided else ""


def candidates(request: AdoptionRequest, folder: Path) -> list[str]:
    """Return possible recording files in the folder."""
    wanted = request.answers.format
    plugin = wanted in plugins.entry_points("readers")
    own = request.labels.resolve()
    files = listing.list_files(folder, [""] if plugin else ())
    files = [name for name in files if (folder / name).resolve() != own]
    if wanted and wanted not in ECHO_FORMATS and not plugin:
        files = [name for name in files if format_of(name) == wanted]
    return files


def _formats(folder: Path, here: Sequence[str]) -> tuple[str, ...]:
    """Return the formats of the named recordings, sorted; folders of images and clips count as clips."""
    sampled = {_kind(folder, name) for name in (*here[:1000], *here[-10:])}
    echo = sampled & set(ECHO_FORMATS)
    if echo:
        if others := sampled - echo:
            raise BadConfig(
                f"the table names both ECGs ({', '.join(sorted(others))}) and echo ({', '.join(sorted(echo))}). Adopt them as two "
                "datasets, each with its own rows, or read the files of one format with --format."
            )
        return ("clip",) if "clip" in echo else ("image",)
    return tuple(sorted({format_of(name) for name in here}))


def is_echo(folder: Path, name: str) -> bool:
    """Return whether a file is an echo, by its suffix or, for DICOM, its header."""
    return _kind(folder, name) in ECHO_FORMATS


def _kind(folder: Path, name: str) -> str:
    lower = name.lower()
    if lower.endswith(tuple(frame_folder.SUFFIXES)):
        return "image"
    if lower.endswith(listing.CLIPS) or (folder / name).is_dir():
        return "clip"
    found = format_of(name)
    return found if found != "dicom" or listing.is_waveform(folder / name) else "clip"


def _one_array(files: Sequence[str], rows: int) -> list[str | None]:
    """Return the single multi-record array in the folder, repeated for every row."""
    arrays = [name for name in files if format_of(name) in ARRAYS]
    return [arrays[0] if len(arrays) == 1 else None] * rows


def _records(
    request: AdoptionRequest,
    folder: Path,
    table: pd.DataFrame,
    formats: Sequence[str],
    here: Sequence[str],
    questions: Questions,
) -> tuple[list[str | None], str | None]:
    """Return each row's record and the id dataset; records are None for files with one recording."""
    answers = request.answers
    none: list[str | None] = [None] * len(table)
    form = formats[0]
    readable = _first_readable(folder, here, answers) if len(formats) == 1 and form in ARRAYS else None
    if readable is None or readable[1] is None:
        return none, None
    path, count = readable
    if column := named_column(answers.record_column, table):
        return list(table[column]), answers.records
    if form == "hdf5" and (ids := answers.records or _named_dataset(path, table)):
        return list(table[_id_column(ids, table, answers)]), ids
    if answers.in_order and len(set(here)) == 1:
        if count != len(table):
            raise BadData(
                f"--in-order: {here[0]} holds {count} recordings, and {request.labels} has {len(table)} rows."
            )
        return [str(number) for number in range(count)], None
    questions.open.append(
        f"Which of the {count} recordings in {here[0]} is which row? --record-column COLUMN (row numbers from 0), or --in-order"
    )
    return none, None


def _first_readable(folder: Path, here: Sequence[str], answers: Answers) -> tuple[Path, int | None] | None:
    """Return the first readable array and its number of records, or None if none of the first files can be read."""
    for name in dict.fromkeys(here[:PEEKED]):
        try:
            return folder / name, ecg_arrays.records_in(folder / name, answers.array)
        except BadMedia:
            continue
    return None


def _named_dataset(path: Path, table: pd.DataFrame) -> str | None:
    """Return the table column that has a matching HDF5 dataset."""
    return next((name for name in table if listing.has_dataset(path, name)), None)


def _id_column(ids: str, table: pd.DataFrame, answers: Answers) -> str:
    """Return the column that contains the ids of an HDF5 dataset."""
    column = ids if ids in table else column_of_role("id", table, answers)
    if column is None:
        raise BadConfig(f"no column is known to contain the ids of '{ids}'. Name it with --record-column.")
    return column
