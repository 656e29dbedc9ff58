"""PTB-XL sample: 393 real ECGs bundled with the package, records 1 to 400 of the release."""

import dataclasses
import os
from pathlib import Path

from cardiobench.data import catalog
from cardiobench.data.ptb_xl import PtbXlBuilder, release_spec
from cardiobench.data.release_counts import expected_counts

_NAME = "ptb_xl_sample"
_RELEASE = release_spec(_NAME, "PTB-XL sample (bundled)")
_EXPECTED = {
    "cd": expected_counts("rows 237/34/122, CD 37/3/17, no CD 200/31/105", _RELEASE.splits),
    "super": expected_counts(
        "rows 236/34/114, NORM 160/22/60, STTC 34/6/32, CD 37/3/17, MI 26/5/20, HYP 17/2/11", _RELEASE.splits
    ),
}


class PtbXlSample(PtbXlBuilder):
    """Rows of the bundled records in the format of PTB-XL; folds 1-7 are train, 8 validation, and 9 and 10 test.

    Networks trained on PTB-XL use folds 1-8, so fold 8 is not in the test split. Fold 10, the test split of the
    release, has only 54 records.
    """

    SPEC = dataclasses.replace(
        _RELEASE,
        version="2.0.0",
        expected={"train": 237, "validation": 34, "test": 122},
        tasks=tuple(
            dataclasses.replace(task, expected=_EXPECTED.get(task.target, {}))
            for task in _RELEASE.tasks
            if task.target in ("cd", "super", "sex", "age")
        ),
        demo=("cd",),
    )

    @classmethod
    def find_raw(cls, data_dir: str | os.PathLike | None = None) -> Path:
        """Return the bundled folder and ignore `data_dir`."""
        return catalog.dataset_folder(_NAME) / "data"

    @classmethod
    def split(cls, fold: int) -> str:
        """Return the split of a stratification fold."""
        return "train" if fold <= 7 else "validation" if fold == 8 else "test"
