"""Candidate folders of the data of datasets."""

import os
from pathlib import Path

DATA_VARIABLE = "CARDIOBENCH_DATA"


def candidate_dirs(name: str, data_dir: str | os.PathLike | None) -> list[Path]:
    """Return the candidate folders of a dataset's data, the most likely first."""
    given = [data_dir] if data_dir else os.environ.get(DATA_VARIABLE, "").split(os.pathsep)
    return [folder for root in given if root for folder in (Path(root) / name, Path(root))]
