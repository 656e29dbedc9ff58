"""Fingerprints of prepared recordings: digests of the encoder input, reread only when the files change."""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cardiobench.core.config import default_cache
from cardiobench.core.errors import BadData, UnwritableOutput
from cardiobench.core.file_state import file_state
from cardiobench.core.io import sha256_of_json
from cardiobench.core.tables import write_parquet

MEDIA = ("video", "image", "ecg")
BESIDE = ("fs", "key_frame")
"""Columns that affect the input of an encoder besides the recording itself."""
BATCH = 64


def fingerprints(shards: Sequence[Path], ids: Iterable[str], *, verify: bool = False) -> list[str]:
    """Return the fingerprint of each recording: a digest of content, rate and key frame.

    Fingerprints are cached by names and states of the files.

    Args:
        shards: Parquet files.
        ids: Ids of the recordings in the files.
        verify: Whether to read the files even if their fingerprints are cached.
    """
    states = [(str(path.resolve()), *file_state(path)) for path in shards]
    cache = default_cache() / "fingerprints" / f"{sha256_of_json(states)[:32]}.parquet"
    table, wanted = None if verify else _kept(cache), list(ids)
    if table is None or not set(wanted) <= set(table["id"]):
        pairs = [pair for path in shards for pair in _digests(path)]
        table = pd.DataFrame(pairs, columns=["id", "fingerprint"])
        with contextlib.suppress(UnwritableOutput):  # A failed write only makes the next start slower.
            write_parquet(table, cache)
    return table.set_index("id")["fingerprint"].loc[wanted].tolist()


def _kept(cache: Path) -> pd.DataFrame | None:
    """Return the cached fingerprints; None if the file is missing or damaged."""
    try:
        return pd.read_parquet(cache, columns=["id", "fingerprint"]) if cache.is_file() else None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return None


def _digests(path: Path) -> Iterator[tuple[str, str]]:
    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        (media,) = (name for name in MEDIA if name in names)
        beside = [name for name in BESIDE if name in names]
        for batch in file.iter_batches(BATCH, columns=["id", media, *beside]):
            extra = batch.select(beside).to_pylist()
            recordings = _contents(batch.column(media))
            for name, content, more in zip(batch.column("id").to_pylist(), recordings, extra, strict=True):
                digest = hashlib.sha256(str(sorted(more.items())).encode())
                digest.update(content)
                yield name, digest.hexdigest()[:16]
    except (pa.ArrowInvalid, OSError) as error:
        raise BadData(f"{path} is not a complete Parquet file ({error}). Prepare the dataset again.") from None


def _contents(column: pa.Array) -> Iterator[bytes]:
    """Yield the bytes of each recording: those of a file or of the samples of a signal."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type):
        for content in column.field("bytes"):
            yield content.as_py() or b""
    else:
        for signal in column:
            yield np.ascontiguousarray(signal.values.flatten().to_numpy(zero_copy_only=False)).tobytes()
