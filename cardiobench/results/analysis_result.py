"""Result of an analysis: named numbers, the tables behind its figures, and provenance, as JSON with CSV beside it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import pandas as pd

from cardiobench.core.io import sha256_of_file
from cardiobench.core.tables import unescape_formula, write_csv
from cardiobench.results.record import DatasetFacts, EditedResult, ModelFacts, Name, Record, Stamp, ValidationType
from cardiobench.results.score_result import Estimate

# In the file, tables are given as names of CSV files beside it.
Tables = Annotated[Mapping[str, pd.DataFrame], ValidationType(dict[str, Name])]


@dataclass(frozen=True)
class AnalysisResult(Record):
    """Result of an analysis protocol on one or more models, as opposed to the score of a task.

    Attributes:
        protocol: Such as alignment, few_shot or representation.
        subject: A task, a dataset, or a label across datasets.
        tasks: Tasks whose recordings took part.
        values: Name -> number with its interval; NaN with the reason where there is none.
        tables: Name -> the rows behind a figure; saved as CSV beside the record.
        tables_sha256: Name -> SHA-256 of that CSV, filled in when the record is saved.
        options: Everything that was chosen.
        models: Facts of the model, or of every model compared.
        datasets: Name, version and digest of each dataset.
        generated: Whether any of the recordings are phantoms or of a synthetic twin.
        seen_in_pretraining: Dataset -> whether the model saw it; None when nobody knows.
        warnings: Sentences for the reader.
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
    def label(self) -> str:
        """Models, protocol and subject, for messages."""
        return f"{', '.join(model['name'] for model in self.models)}: {self.protocol} of {self.subject}"

    def save(self, path: str | Path) -> Path:
        """Write the record and its tables (`files`); the record comes last, so that the files it names exist."""
        path, *tables = self.files(path)
        for table, file in zip(self.tables.values(), tables, strict=True):
            write_csv(table, file)
        names: Any = {name: file.name for name, file in zip(self.tables, tables, strict=True)}
        checksums = {name: sha256_of_file(file) for name, file in zip(self.tables, tables, strict=True)}
        return super(AnalysisResult, replace(self, tables=names, tables_sha256=checksums)).save(path)

    def files(self, path: str | Path) -> list[Path]:
        """Return the record's path and those of its tables."""
        path = Path(path)
        return [path, *(path.with_suffix(f".{name}.csv") for name in self.tables)]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a record written by `save`.

        Raises:
            BadData: The file is not a record; the message names it.
            EditedResult: The record or one of its tables was changed.
        """
        record = super().load(path)
        files = {name: Path(path).with_name(Path(str(file)).name) for name, file in record.tables.items()}
        for name, file in files.items():
            if not file.is_file() or sha256_of_file(file) != record.tables_sha256.get(name):
                raise EditedResult(
                    f"{path}: its table {file.name} is not what was written. Run the line that made it again"
                )
        return replace(record, tables={name: _read_table(file) for name, file in files.items()})


def _read_table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path).map(unescape_formula).rename(columns=unescape_formula)


def is_analysis(text: bytes) -> bool:
    """Return whether a file of a results folder is an analysis, not a score, even if it is truncated."""
    return f'"kind": "{AnalysisResult.kind}"'.encode() in text[:200]


def point_estimate(value: float, reason: str = "", n: int = 0, n_patients: int = 0) -> Estimate:
    """Return a number that has no interval."""
    return Estimate(float(value), math.nan, math.nan, n, n_patients, reason)
