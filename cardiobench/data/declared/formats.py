"""Formats of ECG files by name: built-in ones, and readers of installed packages (group `cardiobench.readers`)."""

from collections.abc import Callable
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


def media_of(name: str) -> Literal["ecg", "video", "image"]:
    """Return the kind of the recordings of a format."""
    return "video" if name == "clip" else "image" if name == "image" else "ecg"


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
    if settings.format in _READERS:
        return _READERS[settings.format][1](path, record, settings)
    check_format(settings.format)
    reader = plugins.load("readers", settings.format)
    with user_code(f"the reader '{settings.format}' of {path}", MissingExtra, error_class=BadMedia):
        read = reader(path)
    if not isinstance(read, Channels) or getattr(read.signal, "ndim", None) != 2:
        raise BadMedia(
            f"the reader '{settings.format}' gave {type(read).__name__} for {path}; expected Channels, (samples, channels)."
        )
    return read


def read_declared_ecg(path: Path, record: Record, settings: DeclaredRecordings) -> Ecg:
    """Read a recording in mV, using its file and the dataset's file.

    Raises:
        BadMedia: The file cannot be read, or leads, rate or unit are missing or contradictory.
    """
    name = str(path) if record is None else f"record {record} of {path}"
    if settings.format == "wfdb":
        header = ecg_wfdb.header_path(path)
        stated = ecg_wfdb.parse_header(header)
        channels.check_rate(stated.fs, settings.sampling_rate, str(header))
        channels.check_leads([channel.name for channel in stated.channels], settings.leads, str(header))
        for channel in stated.channels:
            channels.check_unit(channel.unit, settings.unit, str(header), channel.name)
        return ecg_wfdb.read_wfdb(header, settings.leads, fewer=True)
    read = read_channels(path, record, settings)
    return as_ecg(read, name, leads=settings.leads, fs=settings.sampling_rate, unit=settings.unit)


def reader_version(settings: DeclaredRecordings) -> str:
    """Return the versions of the modules that read recordings of this format."""
    if settings.format == "wfdb":
        return component_version(ecg_wfdb)
    if settings.format in _READERS:
        return f"{component_version(_READERS[settings.format][0])} < {component_version(channels)}"
    return f"{component_version(plugins.load('readers', settings.format))} < {component_version(channels)}"


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
        form: (ecg_vendor, lambda path, record, settings: ecg_vendor.read_vendor_ecg(path, settings.format))
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
