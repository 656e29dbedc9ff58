"""PTB-XL sample: 114 real ECGs bundled with the package, half of them with a conduction disturbance."""

import dataclasses
import os
from pathlib import Path

from cardiobench.data import catalog
from cardiobench.data.ptb_xl import PtbXlBuilder, release_spec

_NAME = "ptb_xl_sample"
_RELEASE = release_spec(_NAME, "PTB-XL sample (bundled)")


class PtbXlSample(PtbXlBuilder):
    """Rows of the bundled records in the format of PTB-XL; folds 1-5 are train, 6 validation and 7-10 test.

    The split of the release (1-8, 9, 10) would leave only 18 test records.
    """

    SPEC = dataclasses.replace(
        _RELEASE,
        expected={"train": 48, "validation": 14, "test": 52},
        tasks=tuple(task for task in _RELEASE.tasks if task.target == "cd"),
        demo=("cd",),
    )

    @classmethod
    def find_raw(cls, data_dir: str | os.PathLike | None = None) -> Path:
        """Return the bundled folder and ignore `data_dir`."""
        return catalog.dataset_folder(_NAME) / "data"

    @classmethod
    def split(cls, fold: int) -> str:
        """Return the split of a stratification fold."""
        return "train" if fold <= 5 else "validation" if fold == 6 else "test"
