"""Store results of analyses as JSON with CSV tables."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import pandas as pd

from cardiobench.core.errors import BadData, one_line
from cardiobench.core.foreign import MOST_CELLS
from cardiobench.core.io import file_part, read_file, sha256_of_file
from cardiobench.core.tables import unescape_formula, write_csv
from cardiobench.metrics.load import find_number
from cardiobench.metrics.number import Number
from cardiobench.results.record import DatasetFacts, EditedResult, ModelFacts, Name, Record, Stamp, ValidationType
from cardiobench.results.score_result import Estimate

LONGEST_TABLE = 100_000_000
"""Maximum number of bytes of a table."""
# The file refers to tables by the names of adjacent CSV files.
Tables = Annotated[Mapping[str, pd.DataFrame], ValidationType(dict[str, Name])]


@dataclass(frozen=True)
class AnalysisResult(Record):
    """Result of an analysis of one or more models.

    Attributes:
        protocol: Name of the protocol, such as alignment, few_shot or representation.
        subject: Subject of the analysis: a task, a dataset, or a label across datasets.
        tasks: Tasks whose recordings were used.
        values: Mapping from name to number with interval; NaN with a reason if undefined.
        tables: Mapping from name to table for a figure; saved as CSV next to the record.
        tables_sha256: Mapping from table name to SHA-256 of its CSV file, set when the record is saved.
        options: Options of the protocol.
        models: Facts of each model.
        datasets: Name, version and digest of each dataset.
        generated: Whether any recording is a phantom or belongs to a synthetic twin.
        seen_in_pretraining: Mapping from dataset to whether the model saw it in pretraining; None if unknown.
        warnings: Warnings for readers.
        stamp: Versions, key, seed and time.
    """

    kind: ClassVar[str] = "record"
    schema: ClassVar[int] = 2  # 1 had no checksums of the tables

    protocol: Name
    subject: Name
    tasks: tuple[str, ...]
    values: Mapping[str, Estimate]
    tables: Tables = field(default_factory=dict)
    tables_sha256: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[ModelFacts, ...] = ()
    datasets: tuple[DatasetFacts, ...] = ()
    generated: bool = False
    seen_in_pretraining: Mapping[str, bool | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stamp: Stamp = field(default_factory=dict)

    @property
    def scored_by(self) -> tuple[Number, str] | None:
        """Metric and label unit of the values, as stated by the tables; None if the values are no scores."""
        for table in self.tables.values():
            if len(table) and {"metric", "unit"} <= set(table.columns):
                unit = table["unit"].iloc[0]
                return find_number(str(table["metric"].iloc[0])), unit if isinstance(unit, str) else ""
        return None

    @property
    def label(self) -> str:
        """Models, protocol and subject as text for messages."""
        return f"{', '.join(model['name'] for model in self.models)}: {self.protocol} of {self.subject}"

    def save(self, path: str | Path) -> Path:
        """Save the tables and then the record, so that a record never refers to missing tables."""
        path, *tables = self.files(path)
        for table, file in zip(self.tables.values(), tables, strict=True):
            write_csv(table, file)
        names: Any = {name: file.name for name, file in zip(self.tables, tables, strict=True)}
        checksums = {name: sha256_of_file(file) for name, file in zip(self.tables, tables, strict=True)}
        return super(AnalysisResult, replace(self, tables=names, tables_sha256=checksums)).save(path)

    def files(self, path: str | Path) -> list[Path]:
        """Return the paths of the record and its tables."""
        path = Path(path)
        return [path, *(_table_path(path, name) for name in self.tables)]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a record saved by `save`.

        Raises:
            BadData: The file is not a record of this class.
            EditedResult: The record or one of its tables was modified.
        """
        record, tables = super().load(path), {}
        for name, stated in record.tables.items():
            if file_part(name) != name:
                raise BadData(f"{path}: its table {name[:60]!r} has a name that no file can have")
            file = _table_path(Path(path), name)
            if file.name != stated:
                raise BadData(f"{path}: its table {name} is in {str(stated)[:60]!r}, but must be in {file.name}")
            if not file.is_file() or sha256_of_file(file, LONGEST_TABLE) != record.tables_sha256.get(name):
                raise EditedResult(
                    f"{path}: its table {file.name} was modified after it was written. Repeat the run that created it"
                )
            tables[name] = _read_table(file)
        return replace(record, tables=tables)


def _table_path(path: Path, name: str) -> Path:
    return path.with_suffix(f".{name}.csv")


def _read_table(path: Path) -> pd.DataFrame:
    """Read a table of an analysis, which may be somebody else's; raises `BadData`."""
    content = read_file(path, LONGEST_TABLE)
    rows, columns = content.count(b"\n") + 1, content[: content.find(b"\n")].count(b",") + 1
    if rows * columns > MOST_CELLS:
        raise BadData(f"{path} has {rows:,} rows and {columns:,} columns, but at most {MOST_CELLS:,} cells are allowed")
    try:
        return pd.read_csv(BytesIO(content)).map(unescape_formula).rename(columns=unescape_formula)
    except ValueError as error:  # Not UTF-8, empty, or not a table.
        raise BadData(f"{path} is not a table: {one_line(error)}. Repeat the run that created it") from error


def is_analysis(text: bytes) -> bool:
    """Return whether a file name in a results folder belongs to an analysis, even if the file is truncated."""
    return f'"kind": "{AnalysisResult.kind}"'.encode() in text[:200]


def point_estimate(value: float, reason: str = "", n: int = 0, n_patients: int = 0) -> Estimate:
    """Return an estimate without an interval."""
    return Estimate(float(value), math.nan, math.nan, n, n_patients, reason)
