"""Check that the columns of a results file repeat the values of the result in each row."""

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cardiobench.core.errors import BadData
from cardiobench.core.io import parse_json
from cardiobench.hub.results_dataset import COLUMNS, parquet, records
from cardiobench.results.score_result import ScoreResult

OLDER = ("result", "result_id", "beats_floor")
"""Columns that may differ in rows of older schemas."""


def differing_rows(content: bytes, user: str) -> Iterator[str]:
    """Yield differences between the rows of a file and those generated from its results, ignoring unreadable results.

    Args:
        content: Content of a file that `read_entries` has read.
        user: Account that owns the file.
    """
    table = pq.read_table(io.BytesIO(content), read_dictionary=["result"])
    texts = table["result"].combine_chunks()
    if not isinstance(texts, pa.DictionaryArray):
        yield "its column result is not text"
        return
    rows = table.drop_columns(["result"]).to_pylist()
    older = False
    for number, text in enumerate(texts.dictionary.to_pylist()):
        own = [row for row, index in zip(rows, texts.indices.to_pylist(), strict=True) if index == number]
        try:
            record = parse_json(text)
            result = ScoreResult.from_json(record)
        except BadData:
            continue
        is_older = record["schema"] != ScoreResult.schema
        older = older or is_older
        made = {row["metric"]: row for row in records(result, user)}
        if Counter(row["metric"] for row in own) != Counter(list(made)):
            yield f"{result.task} {result.label}: {len(own)} rows, expected one for each of its {len(made)} metrics"
            continue
        if not is_older and text != made[result.metric]["result"]:
            yield f"{result.task} {result.label}: its JSON is not formatted like that of results"
        yield from _differing_columns(own, made, OLDER if is_older else ("result",))
    written = pq.read_schema(io.BytesIO(content))
    if not older and not written.equals(pq.read_schema(io.BytesIO(parquet([])))):
        yield f"its columns are {', '.join(written.names)}, not {', '.join(COLUMNS)} with their types"


def _differing_columns(
    rows: list[dict[str, Any]], made: dict[str, dict[str, Any]], skipped: tuple[str, ...]
) -> Iterator[str]:
    for row in rows:
        wanted = made[row["metric"]]
        for name in COLUMNS:
            if name in row and name not in skipped and row[name] != wanted[name]:
                where = f"{wanted['task']}, {wanted['metric']}"
                yield f"{where}: the column {name} is {row[name]!r}, but the result has {wanted[name]!r}"
