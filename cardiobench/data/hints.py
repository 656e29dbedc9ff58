"""Fingerprint and hint of each recording, from the state of its files before it is read.

The fingerprint is the name under which the vectors of a recording are stored. It covers size and modification time. The
hint also covers the other parts of `FileState`. An equal hint is taken to mean that the recording is the stored one;
otherwise the digest of its content decides (`embeddings.recognize`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cardiobench.core.tables import TEXT
from cardiobench.data.digests import hexadecimal, text_digest
from cardiobench.data.file_index import FileIndex, SourceFile

UNKNOWN = 0
"""Hint of a recording whose files are unknown; it equals no other hint."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd factor of Fibonacci hashing, which distributes the bits of the first hash before the second is added."""


def with_hints(
    frame: pd.DataFrame, sources: Mapping[str, Sequence[SourceFile]], origin: str, index: FileIndex | None
) -> pd.DataFrame:
    """Return rows with the columns `fingerprint` and `hint`.

    Args:
        frame: Rows with media, record and optionally key_frame.
        sources: Recording -> its files.
        origin: Name and version of the dataset, and the generator of the recordings.
        index: Index of the raw folder, to use the content of the files in place of their modification times; None uses
            the times.
    """
    codes, media = pd.factorize(frame["media"])
    known = [sources.get(name) for name in media]
    read_from = pd.DataFrame({"record": frame["record"].astype(str)})
    if "key_frame" in frame:
        read_from["key_frame"] = frame["key_frame"].astype(str)

    def digests(changes: Sequence[object]) -> pd.Series:
        texts = [f"{name}\x1f{change}" for name, change in zip(media, changes, strict=True)]
        read_from.insert(0, "files", pd.Categorical.from_codes(codes, texts))
        # Nearly all texts differ, so finding equal ones first, as `categorize` does, would double the time.
        found = pd.util.hash_pandas_object(read_from, index=False, hash_key=text_digest(origin), categorize=False)
        del read_from["files"]
        return found

    by_time = digests(["" if files is None else [_key(one, one.state.modified) for one in files] for files in known])
    named = by_time
    if index is not None:
        named = digests(["" if files is None else [_key(one, index.content(one)) for one in files] for files in known])
    states = [f"{[(one.state.changed, one.state.inode) for one in files or ()]}" for files in known]
    hashes = pd.util.hash_array(np.array(states, dtype=object), categorize=False)
    marked = frame.copy(deep=False)
    marked["fingerprint"] = pd.array(hexadecimal(named), TEXT)
    marked["hint"] = mixed(by_time.to_numpy(), hashes[codes] if len(hashes) else hashes)
    return marked


def mixed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return hashes of pairs of hashes. The array is uint64 (n,); `UNKNOWN` where the first is unknown."""
    hashes = first.astype(np.uint64) * FACTOR ^ second.astype(np.uint64)
    return np.where(first == UNKNOWN, np.uint64(UNKNOWN), hashes)


def hints_of(frame: pd.DataFrame) -> np.ndarray:
    """Return the hints of rows. The array is uint64 (n,); `UNKNOWN` for rows from elsewhere without them."""
    return frame["hint"].to_numpy() if "hint" in frame else np.full(len(frame), UNKNOWN, np.uint64)


def _key(source: SourceFile, changed: int | str) -> tuple:
    return (source.state.size, changed, *([source.frame] if source.frame else []))
