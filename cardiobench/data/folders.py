"""Candidate folders of the data of datasets."""

import os
from pathlib import Path

DATA_VARIABLE = "CARDIOBENCH_DATA"


def candidate_dirs(name: str, data_dir: str | os.PathLike | None) -> list[Path]:
    """Return the candidate folders of a dataset's data, the most likely first; those of the variable as absolute paths."""
    own = [Path(root).absolute() for root in os.environ.get(DATA_VARIABLE, "").split(os.pathsep) if root]
    return [folder for root in ([Path(data_dir)] if data_dir else own) for folder in (root / name, root)]
