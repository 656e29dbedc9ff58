"""What failed in a run, as a table on disk."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

COLUMNS = ("model", "dataset", "id", "reason")


def write_failures(failures: Sequence[tuple[str, str, str, str]], folder: Path) -> Path:
    """Write the failures of this run as `failures.csv`: model, dataset, id (or "model"), reason."""
    path = folder / "failures.csv"
    pd.DataFrame(list(failures), columns=list(COLUMNS)).to_csv(path, index=False)
    return path
