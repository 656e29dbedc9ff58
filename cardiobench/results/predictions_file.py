"""The predictions beside a result, read back."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from cardiobench.core.errors import BadPredictions

COLUMNS = {"id", "patient_id", "y_true", "y_pred"}


def load_predictions(path: Path) -> pd.DataFrame:
    """Read predictions as the runner wrote them: id, patient_id, y_true, y_pred and, for classes, a probability column each.

    Raises:
        BadPredictions: no such file, or none that can be read, or one without rows or without those columns.
    """
    try:
        # Half of the time that pandas.read_parquet takes for files as small as these.
        frame = ParquetFile(path).read(use_threads=False).to_pandas(use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadPredictions(f"{path} cannot be read: {error}. Run the line that made it again.") from error
    if not set(frame.columns) >= COLUMNS or frame.empty:
        raise BadPredictions(
            f"{path} has the columns {list(frame.columns)} and {len(frame)} rows, not {', '.join(sorted(COLUMNS))} and some. "
            "Run the line that made it again."
        )
    return frame
