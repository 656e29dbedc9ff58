"""The failures of a run, as a table on disk."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cardiobench.core.tables import write_csv

COLUMNS = ("model", "dataset", "id", "reason")


def write_failures(failures: Sequence[tuple[str, str, str, str]], folder: Path) -> Path:
    """Write the failures of this run as `failures.csv`: model, dataset, id (target of a dense task, or "model"), reason."""
    return write_csv(pd.DataFrame(list(failures), columns=list(COLUMNS)), folder / "failures.csv")
