"""Generate JSON Schemas of run files from their dataclasses."""

from pathlib import Path
from typing import Any

from cardiobench.core.io import write_json
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.record import CHECKSUM, Record, to_plain, type_adapter
from cardiobench.results.score_result import ScoreResult

FILES: dict[str, type[Record]] = {
    "score_result.schema.json": ScoreResult,
    "analysis_result.schema.json": AnalysisResult,
}


def json_schema(kind: type[Record]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a record, including schema number and checksum."""
    schema = to_plain(type_adapter(kind).json_schema())  # JSON represents a default of NaN as null.
    head: dict[str, Any] = {"schema": {"const": kind.schema}}
    if kind.kind:
        head["kind"] = {"const": kind.kind}
    checksum = {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "SHA-256 of the rest, keys sorted"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "properties": {**head, **schema["properties"], CHECKSUM: checksum},
        "required": [*head, *schema["required"], CHECKSUM],
    }


def write_schemas(folder: Path) -> list[Path]:
    """Write the JSON Schemas for the documentation."""
    return [write_json(json_schema(kind), folder / name) for name, kind in FILES.items()]
