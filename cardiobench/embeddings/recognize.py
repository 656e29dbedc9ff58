"""Recognise stored recordings by the states of their files, and by content where a state has changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cardiobench.core.tables import TEXT
from cardiobench.data.digests import text_digest
from cardiobench.data.hints import UNKNOWN, hints_of
from cardiobench.data.media.content import DIGEST_BYTES
from cardiobench.embeddings.positions import Positions
from cardiobench.embeddings.shard_file import boundaries
from cardiobench.embeddings.store import EmbeddingStore

Contents = Callable[[np.ndarray], Sequence[str]]
"""Function from positions of recordings to the digests of their content, empty for a recording that cannot be read."""
NONE = np.empty(0, np.int64)
NO_CONTENT = pa.scalar(bytes(DIGEST_BYTES), pa.binary(DIGEST_BYTES))


@dataclass(frozen=True)
class Recognized:
    """Recordings found in a store.

    Attributes:
        fingerprints: Fingerprint under which each recording is stored, or will be, (n,).
        missing: Positions of the recordings that are not stored, (m,).
        moved: Positions of recordings whose files have another state, but the stored content.
        replaced: Positions of recordings that are stored only with different content.
        renamed: Whether any fingerprint differs from the given one.
    """

    fingerprints: pd.Series
    missing: np.ndarray
    moved: np.ndarray = field(default_factory=NONE.copy)
    replaced: np.ndarray = field(default_factory=NONE.copy)
    renamed: bool = False


def recognize(store: EmbeddingStore, rows: pd.DataFrame, contents: Contents, *, by_content: bool = False) -> Recognized:
    """Find recordings in a store.

    A recording is the stored one if its hint is that of a shard. Shards without hints are compared by fingerprint. If the
    hint differs, the digest of the content decides: a copied recording keeps its vectors, and a replaced one gets another
    fingerprint, even if size and modification time of its file were restored.

    Args:
        store: Embeddings of one model and dataset, with the hints of their recordings.
        rows: `id`, `fingerprint` and `hint` of recordings with unique ids.
        contents: Function that reads recordings and returns their digests.
        by_content: Whether hints are not trusted, so that the content of every recording is read.
    """
    fingerprints, hints = rows["fingerprint"], hints_of(rows)
    wanted, marks = Positions(rows["id"]), pa.array(fingerprints, pa.string())
    left = np.ones(len(rows), dtype=bool)
    names: dict[int, str] = {}
    others: list[tuple[np.ndarray, pa.Array, pa.Array]] = []
    for shard in sorted(store.folder.glob("*.arrow")):
        if not left.any():
            break
        if (table := store.open_shard(shard)) is None:
            continue
        starts, _ = boundaries(table)
        positions = wanted.find(table["id"].combine_chunks().take(starts))
        good = positions >= 0
        good[good] = left[positions[good]]
        positions, starts = positions[good], starts[good]
        stamps = table["stamp"].combine_chunks().take(starts)
        same = equal = np.asarray(pc.equal(marks.take(positions), stamps))
        if "hint" in table.column_names:
            own, stored = hints[positions], table["hint"].combine_chunks().take(starts).to_numpy()
            digests = table["content"].combine_chunks().take(starts)
            known = np.asarray(pc.not_equal(digests, NO_CONTENT))
            same = np.where((own == UNKNOWN) | (stored == UNKNOWN), equal, own == stored)
            same = np.where(known, False, equal) if by_content else same
            if (other := known & ~same).any():
                others.append((positions[other], stamps.filter(pa.array(other)), digests.filter(pa.array(other))))
        left[positions[same]] = False
        if (renamed := same & ~equal).any():
            names |= zip(positions[renamed].tolist(), stamps.filter(pa.array(renamed)).to_pylist(), strict=True)
    moved, replaced = _compared(others, left, contents, names, fingerprints)
    if not names:
        return Recognized(fingerprints, np.flatnonzero(left), moved, replaced)
    texts = fingerprints.to_numpy(dtype=object).copy()
    texts[list(names)] = list(names.values())
    renamed = pd.Series(pd.array(texts, TEXT), index=fingerprints.index)
    return Recognized(renamed, np.flatnonzero(left), moved, replaced, renamed=True)


def _compared(
    others: Sequence[tuple[np.ndarray, pa.Array, pa.Array]],
    left: np.ndarray,
    contents: Contents,
    names: dict[int, str],
    fingerprints: pd.Series,
) -> tuple[np.ndarray, np.ndarray]:
    """Compare the content of recordings with that of shards; clear `left` where it is equal, and fill `names`.

    Returns:
        Positions with equal, and with different content.
    """
    asked = np.unique(np.concatenate([positions for positions, *_ in others])) if others else NONE
    asked = asked[left[asked]]
    if not len(asked):
        return NONE, NONE
    digests = dict(zip(asked.tolist(), contents(asked), strict=True))
    used: dict[int, set[str]] = {position: set() for position in digests}
    for positions, stamps, stored in others:
        for position, stamp, content in zip(positions.tolist(), stamps.to_pylist(), stored.to_pylist(), strict=True):
            if position in used:
                used[position].add(stamp)
                if left[position] and content.hex() == digests[position]:
                    left[position], names[position] = False, stamp
    for position in asked[left[asked]].tolist():
        stated = fingerprints.iloc[position]
        if stated in used[position]:  # Size and modification time are those of the former file.
            names[position] = text_digest(stated, digests[position])
    return asked[~left[asked]], asked[left[asked]]
