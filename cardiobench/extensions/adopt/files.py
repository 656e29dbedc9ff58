"""Find recordings in a folder and match them to table rows."""

import os
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data.declared.formats import SUFFIXES
from cardiobench.data.media import frame_folder
from cardiobench.data.media.ecg_arrays import hdf5_ids
from cardiobench.data.media.ecg_vendor import is_ecg_xml
from cardiobench.data.media.optional import require_pydicom
from cardiobench.data.spelling import folded

CLIPS = (".avi", ".mp4", ".mov", ".m4v", ".gif", ".nii", ".nii.gz")


def list_files(folder: Path, extra: Iterable[str] = ()) -> list[str]:
    """Return sorted relative paths of recordings: files with a known suffix and folders that contain only images.

    A WFDB record is represented by its signal file, or by its header if the signal file has another name.

    Args:
        folder: Folder with the recordings.
        extra: Additional suffixes, supported by readers of installed packages.
    """
    if not folder.is_dir():
        raise MissingData(f"there is no folder {folder}. Check the path.")
    known = (*SUFFIXES, *CLIPS, *frame_folder.SUFFIXES, *extra)
    found: list[str] = []
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(directory).relative_to(folder)
        lower = {name.lower() for name in names}
        for name in names:
            if name.startswith(".") or _is_part(name, lower):
                continue
            if not name.lower().endswith(known) and ("." in name or not _is_dicom(Path(directory) / name)):
                continue
            if name.lower().endswith(".xml") and not is_ecg_xml(Path(directory) / name):
                continue
            found.append((below / name).as_posix())
    return sorted(found)


def linked_folders(folder: Path) -> list[str]:
    """Return relative paths of links to folders, whose files are not listed."""
    return sorted(
        (Path(directory) / name).relative_to(folder).as_posix()
        for directory, folders, _ in os.walk(folder)
        for name in folders
        if (Path(directory) / name).is_symlink()
    )


def suffixes(folder: Path) -> str:
    """Return the most frequent suffixes of a folder's files with their counts, such as `12 .pdf, 3 .zip`."""
    counts = Counter(path.suffix.lower() or "without suffix" for path in folder.rglob("*") if path.is_file())
    return ", ".join(f"{count} {suffix}" for suffix, count in counts.most_common(5)) or "none"


def frame_folders(files: Iterable[str]) -> list[str]:
    """Return folders that contain at least two images."""
    counts: dict[str, int] = defaultdict(int)
    for file in files:
        if Path(file).suffix.lower() in frame_folder.SUFFIXES and "/" in file:
            counts[str(Path(file).parent.as_posix())] += 1
    return sorted(name for name, count in counts.items() if count > 1)


def _is_dicom(path: Path) -> bool:
    """Return whether a file without a suffix, as exported by archives, is DICOM."""
    try:
        with path.open("rb") as stream:
            return path.is_file() and stream.read(132)[128:] == b"DICM"
    except OSError:
        return False


def _is_part(name: str, lower: set[str]) -> bool:
    """Return whether a file is a secondary WFDB file, or a .mat or .dat file that is not WFDB."""
    stem, suffix = os.path.splitext(name.lower())  # noqa: PTH122 - texts, once per file
    if suffix == ".hea":
        return f"{stem}.dat" in lower or f"{stem}.mat" in lower
    if suffix in (".dat", ".mat"):
        return f"{stem}.hea" not in lower
    return False


class Finder:
    """Match table cells to files by path or file name, with or without the suffix.

    Paths may be relative to the folder, start with the folder name, or be absolute. Letters may be composed in one and
    decomposed in the other.
    """

    def __init__(self, files: Iterable[str], folder: Path):
        whole = folder.resolve()
        self._heads = [_composed(f"{head}/") for head in (whole.as_posix(), folder.absolute().as_posix(), whole.name)]
        self._by_key: dict[str, set[str]] = defaultdict(set)
        self._by_form: dict[str, set[str]] | None = None
        for file in files:
            bare = file[: -len(_suffix(file))] if _suffix(file) else file
            for key in {file, bare, file.rpartition("/")[2], bare.rpartition("/")[2]}:
                self._by_key[_composed(key)].add(file)

    def find(self, cell: str) -> set[str]:
        """Return all files that match a cell; empty for an empty cell."""
        key = _composed(cell.replace("\\", "/").removeprefix("./"))
        below = [key.removeprefix(head) for head in self._heads if key.startswith(head)]
        for path in (key, *below) if key else ():
            # WFDB records can be named by header, by signal file or without a suffix.
            if found := self._by_key.get(path) or self._by_key.get(path.removesuffix(_suffix(path))):
                return found
        return set()

    def similar(self, cell: str) -> set[str]:
        """Return all files whose name without folder and suffix differs from a cell only in spelling (`data.spelling`)."""
        if self._by_form is None:
            self._by_form = defaultdict(set)
            for file in set().union(*self._by_key.values()):
                self._by_form[_form(file)].add(file)
        return self._by_form.get(_form(cell), set()) if cell else set()


def _form(name: str) -> str:
    base = name.replace("\\", "/").rpartition("/")[2]
    return folded(base.removesuffix(_suffix(base)))


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _suffix(file: str) -> str:
    lower = file.lower()
    known = (*SUFFIXES, *CLIPS, *frame_folder.SUFFIXES)
    fitting = [suffix for suffix in known if lower.endswith(suffix)]
    return file[-max(map(len, fitting)) :] if fitting else ""


def best_column(table: pd.DataFrame, finder: Finder) -> str | None:
    """Return the column in which most cells name a file, else the one in which more than half do in another spelling, or None."""
    sample = table.head(1000)
    counts = {name: sum(len(finder.find(cell)) == 1 for cell in sample[name]) for name in table}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None or counts[best]:
        return best
    alike = {name: {cell for cell in sample[name] if len(finder.similar(cell)) == 1} for name in table}
    best = max(alike, key=lambda name: len(alike[name]))
    return best if 2 * len(alike[best]) > len(sample) else None


def named_files(cells: pd.Series, finder: Finder) -> list[str | None]:
    """Return the file of each cell, None for no match.

    Raises:
        BadData: A cell matches several files.
    """
    found = [finder.find(cell) for cell in cells]
    several = [(cell, sorted(files)) for cell, files in zip(cells, found, strict=True) if len(files) > 1]
    if several:
        cell, files = several[0]
        raise BadData(
            f"{len(several)} cells of '{cells.name}' name several files: {cell!r} is {' and '.join(files[:3])}. "
            "Give paths below the folder, or read the files of one format with --format."
        )
    return [next(iter(files), None) for files in found]


def is_waveform(path: Path) -> bool:
    """Return whether a DICOM file contains waveforms without images; False if it cannot be read."""
    pydicom = require_pydicom()
    try:
        header = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=["SOPClassUID", "Rows"])
    except (pydicom.errors.InvalidDicomError, OSError, AttributeError, EOFError, KeyError, TypeError, ValueError):
        return False
    # Storage class of ECG and other waveforms (DICOM PS3.4 B.5).
    return str(header.get("SOPClassUID", "")).startswith("1.2.840.10008.5.1.4.1.1.9.") and "Rows" not in header


def has_dataset(path: Path, name: str) -> bool:
    """Return whether an HDF5 file has an id dataset with the given name."""
    try:
        return bool(hdf5_ids(path, name))
    except BadMedia:
        return False
