"""What a submission may contain: `push` removes everything else from what it sends, and `verify` refuses it.

A submission is a result, the rows of a dataset of results that repeat it, and its answers. This module lists their keys
and columns, and the lengths of their texts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from cardiobench.core.foreign import ForeignColumn, Kind, TableFormat
from cardiobench.core.io import to_plain
from cardiobench.data.spec import Task
from cardiobench.results.predictions_file import MOST_REFITS, OF_REFITS
from cardiobench.results.score_result import ScoreResult

TOKEN = re.compile(r"hf_\w{10,}")
LONGEST_TEXT = 1_000
LONGEST_KEY = 200
MOST_BYTES = 1_000_000
"""Maximum number of bytes of a result as JSON."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "model": (
        *("name", "revision", "loaded_by", "pooling", "token_pooling", "preprocessing", "leads", "condition"),
        *("given", "weights", "local"),
    ),
    "dataset": (
        *("name", "version", "digest", "twin", "limit", "local", "patient_is_record", "missing_files", "absent_rows"),
        *("overlays", "references", "references_digest", "left_out", "generated"),
    ),
    "stamp": (
        *("cardiobench", "numpy", "scipy", "scikit-learn", "pandas", "torch", "python", "commit", "libraries"),
        *("seed", "resamples", "key", "code", "embeddings", "device", "seconds", "date", "suite", "profile", "reused"),
        *("recordings", "source_checksum"),
    ),
}
"""Mapping from an open part of a result to the keys that it may have; options are those of the protocol."""
MOST_VALUES = {"options": 2_000, "model": 300, "dataset": 50, "stamp": 200, "warnings": 200}
"""Mapping from a part of a result to the maximum number of its values."""
LONGEST_PART = {"options": 50_000, "model": 20_000, "dataset": 5_000, "stamp": 20_000, "warnings": 50_000}
"""Mapping from a part of a result to the maximum number of bytes of its JSON."""
LONGEST_ID = 200

TEXT, NUMBER, COUNT, FLAG = "string", "float64", "int64", "bool"
COLUMNS = {
    **dict.fromkeys(("result_id", "pushed_by", "date", "model", "model_revision"), TEXT),
    **dict.fromkeys(("dataset", "dataset_version", "dataset_digest", "task", "protocol", "metric", "unit"), TEXT),
    **dict.fromkeys(("ranks", "higher_is_better"), FLAG),
    **dict.fromkeys(("value", "low", "high"), NUMBER),
    **dict.fromkeys(("n", "n_patients", "scored", "expected"), COUNT),
    **dict.fromkeys(("best_constant", "train_constant", "chance"), NUMBER),
    "beats_floor": TEXT,
    **dict.fromkeys(("collapsed", "synthetic_twin"), FLAG),
    "first_patients": COUNT,
    "seen_in_pretraining": FLAG,
    **dict.fromkeys(("warnings", "cardiobench", "result"), TEXT),
}
"""Mapping from column of a dataset of results to its type."""
_KINDS: Mapping[str, Kind] = {TEXT: "text", NUMBER: "number", COUNT: "count", FLAG: "flag"}
_LONGEST = {"warnings": LONGEST_PART["warnings"], "result": MOST_BYTES}
ROWS = TableFormat(
    {name: ForeignColumn(_KINDS[kind], _LONGEST.get(name, LONGEST_TEXT)) for name, kind in COLUMNS.items()},
    required=("result_id", "pushed_by", "result"),
    rows=100_000,
    repeated=("result_id", "pushed_by", "result"),
)
"""Allowed content of a file of a dataset of results; the rows are enough for about ten thousand results."""


def answers_format(task: Task) -> TableFormat:
    """Return the allowed content of the answers of a submission: ids and predictions, without labels and patients."""
    classes = ForeignColumn("text", max(LONGEST_ID, 2 * sum(len(name.encode()) + 1 for name in task.classes)))
    columns = {
        name: ForeignColumn("number") for name in (*task.rules.answer_columns(task), *task.rules.optional_columns(task))
    }
    if task.classes:
        columns["y_pred"] = classes
    refits = {f"{OF_REFITS}{name}": replace(content, each=MOST_REFITS) for name, content in columns.items()}
    return TableFormat({"id": ForeignColumn("text", LONGEST_ID), **columns, **refits}, required=("id",))


def additions(result: ScoreResult) -> Iterator[str]:
    """Yield what a result contains beside what a submission may contain."""
    record = result.to_json()
    if (size := _size(record)) > MOST_BYTES:
        yield f"it has {size:,} bytes, but at most {MOST_BYTES:,} are allowed"
        return
    for part, known in KEYS.items():
        if more := [key for key in record[part] if key not in known]:
            yield f"{part} has the key {_short(more[0])}, which is not allowed"
    for part, most in MOST_VALUES.items():
        if (count := sum(1 for _ in _texts_and_values(record[part]))) > most:
            yield f"{part} has {count:,} values, but at most {most:,} are allowed"
        if (size := _size(record[part])) > LONGEST_PART[part]:
            yield f"{part} has {size:,} bytes, but at most {LONGEST_PART[part]:,} are allowed"
    for is_key, value in _texts_and_values(record):
        longest = LONGEST_KEY if is_key else LONGEST_TEXT
        if isinstance(value, str) and len(value) > longest:
            yield f"the text {_short(value)} has {len(value):,} characters, but at most {longest:,} are allowed"
        if isinstance(value, str) and (found := TOKEN.search(value)):
            yield f"it holds a token, {found[0][:6]}..."


def without_additions(result: ScoreResult) -> ScoreResult:
    """Return a result without what a submission may not contain; long texts are cut."""
    parts: dict[str, Any] = {
        part: {key: value for key, value in getattr(result, part).items() if key in known}
        for part, known in KEYS.items()
    }
    shown: ScoreResult = _cut(replace(result, **parts))
    warnings = _within("warnings", dict(enumerate(shown.warnings)))
    limited: dict[str, Any] = {part: _within(part, getattr(shown, part)) for part in (*KEYS, "options")}
    return replace(shown, **limited, warnings=tuple(warnings.values()))


def _within(part: str, entries: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the entries of a part of a result, without those that exceed the limits of the part."""
    kept: dict[Any, Any] = {}
    values = size = 0
    for key, entry in entries.items():
        more, longer = sum(1 for _ in _texts_and_values({key: entry})), _size({str(key): to_plain(entry)}) + 2
        if values + more <= MOST_VALUES[part] and size + longer <= LONGEST_PART[part]:
            kept[key], values, size = entry, values + more, size + longer
    return kept


def _cut(value: Any) -> Any:
    """Return the same tree with long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _cut(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, Mapping):
        return {str(key)[:LONGEST_KEY]: _cut(entry) for key, entry in value.items()}
    return type(value)(map(_cut, value)) if isinstance(value, (list, tuple)) else value


def _texts_and_values(value: Any) -> Iterator[tuple[bool, Any]]:
    """Yield all keys (True, key) and leaves (False, value) of a JSON tree."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield True, key
            yield from _texts_and_values(entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _texts_and_values(entry)
    else:
        yield False, value


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
