"""Kinds of DICOM recordings, read from their headers and cached."""

import os
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from cardiobench.core.config import default_cache
from cardiobench.core.io import sha256_of_json, write_atomic
from cardiobench.data.file_index import FileIndex
from cardiobench.data.media.dicom_regions import UNREAD, recording_kind
from cardiobench.data.rows import check_relative

CHUNK = 500  # Headers per job: about a second.


def recording_kinds(raw: Path, media: pd.Series) -> pd.Series:
    """Return the kind of each recording: 2D, colour, spectral, still, or unread (missing, or not a DICOM file).

    Headers of files whose size and modification time are unchanged are not read again.

    Args:
        raw: Raw folder of the release.
        media: Paths below it.
    """
    index = FileIndex(raw)
    paths, states = [], []
    for relative in media:
        check_relative(raw, relative)
        path = index.find(relative)
        status = None if path is None else index.stat(path)
        paths.append(path)
        states.append((0, 0) if status is None else (status.st_size, status.st_mtime_ns))
    table = pd.DataFrame(states, columns=["size", "changed"]).assign(path=paths)
    file = default_cache() / "headers" / f"{sha256_of_json(os.path.realpath(raw))[:16]}.parquet"
    table = table.merge(_cached(file), on=["path", "size", "changed"], how="left")
    table.loc[table["path"].isna(), "kind"] = UNREAD
    new = np.flatnonzero(table["kind"].isna())
    if len(new):
        chunks = [[raw / path for path in table["path"].iloc[new[i : i + CHUNK]]] for i in range(0, len(new), CHUNK)]
        jobs = 1 if len(chunks) == 1 else -1
        kinds = joblib.Parallel(jobs)(joblib.delayed(_kinds)(chunk) for chunk in chunks)
        table.loc[new, "kind"] = [kind for part in kinds for kind in part]
        known = table[table["path"].notna()].drop_duplicates("path")
        write_atomic(file, lambda path: known.to_parquet(path, index=False))
    return pd.Series(table["kind"].to_numpy(), index=media.index)


def _cached(file: Path) -> pd.DataFrame:
    """Return the cached kinds; none if the file is missing or damaged."""
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError):
        return pd.DataFrame(columns=["path", "size", "changed", "kind"])


def _kinds(paths: list[Path]) -> list[str]:
    return [recording_kind(path) for path in paths]
