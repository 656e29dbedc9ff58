"""Folders in which the data of datasets may lie."""

import os
from pathlib import Path

DATA_VARIABLE = "CARDIOBENCH_DATA"


def candidate_dirs(name: str, data_dir: str | os.PathLike | None) -> list[Path]:
    """Return the folders in which a dataset's data may lie, the most likely first."""
    given = [data_dir] if data_dir else os.environ.get(DATA_VARIABLE, "").split(os.pathsep)
    return [folder for root in given if root for folder in (Path(root) / name, Path(root))]
