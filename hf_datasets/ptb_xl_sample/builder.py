"""PTB-XL sample: 114 real ECGs bundled with the package, half of them with a conduction disturbance."""

import dataclasses
import os
from pathlib import Path

from cardiobench.data import catalog

_PtbXl = catalog.builder("ptb_xl")
_NAME = "ptb_xl_sample"

SPEC = dataclasses.replace(
    _PtbXl.SPEC,
    name=_NAME,
    title="PTB-XL sample (bundled)",
    access="https://physionet.org/content/ptb-xl/1.0.3/",
    expected={"train": 48, "validation": 14, "test": 52},
    tasks=tuple(
        dataclasses.replace(task, name=f"{_NAME}/{task.target}") for task in _PtbXl.SPEC.tasks if task.target == "cd"
    ),
)


class PtbXlSample(_PtbXl):  # type: ignore[valid-type, misc]  # builders are found by file, not by import
    """Rows of the bundled records in the format of PTB-XL; folds 1-5 are train, 6 validation and 7-10 test.

    The split of the release (1-8, 9, 10) would leave only 18 test records.
    """

    SPEC = SPEC

    @classmethod
    def find_raw(cls, data_dir: str | os.PathLike | None = None) -> Path:
        """Return the bundled folder and ignore `data_dir`."""
        return catalog.dataset_folder(_NAME) / "data"

    @classmethod
    def split(cls, fold: int) -> str:
        """Return the split of a stratification fold."""
        return "train" if fold <= 5 else "validation" if fold == 6 else "test"
