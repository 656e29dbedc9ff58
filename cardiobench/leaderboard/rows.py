"""Rows of a file in a dataset of results: each column has to repeat a value of the result in the row."""

import io
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from cardiobench.core.errors import BadData
from cardiobench.core.io import parse_json
from cardiobench.hub.results_dataset import COLUMNS, parquet, records
from cardiobench.results.score_result import ScoreResult

OLDER = ("result", "result_id", "beats_floor")
"""Columns in which rows that were written by an older schema differ."""


def differing_rows(content: bytes, user: str) -> Iterator[str]:
    """Yield how the rows of a file differ from those that its results make; results that cannot be read are passed over.

    Args:
        content: A file whose results `read_entries` has read.
        user: Account in whose name the file is.
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
            yield f"{result.task} {result.label}: {len(own)} rows, and a result has one for each of its {len(made)} metrics"
            continue
        if not is_older and text != made[result.metric]["result"]:
            yield f"{result.task} {result.label}: its JSON is written in another way than results are"
        yield from _differing_columns(own, made, OLDER if is_older else ("result",))
    written = pq.read_schema(io.BytesIO(content))
    if not older and not written.equals(pq.read_schema(io.BytesIO(parquet([])))):
        yield f"its columns are {', '.join(written.names)}, not {', '.join(COLUMNS)} with their types"


def _differing_columns(rows: list[dict], made: dict[str, dict], skipped: tuple[str, ...]) -> Iterator[str]:
    for row in rows:
        wanted = made[row["metric"]]
        for name in COLUMNS:
            if name in row and name not in skipped and row[name] != wanted[name]:
                where = f"{wanted['task']}, {wanted['metric']}"
                yield f"{where}: the column {name} says {row[name]!r}, the result {wanted[name]!r}"
