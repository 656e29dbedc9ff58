"""Predictions beside a result: written with it, and checked when they are read."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow.parquet import ParquetFile, write_table

from cardiobench.core.errors import BadPredictions
from cardiobench.core.io import sha256_of_file, write_atomic
from cardiobench.core.tables import write_parquet
from cardiobench.results.paths import predictions_path, validation_path
from cardiobench.results.score_result import ScoreResult

COLUMNS = {"id", "patient_id", "y_true", "y_pred"}

OF_RESULT = b"cardiobench.predictions_sha256"
"""Metadata key in predictions for validation units: checksum of the scored predictions beside them."""
CONTENT = b"cardiobench.content_sha256"
"""Metadata key in the same file: checksum of the rows themselves, as CSV."""


def save_scored(
    result: ScoreResult, predictions: pd.DataFrame, path: Path, validation: pd.DataFrame | None = None
) -> tuple[ScoreResult, list[Path]]:
    """Write a result and its scored predictions.

    Args:
        result: The scores.
        predictions: Id, patient_id, y_true, y_pred and, for classes, one probability column each.
        path: Path of the result; predictions lie beside it.
        validation: The same columns for units of the validation split, in a separate file that is not scored and never
            pushed; None for none.

    Returns:
        The written result, which contains the SHA-256 of its predictions, and the files.
    """
    file = write_parquet(predictions, predictions_path(path))
    result = replace(result, predictions_sha256=sha256_of_file(file))
    beside = validation_path(path)
    if validation is None:
        beside.unlink(missing_ok=True)
        return result, [file, result.save(path)]
    table = pa.Table.from_pandas(validation, preserve_index=False)
    marks = {OF_RESULT: result.predictions_sha256, CONTENT: _checksum_of(validation)}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **marks})
    write_atomic(beside, lambda partial: write_table(table, partial))
    return result, [file, beside, result.save(path)]


def load_validation(result: ScoreResult, path: Path) -> pd.DataFrame | None:
    """Read the predictions for validation units that belong to a result.

    Args:
        result: The result.
        path: File of the result.

    Returns:
        id, patient_id, y_true, y_pred and, for classes, one probability column each; None where there are none.

    Raises:
        BadPredictions: They cannot be read, or belong to another result.
    """
    beside = validation_path(path)
    if not beside.is_file():
        return None
    advice = "Run the line that made it again."
    try:
        table = ParquetFile(beside).read(use_threads=False)
        frame = table.to_pandas(use_threads=False)
        marks = {
            key: text.decode() for key, text in (table.schema.metadata or {}).items() if key in (OF_RESULT, CONTENT)
        }
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadPredictions(f"{beside} cannot be read: {error}. {advice}") from error
    if marks.get(OF_RESULT) != result.predictions_sha256:
        raise BadPredictions(f"{beside} belongs to another result than {path}. {advice}")
    if marks.get(CONTENT) != (found := _checksum_of(frame)):
        raise BadPredictions(
            f"{beside} was changed after it was written: its rows have the checksum {found}, and {marks.get(CONTENT)} is noted. {advice}"
        )
    return frame


def _checksum_of(frame: pd.DataFrame) -> str:
    return hashlib.sha256(frame.to_csv(index=False).encode("utf-8", "surrogatepass")).hexdigest()


def load_cached_score(path: Path, key: str, recordings: str = "") -> ScoreResult | None:
    """Return the saved result if key, recordings and predictions match, else None."""
    result, predictions = ScoreResult.load_cached(path, key, recordings), predictions_path(path)
    if result is None or not predictions.is_file() or sha256_of_file(predictions) != result.predictions_sha256:
        return None
    return result


def load_predictions(result: ScoreResult, path: Path) -> pd.DataFrame:
    """Read the predictions of a result.

    Args:
        result: The scores.
        path: Path of the predictions.

    Returns:
        id, patient_id, y_true, y_pred and, for classes, one probability column each.

    Raises:
        BadPredictions: There is no such file, it cannot be read, or it has other predictions.
    """
    advice = "Run the line that made it again."
    if path.exists() and not path.is_file():
        raise BadPredictions(f"{path} is not a file. {advice}")
    try:
        if sha256_of_file(path) != result.predictions_sha256:
            raise BadPredictions(
                f"{path} does not hold the predictions that were scored: its checksum differs. {advice}"
            )
        # Takes half as long as pandas.read_parquet for such small files.
        frame = ParquetFile(path).read(use_threads=False).to_pandas(use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadPredictions(f"{path} cannot be read: {error}. {advice}") from error
    if not set(frame.columns) >= COLUMNS or frame.empty:
        raise BadPredictions(
            f"{path} has the columns {list(frame.columns)} and {len(frame)} rows, not {', '.join(sorted(COLUMNS))} and some. "
            f"{advice}"
        )
    return frame
