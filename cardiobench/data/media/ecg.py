"""Reading of ECGs in WFDB and HDF5."""

from collections.abc import Sequence
from pathlib import Path

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.ecg_hdf5 import MAGIC, read_hdf5
from cardiobench.data.media.ecg_wfdb import header_path, read_wfdb
from cardiobench.data.media.file import COPY_AGAIN, refuse_special
from cardiobench.data.media.types import Ecg

COMPONENT = "reader ecg"
VERSION = 1


def read_ecg(source: Path, record: int | str | None = None, *, leads: Sequence[str] | None = None) -> Ecg:
    """Read a 12-lead ECG in mV with the leads I II III aVR aVL aVF V1-V6, from WFDB or from HDF5 in the layout of CODE-15%.

    Args:
        source: Path of the record: for WFDB the header (.hea), the signal file (.dat, .mat) or the path without
            suffix; for HDF5 the file.
        record: Record in an HDF5 file: a row number (int, 0-based) or an exam id (str).
        leads: Names of the stored channels in order, if the file has none or unusual ones.

    Raises:
        BadMedia: The file is missing or cut short, or the signal is not finite, all zero, without gain, in an unknown
            unit, or without a lead.
        MissingExtra: The file is HDF5 and h5py is not installed.
    """
    path = Path(source)
    header = header_path(path)
    if header.is_file():
        if record is not None:
            raise BadMedia(
                f"{header} contains a single record, but record {record!r} was requested. Leave `record` out for WFDB."
            )
        return read_wfdb(header, leads)
    try:
        refuse_special(path)
        with path.open("rb") as stream:
            magic = stream.read(len(MAGIC))
    except OSError as error:
        raise BadMedia(
            f"{path} cannot be opened ({error.strerror}), and there is no header {header}. Check the path."
        ) from error
    if magic == MAGIC:
        return read_hdf5(path, record, leads)
    if not magic:
        raise BadMedia(f"{path} is empty (0 bytes). {COPY_AGAIN}")
    raise BadMedia(
        f"{path} is not an HDF5 file and has no WFDB header beside it ({header.name}). Put the header there."
    )
