"""Save and load predictions with checksums."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow.parquet import write_table

from cardiobench.core.errors import BadData, BadPredictions
from cardiobench.core.foreign import MOST_BYTES, ForeignColumn, TableFormat, read_parquet
from cardiobench.core.io import sha256_of_file, write_atomic
from cardiobench.results.paths import predictions_path, validation_path
from cardiobench.results.score_result import ScoreResult

COLUMNS = {"id", "patient_id", "y_true", "y_pred"}
"""Columns that every file of predictions has."""
OF_REFITS = "refits_"
"""Prefix of columns with the answers of the refits: one list per row, in the order of the refits."""
MOST_REFITS = 1_000
"""Maximum number of refits whose answers are read."""
LONGEST_LABEL = 4_000
"""Maximum number of bytes of a label or an answer, which can name all classes of a task."""
LONGEST_MASK, MOST_POINTS = 1_000_000, 200
"""Maximum number of bytes of a predicted mask, and of coordinates of predicted points."""
FORMAT = TableFormat(
    {
        **dict.fromkeys(("id", "patient_id"), ForeignColumn("text")),
        **dict.fromkeys(("y_true", "y_pred"), ForeignColumn("any", LONGEST_LABEL)),
        "answer": ForeignColumn("frame", LONGEST_MASK, MOST_POINTS),  # A mask as PNG, or the coordinates of points.
    },
    required=sorted(COLUMNS),
    lists={OF_REFITS: ForeignColumn("any", LONGEST_LABEL, MOST_REFITS)},
    others=ForeignColumn("any", 1_000),  # Probabilities, groups and numbers of frames; their names depend on the task.
)
"""Allowed content of a file of predictions, which may be somebody else's."""

NO_REFITS: Mapping[str, np.ndarray] = MappingProxyType({})

ADVICE = "Repeat the run that created it."
OF_RESULT = b"cardiobench.predictions_sha256"
"""Metadata key in validation predictions: checksum of the scored predictions."""
CONTENT = b"cardiobench.content_sha256"
"""Metadata key in validation predictions: checksum of the rows as CSV."""
VALIDATION = "validation_sha256"
"""Key in the stamp of a result: the same checksum, which is thus part of the result's checksum."""


def save_scored(
    result: ScoreResult,
    predictions: pd.DataFrame,
    path: Path,
    validation: pd.DataFrame | None = None,
    *,
    refits: Mapping[str, np.ndarray] = NO_REFITS,
    validation_refits: Mapping[str, np.ndarray] = NO_REFITS,
) -> tuple[ScoreResult, list[Path]]:
    """Save a result and its predictions.

    Args:
        result: Result to save.
        predictions: Table with the columns id, patient_id, y_true and y_pred, and one probability column per class.
        path: Path of the result.
        validation: Table with the same columns for the validation split, saved in a separate file that is neither
            scored nor pushed; None for none.
        refits: Column name -> answers of R refits for the rows of `predictions`, (n, R) float32 or text.
        validation_refits: The same for the rows of `validation`.

    Returns:
        Saved result, which contains the checksums of its predictions, and paths of the written files.
    """
    file = _write(with_refits(predictions, refits), predictions_path(path))
    result = replace(result, predictions_sha256=sha256_of_file(file))
    beside = validation_path(path)
    if validation is None:
        beside.unlink(missing_ok=True)
        return result, [file, result.save(path)]
    table = with_refits(validation, validation_refits)
    marks = {OF_RESULT: result.predictions_sha256, CONTENT: _checksum_of(validation, validation_refits)}
    result = replace(result, stamp={**result.stamp, VALIDATION: marks[CONTENT]})
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **marks})
    return result, [file, _write(table, beside), result.save(path)]


def with_refits(frame: pd.DataFrame, refits: Mapping[str, np.ndarray]) -> pa.Table:
    """Return a table with a column of lists for each column of refits, named with the prefix `OF_REFITS`."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for name, values in refits.items():
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        table = table.append_column(f"{OF_REFITS}{name}", lists)
    return table


def parquet_options(table: pa.Table) -> dict[str, Any]:
    """Return the options of `write_table` that store numbers of refits compactly.

    The answers of 20 refits to 2,198 records with 71 labels are 12.5 MB, and need 10 MB in the file.
    """
    kinds = {one.name: one.type.value_type for one in table.schema if one.name.startswith(OF_REFITS)}
    if not kinds:
        return {}
    split = [f"{name}.list.element" for name, kind in kinds.items() if pa.types.is_floating(kind)]
    plain = [name for name in table.column_names if name not in kinds]
    texts = [f"{name}.list.element" for name in kinds if f"{name}.list.element" not in split]
    return {"compression": "zstd", "use_dictionary": [*plain, *texts], "use_byte_stream_split": split}


def _write(table: pa.Table, path: Path) -> Path:
    return write_atomic(path, lambda partial: write_table(table, partial, **parquet_options(table)))


def refits_of_table(table: pa.Table) -> dict[str, np.ndarray]:
    """Return the answers of refits in a table: column -> (n, R); empty if there are none.

    Raises:
        ValueError: A column does not have one list per row, all of the same length.
    """
    found = {}
    for name in table.column_names:
        if not name.startswith(OF_REFITS):
            continue
        lists = table[name].combine_chunks()
        values = lists.flatten() if pa.types.is_fixed_size_list(lists.type) else None
        if values is None or lists.null_count or values.null_count or len(values) % max(len(lists), 1):
            raise ValueError(f"{name} is a column of {lists.type}; expected one list of the same length per row")
        found[name.removeprefix(OF_REFITS)] = values.to_numpy(zero_copy_only=False).reshape(len(lists), -1)
    if len({values.shape for values in found.values()}) > 1:
        shapes = ", ".join(f"{name} {values.shape[1]}" for name, values in found.items())
        raise ValueError(f"the columns of refits have lists of different lengths: {shapes}")
    return found


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
    found = _read_validation(result, path)
    return found and found[0]


def load_validation_refits(result: ScoreResult, path: Path) -> dict[str, np.ndarray]:
    """Load the validation answers of the refits of a result, as in `refits_of_table`; empty without a file.

    Raises:
        BadPredictions: The file cannot be read, or belongs to another result.
    """
    found = _read_validation(result, path)
    return found[1] if found else {}


def _read_validation(result: ScoreResult, path: Path) -> tuple[pd.DataFrame, dict[str, np.ndarray]] | None:
    beside = validation_path(path)
    if not beside.is_file():
        return None
    try:
        table = read_parquet(beside, replace(FORMAT, metadata=(OF_RESULT, CONTENT)))
        refits = refits_of_table(table)
    except (BadData, ValueError) as error:
        raise BadPredictions(f"{beside} cannot be read: {error}. {ADVICE}") from error
    frame = _plain(table).to_pandas(use_threads=False)
    marks = {key: text.decode("utf-8", "replace") for key, text in (table.schema.metadata or {}).items()}
    if marks.get(OF_RESULT) != result.predictions_sha256:
        raise BadPredictions(f"{beside} does not belong to {path}. {ADVICE}")
    stated = result.stamp.get(VALIDATION)
    if stated != (found := _checksum_of(frame, refits)):
        raise BadPredictions(
            f"{beside} was changed after it was written: its rows have the checksum {found}, and {path} states {stated}. {ADVICE}"
        )
    return frame, refits


def _plain(table: pa.Table) -> pa.Table:
    """Return the columns that are not of refits."""
    return table.select([name for name in table.column_names if not name.startswith(OF_REFITS)])


def _checksum_of(frame: pd.DataFrame, refits: Mapping[str, np.ndarray] = NO_REFITS) -> str:
    digest = hashlib.sha256(frame.to_csv(index=False).encode("utf-8", "surrogatepass"))
    for name, values in refits.items():
        content = values.tobytes() if values.dtype != object else "\n".join(map(str, values.ravel())).encode()
        digest.update(name.encode() + content)
    return digest.hexdigest()


def load_cached_score(path: Path, key: str, recordings: str = "") -> ScoreResult | None:
    """Return the saved result if key, recordings and predictions match; otherwise None."""
    result, predictions = ScoreResult.load_cached(path, key, recordings), predictions_path(path)
    if result is None or not predictions.is_file() or predictions.stat().st_size > MOST_BYTES:
        return None
    if sha256_of_file(predictions) != result.predictions_sha256:
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
        Table with the columns id, patient_id, y_true and y_pred, and one probability column per class, without the
        answers of refits.

    Raises:
        BadPredictions: The file does not exist, cannot be read, or has other predictions.
    """
    frame = _read(result, path, of_refits=False).to_pandas(use_threads=False)
    if not set(frame.columns) >= COLUMNS or frame.empty:
        raise BadPredictions(
            f"{path} has the columns {list(frame.columns)} and {len(frame)} rows; expected {', '.join(sorted(COLUMNS))} and at least one row. "
            f"{ADVICE}"
        )
    return frame


def load_refits(result: ScoreResult, path: Path) -> dict[str, np.ndarray]:
    """Load the answers of the refits of a result, as in `refits_of_table`, in the order of its predictions.

    Raises:
        BadPredictions: The file does not exist, cannot be read, or has other predictions.
    """
    try:
        return refits_of_table(_read(result, path, of_refits=True))
    except ValueError as error:
        raise BadPredictions(f"{path} cannot be read: {error}. {ADVICE}") from error


def _read(result: ScoreResult, path: Path, *, of_refits: bool) -> pa.Table:
    """Return the columns of refits of a file of predictions, or the others, after comparing its checksum."""
    if path.exists() and not path.is_file():
        raise BadPredictions(f"{path} is not a file. {ADVICE}")
    try:
        if sha256_of_file(path, MOST_BYTES) != result.predictions_sha256:
            raise BadPredictions(f"{path} does not contain the scored predictions: its checksum differs. {ADVICE}")
        table = read_parquet(path, FORMAT)
    except (OSError, BadData) as error:
        raise BadPredictions(f"{path} cannot be read: {error}. {ADVICE}") from error
    return table.select([name for name in table.column_names if name.startswith(OF_REFITS) == of_refits])
