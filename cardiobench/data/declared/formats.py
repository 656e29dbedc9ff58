"""Formats of ECG files by name: built-in ones, and readers of installed packages (group `cardiobench.readers`)."""

from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Literal

from cardiobench.core import plugins
from cardiobench.core.errors import BadMedia, MissingExtra
from cardiobench.core.registry import unknown_name
from cardiobench.core.user_code import user_code
from cardiobench.core.versions import component_version
from cardiobench.data.declared.dataset_file import DeclaredRecordings
from cardiobench.data.media import channels, ecg_arrays, ecg_dicom, ecg_edf, ecg_tables, ecg_vendor, ecg_wfdb
from cardiobench.data.media.channels import Channels, as_ecg
from cardiobench.data.media.types import Ecg

Reader = Callable[[Path, int | str | None, DeclaredRecordings], Channels]
Record = int | str | None

ECHO_FORMATS = ("clip", "image")
SUFFIXES = {
    ".hea": "wfdb",
    ".dat": "wfdb",
    ".mat": "wfdb",
    ".edf": "edf",
    ".bdf": "edf",
    ".csv": "csv",
    ".tsv": "csv",
    ".npy": "npy",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".parquet": "parquet",
    ".dcm": "dicom",
    **ecg_vendor.SUFFIXES,
}
"""Suffix of a file -> format of its ECG."""


def media_of(formats: Collection[str]) -> Literal["ecg", "video", "image"]:
    """Return the kind of the recordings of one or several formats."""
    return "video" if "clip" in formats else "image" if "image" in formats else "ecg"


def format_of(name: str) -> str:
    """Return the ECG format for the suffix of a file, or ""; a file without suffix is DICOM."""
    suffix = Path(name).suffix.lower()
    return SUFFIXES.get(suffix, "" if suffix else "dicom")


def one_format(path: Path, settings: DeclaredRecordings) -> str:
    """Return the format of a file: the stated one, or of several the one of its suffix.

    Raises:
        BadMedia: The suffix belongs to none of them.
    """
    if isinstance(settings.format, str):
        return settings.format
    if (found := format_of(path.name)) not in settings.format:
        raise BadMedia(f"{path} has none of the formats {', '.join(settings.format)}. Adopt the folder again.")
    return found


def ecg_formats() -> tuple[str, ...]:
    """Return the names of all formats of ECGs, those of installed packages last."""
    return ("wfdb", *_READERS, *plugins.entry_points("readers"))


def check_format(name: str) -> None:
    """Refuse an unknown format; raises `UnknownName` with the most similar one."""
    if name not in ecg_formats():
        raise unknown_name("format", name, ecg_formats())


def read_channels(path: Path, record: Record, settings: DeclaredRecordings) -> Channels:
    """Read a recording as its file states it; not for WFDB, whose reader returns leads directly.

    Raises:
        BadMedia: The file cannot be read.
    """
    form = one_format(path, settings)
    if form in _READERS:
        return _READERS[form][1](path, record, settings)
    check_format(form)
    reader = plugins.load("readers", form)
    with user_code(f"the reader '{form}' of {path}", MissingExtra, error_class=BadMedia):
        read = reader(path)
    if not isinstance(read, Channels) or getattr(read.signal, "ndim", None) != 2:
        raise BadMedia(
            f"the reader '{form}' gave {type(read).__name__} for {path}; expected Channels, (samples, channels)."
        )
    return read


def read_declared_ecg(path: Path, record: Record, settings: DeclaredRecordings) -> Ecg:
    """Read a recording in mV, using its file and the dataset's file.

    The settings of a dataset of several formats complete the files that do not state these facts; those of one format
    must not contradict its files.

    Raises:
        BadMedia: The file cannot be read, or leads, rate or unit are missing or contradictory.
    """
    name = str(path) if record is None else f"record {record} of {path}"
    alone = isinstance(settings.format, str)
    if one_format(path, settings) == "wfdb":
        header = ecg_wfdb.header_path(path)
        if not alone:
            return ecg_wfdb.read_wfdb(header, fewer=True)
        stated = ecg_wfdb.parse_header(header)
        channels.check_rate(stated.fs, settings.sampling_rate, str(header))
        channels.check_leads([channel.name for channel in stated.channels], settings.leads, str(header))
        for channel in stated.channels:
            channels.check_unit(channel.unit, settings.unit, str(header), channel.name)
        return ecg_wfdb.read_wfdb(header, settings.leads, fewer=True)
    read = read_channels(path, record, settings)
    return as_ecg(
        read,
        name,
        leads=settings.leads if alone or read.leads is None else None,
        fs=settings.sampling_rate if alone or read.fs is None else None,
        unit=settings.unit if alone or read.units is None else None,
    )


def reader_version(settings: DeclaredRecordings) -> str:
    """Return the versions of the modules that read recordings of these formats."""
    return ", ".join(map(_version, settings.formats))


def _version(form: str) -> str:
    if form == "wfdb":
        return component_version(ecg_wfdb)
    reader = _READERS[form][0] if form in _READERS else plugins.load("readers", form)
    return f"{component_version(reader)} < {component_version(channels)}"


_READERS: dict[str, tuple[ModuleType, Reader]] = {
    "dicom": (ecg_dicom, lambda path, record, settings: ecg_dicom.read_dicom_ecg(path)),
    "edf": (ecg_edf, lambda path, record, settings: ecg_edf.read_edf_ecg(path)),
    "csv": (ecg_tables, lambda path, record, settings: ecg_tables.read_csv_ecg(path)),
    "parquet": (ecg_tables, lambda path, record, settings: ecg_tables.read_parquet_ecg(path)),
    "npy": (ecg_arrays, lambda path, record, settings: ecg_arrays.read_npy_ecg(path, _number(record), settings.leads)),
    "hdf5": (
        ecg_arrays,
        lambda path, record, settings: ecg_arrays.read_hdf5_ecg(
            path, record if settings.records else _number(record), settings.leads, settings.array, settings.records
        ),
    ),
    **{
        form: (ecg_vendor, lambda path, record, settings: ecg_vendor.read_vendor_ecg(path, one_format(path, settings)))
        for form in ecg_vendor.PARSERS
    },
}
"""Format -> module with the version, and reader."""


def _number(record: Record) -> int | None:
    if record is None or (isinstance(record, str) and record.isascii() and record.isdigit()):
        return None if record is None else int(record)
    if isinstance(record, int):
        return record
    raise BadMedia(
        f"record '{record}' is not a row number. Correct the table that names it, or name the dataset with the ids."
    )
