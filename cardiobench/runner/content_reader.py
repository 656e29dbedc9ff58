"""Read the content of recordings whose files have changed since they were encoded, once per state of the files."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa

from cardiobench.core.config import default_cache
from cardiobench.core.console import Console
from cardiobench.core.errors import UnwritableOutput
from cardiobench.core.io import sha256_of_json
from cardiobench.core.tables import write_parquet
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.hints import UNKNOWN, hints_of
from cardiobench.runner.context import RunContext

BLOCK = 256
"""Recordings that are read between two steps of the progress bar."""
MOST_THREADS = 8


@dataclass(frozen=True)
class ContentReader:
    """Reader of the digests of recordings.

    Attributes:
        console: Console for the progress bar; None for no progress bar.
        reread: Whether to read recordings even if the digests of files in this state are known.
    """

    console: Console | None = None
    reread: bool = False

    @classmethod
    def of(cls, context: RunContext) -> Self:
        """Return the reader of a run. With `--verify`, the main process reads everything, and the others use its digests."""
        return cls(context.console, context.config.verify and context.accelerator.is_main_process)

    def read(self, dataset: OpenDataset, numbers: np.ndarray) -> Sequence[str]:
        """Return the digests of rows of a dataset, empty for recordings that cannot be read."""
        if self.console is None:
            return contents(dataset, numbers, reread=self.reread)
        with self.console.progress(dataset.spec.name, len(numbers), "reading") as advance:
            return contents(dataset, numbers, reread=self.reread, advance=advance)


def contents(
    dataset: OpenDataset,
    numbers: np.ndarray,
    *,
    reread: bool = False,
    advance: Callable[[int], None] = lambda count: None,
) -> list[str]:
    """Return the digest of the content of recordings, empty for those that cannot be read.

    Digests are kept in the user's cache under the hints of the recordings.

    Args:
        dataset: Dataset whose recordings can be read.
        numbers: Rows of its frame, (n,).
        reread: Whether to read recordings even if their digests are known.
        advance: Function called with the number of finished recordings.
    """
    hints, found = hints_of(dataset.frame)[numbers], np.full(len(numbers), "", dtype=object)
    file = (
        default_cache()
        / "contents"
        / f"{sha256_of_json([dataset.spec.name, os.path.realpath(dataset.raw or '')])[:16]}.parquet"
    )
    known = _kept(file)
    if not reread:
        found = pd.Series(hints).map(known).fillna("").to_numpy(dtype=object, copy=True)
    unread = np.flatnonzero(found == "")
    advance(len(numbers) - len(unread))
    with joblib.Parallel(min(joblib.cpu_count(), MOST_THREADS), prefer="threads") as pool:
        for start in range(0, len(unread), BLOCK):
            block = unread[start : start + BLOCK]
            found[block] = pool(joblib.delayed(dataset.content)(int(number)) for number in numbers[block])
            advance(len(block))
    new = pd.Series(found[unread], index=hints[unread])
    new = new[(new != "") & (new.index != UNKNOWN)]
    if len(new):
        kept = pd.concat([known, new])
        kept = kept[~kept.index.duplicated(keep="last") & kept.index.isin(hints_of(dataset.frame))]
        with contextlib.suppress(UnwritableOutput):  # A failed write only makes the next start slower.
            write_parquet(kept.rename("content").rename_axis("hint").reset_index(), file)
    return found.tolist()


def _kept(file: Path) -> "pd.Series[str]":
    """Return a mapping from hint to kept digest; empty if the file is missing or damaged."""
    try:
        table = pd.read_parquet(file, columns=["hint", "content"]).drop_duplicates("hint")
        return pd.Series(table["content"].to_numpy(dtype=object), index=table["hint"].astype(np.uint64))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return pd.Series([], index=np.array([], np.uint64), dtype=object)
