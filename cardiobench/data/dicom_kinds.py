"""Kinds of DICOM recordings, read from their headers and cached."""

import os
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from cardiobench.core.config import default_cache
from cardiobench.core.file_state import FileState, state_of
from cardiobench.core.io import sha256_of_json, write_atomic
from cardiobench.data.file_index import FileIndex
from cardiobench.data.media.dicom_regions import UNREAD, recording_kind
from cardiobench.data.rows import check_relative

COLUMNS = ["path", *FileState._fields, "kind"]
NO_FILE = FileState(0, 0, 0, 0)
CHUNK = 500  # Headers per job: about a second.


def recording_kinds(raw: Path, media: pd.Series) -> pd.Series:
    """Return the kind of each recording: 2D, colour, spectral, still, or unread (missing, or not a DICOM file).

    Headers of files whose state is unchanged are not read again.

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
        states.append(NO_FILE if status is None else state_of(status))
    table = pd.DataFrame(states, columns=FileState._fields).assign(path=paths)
    file = default_cache() / "headers" / f"{sha256_of_json(os.path.realpath(raw))[:16]}.parquet"
    table = table.merge(_cached(file), on=["path", *FileState._fields], how="left")
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
        return pd.read_parquet(file, columns=COLUMNS)
    except (OSError, ValueError):  # A table of an earlier version lacks columns.
        return pd.DataFrame(columns=COLUMNS)


def _kinds(paths: list[Path]) -> list[str]:
    return [recording_kind(path) for path in paths]
