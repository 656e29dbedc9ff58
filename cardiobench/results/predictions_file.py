"""Save and load predictions with checksums."""

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
"""Metadata key in validation predictions: checksum of the scored predictions."""
CONTENT = b"cardiobench.content_sha256"
"""Metadata key in validation predictions: checksum of the rows as CSV."""
VALIDATION = "validation_sha256"
"""Key in the stamp of a result: the same checksum, which is thus part of the result's checksum."""


def save_scored(
    result: ScoreResult, predictions: pd.DataFrame, path: Path, validation: pd.DataFrame | None = None
) -> tuple[ScoreResult, list[Path]]:
    """Save a result and its predictions.

    Args:
        result: Result to save.
        predictions: Table with the columns id, patient_id, y_true and y_pred, and one probability column per class.
        path: Path of the result.
        validation: Table with the same columns for the validation split, saved in a separate file that is neither
            scored nor pushed; None for none.

    Returns:
        Saved result, which contains the checksums of its predictions, and paths of the written files.
    """
    file = write_parquet(predictions, predictions_path(path))
    result = replace(result, predictions_sha256=sha256_of_file(file))
    beside = validation_path(path)
    if validation is None:
        beside.unlink(missing_ok=True)
        return result, [file, result.save(path)]
    table = pa.Table.from_pandas(validation, preserve_index=False)
    marks = {OF_RESULT: result.predictions_sha256, CONTENT: _checksum_of(validation)}
    result = replace(result, stamp={**result.stamp, VALIDATION: marks[CONTENT]})
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **marks})
    write_atomic(beside, lambda partial: write_table(table, partial))
    return result, [file, beside, result.save(path)]


def load_validation(result: ScoreResult, path: Path) -> pd.DataFrame | None:
    """Load the validation predictions of a result.

    Args:
        result: Loaded result.
        path: Path of the result.

    Returns:
        Table with the columns id, patient_id, y_true and y_pred, and one probability column per class; None if there is
        none.

    Raises:
        BadPredictions: The file cannot be read, or belongs to another result.
    """
    beside = validation_path(path)
    if not beside.is_file():
        return None
    advice = "Repeat the run that created it."
    try:
        table = ParquetFile(beside).read(use_threads=False)
        frame = table.to_pandas(use_threads=False)
        marks = {
            key: text.decode() for key, text in (table.schema.metadata or {}).items() if key in (OF_RESULT, CONTENT)
        }
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadPredictions(f"{beside} cannot be read: {error}. {advice}") from error
    if marks.get(OF_RESULT) != result.predictions_sha256:
        raise BadPredictions(f"{beside} does not belong to {path}. {advice}")
    stated = result.stamp.get(VALIDATION)
    if stated != (found := _checksum_of(frame)):
        raise BadPredictions(
            f"{beside} was changed after it was written: its rows have the checksum {found}, and {path} states {stated}. {advice}"
        )
    return frame


def _checksum_of(frame: pd.DataFrame) -> str:
    return hashlib.sha256(frame.to_csv(index=False).encode("utf-8", "surrogatepass")).hexdigest()


def load_cached_score(path: Path, key: str, recordings: str = "") -> ScoreResult | None:
    """Return the saved result if key, recordings and predictions match; otherwise None."""
    result, predictions = ScoreResult.load_cached(path, key, recordings), predictions_path(path)
    if result is None or not predictions.is_file() or sha256_of_file(predictions) != result.predictions_sha256:
        return None
    if validation_path(path).is_file() and VALIDATION not in result.stamp:
        return None  # Written by an earlier version, which did not state this checksum.
    return result


def load_predictions(result: ScoreResult, path: Path) -> pd.DataFrame:
    """Load the predictions of a result.

    Args:
        result: Loaded result.
        path: Path of the predictions.

    Returns:
        Table with the columns id, patient_id, y_true and y_pred, and one probability column per class.

    Raises:
        BadPredictions: The file does not exist, cannot be read, or has other predictions.
    """
    advice = "Repeat the run that created it."
    if path.exists() and not path.is_file():
        raise BadPredictions(f"{path} is not a file. {advice}")
    try:
        if sha256_of_file(path) != result.predictions_sha256:
            raise BadPredictions(f"{path} does not contain the scored predictions: its checksum differs. {advice}")
        # This takes half as long as pandas.read_parquet for such small files.
        frame = ParquetFile(path).read(use_threads=False).to_pandas(use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadPredictions(f"{path} cannot be read: {error}. {advice}") from error
    if not set(frame.columns) >= COLUMNS or frame.empty:
        raise BadPredictions(
            f"{path} has the columns {list(frame.columns)} and {len(frame)} rows; expected {', '.join(sorted(COLUMNS))} and at least one row. "
            f"{advice}"
        )
    return frame
