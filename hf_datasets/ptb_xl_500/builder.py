"""PTB-XL at 500 Hz: the same records as `ptb_xl` at their original sampling rate."""

import dataclasses
import os
from pathlib import Path

from cardiobench.data import catalog

_PtbXl = catalog.builder("ptb_xl")
_NAME = "ptb_xl_500"

SPEC = dataclasses.replace(
    _PtbXl.SPEC,
    name=_NAME,
    title="PTB-XL at 500 Hz",
    tasks=tuple(dataclasses.replace(task, name=f"{_NAME}/{task.target}") for task in _PtbXl.SPEC.tasks),
)


class PtbXl500(_PtbXl):  # type: ignore[valid-type, misc]  # builders are found by file, not by import
    """Rows, labels and folds of `ptb_xl` with the 500 Hz recordings, from the same raw folder."""

    SPEC = SPEC
    FILENAME = "filename_hr"

    @classmethod
    def find_raw(cls, data_dir: str | os.PathLike | None = None) -> Path | None:
        """Return the folder of `ptb_xl`; one download contains both rates."""
        return _PtbXl.find_raw(data_dir)
