"""Check that the columns of a results file repeat the values of the result in each row."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cardiobench.core.errors import BadData
from cardiobench.core.foreign import read_parquet
from cardiobench.core.io import parse_json
from cardiobench.hub.results_dataset import records
from cardiobench.hub.submission import COLUMNS, ROWS
from cardiobench.results.score_result import ScoreResult

OLDER = ("result", "result_id", "beats_floor")
"""Columns that may differ in rows of older schemas."""


def differing_rows(content: bytes, user: str) -> Iterator[str]:
    """Yield differences between the rows of a file and those generated from its results, ignoring unreadable results.

    Args:
        content: Content of a file that `read_entries` has read.
        user: Account that owns the file.

    Raises:
        BadData: The file cannot be read, or has no column of metrics.
    """
    table = read_parquet(content, replace(ROWS, required=(*ROWS.required, "metric"))).unify_dictionaries()
    texts = table["result"].combine_chunks()
    by_text: dict[int | None, list[dict[str, Any]]] = {}
    for index, row in zip(texts.indices.to_pylist(), table.drop_columns(["result"]).to_pylist(), strict=True):
        by_text.setdefault(index, []).append(row)
    older = False
    for number, text in enumerate(texts.dictionary.to_pylist()):
        own = by_text.get(number, [])
        try:
            result = ScoreResult.parse(text or "")
        except BadData:
            continue
        is_older = parse_json(text)["schema"] != ScoreResult.schema
        older = older or is_older
        made = {row["metric"]: row for row in records(result, user)}
        if Counter(row["metric"] for row in own) != Counter(list(made)):
            yield f"{result.task} {result.label}: {len(own)} rows; expected one for each of its {len(made)} metrics"
            continue
        if not is_older and text != made[result.metric]["result"]:
            yield f"{result.task} {result.label}: its JSON is not formatted like that of results"
        yield from _differing_columns(own, made, OLDER if is_older else ("result",))
    if not older and table.column_names != list(COLUMNS):
        yield f"its columns are {', '.join(table.column_names)}, not {', '.join(COLUMNS)}"


def _differing_columns(
    rows: list[dict[str, Any]], made: dict[str, dict[str, Any]], skipped: tuple[str, ...]
) -> Iterator[str]:
    for row in rows:
        wanted = made[row["metric"]]
        for name in COLUMNS:
            if name in row and name not in skipped and row[name] != wanted[name]:
                where = f"{wanted['task']}, {wanted['metric']}"
                yield f"{where}: the column {name} is {row[name]!r}, but the result has {wanted[name]!r}"
