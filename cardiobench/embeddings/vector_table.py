"""Vectors from a user's file, grouped by recording, with the problems found in them."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xxhash

from cardiobench.core.errors import BadData, counted, first_n

BLOCK = 2**16
"""Number of rows hashed together."""
Key = tuple[str, str]
"""Dataset, empty if the file has none, and id of a recording."""


@dataclass(frozen=True)
class VectorRows:
    """Rows of a file before grouping.

    Attributes:
        source: Name of the file.
        ids: Id of each row, (rows,) text; None if missing.
        vectors: float32 or float16, (rows, dim); zeros if `widths` differ.
        widths: Number of values in each row, (rows,).
        parts: Part number of each row, (rows,); None without such a column.
        datasets: Dataset of each row, (rows,) text; None without such a column.
        pooling: `mean` or `mean_l2` if the file states how to pool the parts of a recording; empty otherwise.
    """

    source: str
    ids: np.ndarray
    vectors: np.ndarray
    widths: np.ndarray
    parts: np.ndarray | None = None
    datasets: np.ndarray | None = None
    pooling: str = ""


@dataclass(frozen=True)
class VectorTable:
    """Vectors of recordings, in the order of their datasets and ids.

    Attributes:
        source: Name of the file.
        keys: Dataset and id of each recording, sorted.
        offsets: Boundaries, (n + 1,); the parts of recording i are `vectors[offsets[i]:offsets[i + 1]]`.
        vectors: float32 or float16, (all parts, dim).
        problems: Sentences about problems of the file, with counts; empty for a valid file.
        pooling: Pooling stated by the file, as in `VectorRows`.
    """

    source: str
    keys: tuple[Key, ...]
    offsets: np.ndarray
    vectors: np.ndarray
    problems: tuple[str, ...] = ()
    pooling: str = ""

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.vectors.shape[1]

    @property
    def names_datasets(self) -> bool:
        """Return whether the file names the dataset of each recording."""
        return any(dataset for dataset, _ in self.keys)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets that the file names."""
        return tuple(sorted({dataset for dataset, _ in self.keys} - {""}))

    @cached_property
    def digest(self) -> str:
        """Digest of ids, parts and values, independent of the file format and the order of the recordings."""
        total = hashlib.sha256(f"{self.vectors.dtype} {self.dim}\n".encode())
        for (dataset, name), length in zip(self.keys, np.diff(self.offsets).tolist(), strict=True):
            total.update(f"{dataset}\x1f{name}\x1f{length}\n".encode("utf-8", "surrogatepass"))
        for start in range(0, len(self.vectors), BLOCK):
            total.update(np.ascontiguousarray(self.vectors[start : start + BLOCK]).view(np.uint8).data)
        return total.hexdigest()

    def of(self, dataset: str) -> "VectorTable":
        """Return the recordings of a dataset; all of them if the file names none."""
        if not self.names_datasets:
            return self
        chosen = [number for number, (name, _) in enumerate(self.keys) if name == dataset]
        # The keys are sorted by dataset, so the recordings are consecutive.
        low, high = (chosen[0], chosen[-1] + 1) if chosen else (0, 0)
        first, last = self.offsets[low], self.offsets[high]
        return replace(
            self,
            keys=tuple(("", name) for _, name in self.keys[low:high]),
            offsets=self.offsets[low : high + 1] - first,
            vectors=self.vectors[first:last],
        )

    @cached_property
    def places(self) -> pd.Index:
        """Ids of the recordings of one dataset."""
        return pd.Index([name for _, name in self.keys], dtype=object)

    def part_vectors(self, place: int) -> np.ndarray:
        """Return the vectors (P, dim) of one recording."""
        return self.vectors[self.offsets[place] : self.offsets[place + 1]]

    def check(
        self, needed: Sequence[str] = (), known: Sequence[str] = (), *, of: str = "", partly: bool = False
    ) -> None:
        """Check the file against the ids of a dataset.

        Args:
            needed: Ids of required recordings.
            known: Ids of all allowed recordings.
            of: Name of the dataset of these ids; empty to check the file alone.
            partly: Whether required recordings may be missing.

        Raises:
            BadData: The file or its ids have problems; a single message has all counts.
        """
        problems = list(self.problems)
        if of:
            missing = np.flatnonzero(self.places.get_indexer(pd.Index(needed, dtype=object)) < 0)
            if len(missing) and not partly:
                names = first_n(np.asarray(needed, dtype=object)[missing])
                problems.append(f"{len(missing)} of the {len(needed)} recordings of {of} are missing: {names}")
            foreign = self.places[~self.places.isin(known)]
            if len(foreign):
                problems.append(f"{len(foreign)} of {len(self.places)} ids are none of {of}: {first_n(foreign)}")
        if problems:
            raise BadData(f"{self.source}: {'; '.join(problems)}. {_remedy(of, self.problems)}")


def _remedy(of: str, problems: Sequence[str]) -> str:
    if problems:
        return "Write the file again: a row for each id, or several in the order of its parts with a column `part` (0, 1, ...)."
    return (
        f"`cardiobench references TASK` writes the ids of {of}; --allow-missing continues without the missing ones, and a column "
        "`dataset` tells the recordings of several datasets apart."
    )


def group_rows(rows: VectorRows) -> VectorTable:
    """Group the rows of a file by recording and collect problems."""
    problems: list[str] = []
    absent = np.array([not isinstance(name, str) or not name for name in rows.ids], dtype=bool)
    if absent.any():
        problems.append(f"{absent.sum()} of {len(absent)} rows have no id")
    problems += _width_problems(rows)
    names = np.where(absent, "", rows.ids).astype(object)
    sets = np.full(len(names), "", dtype=object) if rows.datasets is None else rows.datasets
    codes, keys = pd.factorize(pd.Series(list(zip(sets, names, strict=True)), dtype=object), sort=True)
    parts = None if rows.parts is None else np.asarray(rows.parts)
    repeated = _doubled(rows.vectors, codes, keys) if parts is None else _wrong_parts(parts, codes, keys)
    problems += repeated
    order = np.argsort(codes, kind="stable") if parts is None else np.lexsort((parts, codes))
    same = np.array_equal(order, np.arange(len(order)))
    vectors = rows.vectors if same else rows.vectors[order]
    lengths = np.bincount(codes, minlength=len(keys))
    offsets = np.r_[0, np.cumsum(lengths)]
    problems += _value_problems(vectors, offsets)
    return VectorTable(rows.source, tuple(keys), offsets, vectors, tuple(problems), rows.pooling)


def _width_problems(rows: VectorRows) -> list[str]:
    widths = Counter(rows.widths.tolist())
    if len(widths) > 1:
        counted = ", ".join(f"{count} rows of {width} numbers" for width, count in widths.most_common(5))
        more = f" and {len(widths) - 5} other widths" if len(widths) > 5 else ""
        return [f"the vectors have {len(widths)} widths: {counted}{more}"]
    return ["the vectors have no numbers"] if not rows.vectors.shape[1] else []


def _value_problems(vectors: np.ndarray, offsets: np.ndarray) -> list[str]:
    bad = np.zeros(len(vectors), dtype=bool)
    for start in range(0, len(vectors), BLOCK):
        bad[start : start + BLOCK] = ~np.isfinite(vectors[start : start + BLOCK]).all(axis=1)
    if not bad.any():
        return []
    recordings = len(np.unique(np.searchsorted(offsets, np.flatnonzero(bad), side="right")))
    return [f"{bad.sum()} of {len(bad)} vectors, of {recordings} ids, contain NaN, infinity or no values"]


def _shown(keys: Any, codes: np.ndarray) -> str:
    return first_n(" ".join(filter(None, keys[code])) for code in np.unique(codes))


def _doubled(vectors: np.ndarray, codes: np.ndarray, keys: Any) -> list[str]:
    """Return problems of repeated ids in a file without part numbers."""
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if len(codes) else np.zeros(0, dtype=int)
    apart = np.bincount(codes[starts], minlength=len(keys)) > 1
    if apart.any():
        found = np.flatnonzero(apart)
        return [f"{counted(len(found), 'id')} repeated in rows that are not consecutive: {_shown(keys, found)}"]
    several = np.flatnonzero(np.bincount(codes, minlength=len(keys))[codes] > 1)
    if not len(several):
        return []
    marks = [xxhash.xxh3_64_intdigest(np.ascontiguousarray(vectors[row]).data) for row in several]
    again = pd.DataFrame({"code": codes[several], "mark": marks}).duplicated().to_numpy()
    if not again.any():
        return []
    found = np.unique(codes[several[again]])
    return [f"{counted(len(found), 'id')} repeated with the same vector: {_shown(keys, found)}"]


def _wrong_parts(parts: np.ndarray, codes: np.ndarray, keys: Any) -> list[str]:
    """Return problems of part numbers; each recording needs 0, 1, ... once."""
    if parts.dtype.kind not in "iu":
        return ["the column `part` contains values other than whole numbers"]
    order = np.lexsort((parts, codes))
    sorted_codes, sorted_parts = codes[order], parts[order]
    same = np.r_[False, (sorted_codes[1:] == sorted_codes[:-1]) & (sorted_parts[1:] == sorted_parts[:-1])]
    if same.any():
        found = np.unique(sorted_codes[same])
        return [f"{counted(len(found), 'id')} repeated with the same part: {_shown(keys, found)}"]
    starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])
    expected = np.arange(len(parts)) - np.repeat(starts, np.diff(np.r_[starts, len(parts)]))
    found = np.unique(sorted_codes[sorted_parts != expected])
    return (
        [f"{counted(len(found), 'id')} without parts between 0 and their last: {_shown(keys, found)}"]
        if len(found)
        else []
    )
