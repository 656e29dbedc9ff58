"""What a study found, on paper: named numbers, the tables behind its figures, and provenance, as JSON with CSV beside it."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from cardiobench.core.errors import BadData, UnwritableOutput
from cardiobench.results.score_result import Estimate, read_estimate, to_plain

SCHEMA = 1
KIND = "record"


@dataclass(frozen=True)
class AnalysisResult:
    """What one protocol found out about one model (or several), without being the score of a task.

    Attributes:
        protocol: such as alignment, few_shot or representation.
        subject: what was looked at: a task, a dataset, or a label across datasets.
        tasks: whose recordings took part.
        values: name -> number with its interval; NaN with the reason where there is none.
        tables: name -> the rows behind a figure; saved as CSV beside the record.
        options: everything that was chosen.
        models: facts of the model, or of every model compared.
        datasets: name, version and digest of each dataset.
        seen_in_pretraining: dataset -> whether the model saw it; None when nobody knows.
        warnings: sentences for the reader.
        stamp: versions, key, seed and time.
    """

    protocol: str
    subject: str
    tasks: tuple[str, ...]
    values: Mapping[str, Estimate]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[Mapping[str, Any], ...] = ()
    datasets: tuple[Mapping[str, Any], ...] = ()
    seen_in_pretraining: Mapping[str, bool | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stamp: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Models, protocol and subject, as messages name an analysis."""
        return f"{', '.join(model['name'] for model in self.models)}: {self.protocol} of {self.subject}"

    def save(self, path: Path) -> list[Path]:
        """Write the record and its tables; the record last, so that what it names is there."""
        tables = {name: path.with_suffix(f".{name}.csv") for name in self.tables}
        facts = {**{name: value for name, value in vars(self).items() if name != "tables"}}
        facts["values"] = {name: asdict(value) for name, value in self.values.items()}
        facts["tables"] = {name: file.name for name, file in tables.items()}
        text = json.dumps({"schema": SCHEMA, "kind": KIND, **to_plain(facts)}, indent=2, ensure_ascii=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for name, file in tables.items():
                _whole(file, self.tables[name].to_csv(index=False))
            _whole(path, text + "\n")
        except OSError as error:
            raise UnwritableOutput(f"{path} cannot be written: {error.strerror or error}") from error
        return [path, *tables.values()]

    @classmethod
    def load(cls, path: Path) -> "AnalysisResult":
        """Read what `save` wrote; `BadData` names the file when it is not one."""
        try:
            content = json.loads(path.read_text("utf-8"))
            if content.pop("kind", None) != KIND or content.pop("schema", None) != SCHEMA:
                raise BadData(f"{path} is not a record of schema {SCHEMA}. Run the line that made it again.")
            names = {name: Path(file).name for name, file in content.pop("tables").items()}
            content["tables"] = {name: pd.read_csv(path.with_name(file)) for name, file in names.items()}
            content["values"] = {name: read_estimate(entry) for name, entry in content["values"].items()}
            for name in ("tasks", "models", "datasets", "warnings"):
                content[name] = tuple(content[name])
            content["seen_in_pretraining"] = dict(content.get("seen_in_pretraining", {}))
            if nameless := [
                one for one in (*content["models"], *content["datasets"]) if not isinstance(one["name"], str)
            ]:
                raise ValueError(f"{nameless[0]} has no name")
            return cls(**content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadData(f"{path} is not a record with its tables: {error}") from error


def is_analysis(path: Path) -> bool:
    """Whether a JSON file of a results folder is a record, and no result; false for a file that is no JSON."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def point_estimate(value: float, reason: str = "", n: int = 0, n_patients: int = 0) -> Estimate:
    """A number that has no interval."""
    return Estimate(float(value), math.nan, math.nan, n, n_patients, reason)


def _whole(path: Path, text: str) -> None:
    """Write under another name, then rename: a reader never sees half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
