"""Read truth and predictions of the published evaluator with the types that pandas infers."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadData, MissingData
from cardiobench.data.tables import check_columns


def read_table(path: Path, needed: Sequence[str]) -> pd.DataFrame:
    """Read a CSV file of a release.

    Args:
        path: Path of the file.
        needed: Required columns.

    Raises:
        MissingData: The file does not exist.
        BadData: The file is empty or lacks a column; the message names the closest existing column.
    """
    if not path.is_file():
        raise MissingData(f"{path.name} is not in {path.parent}. Complete the download or check --data-dir.")
    try:
        table = pd.read_csv(path, encoding="utf-8-sig")
    except pd.errors.EmptyDataError:
        raise BadData(f"{path} is empty. Download it again.") from None
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise BadData(f"{path} cannot be read as a CSV ({error}). Download it again.") from None
    check_columns(path, [*map(str, table.columns)], needed)
    return table
