"""Check of vectors by split: test rows that were standardised separately from the training rows."""

from collections.abc import Iterator, Sequence

import numpy as np

from cardiobench.embeddings.vector_table import VectorTable

CLOSE = 0.01
"""Fraction of a standard error within which the means of independent rows agree in all directions only by an improbable
coincidence."""
SAME = 1e-6
"""Fraction of the spread within which two maxima count as equal."""
FEWEST = 10
"""Minimum number of recordings of a split for this check."""
TRAIN, TEST = "train", "test"


def audit_splits(table: VectorTable, ids: Sequence[str], splits: Sequence[str], dataset: str) -> Iterator[str]:
    """Yield sentences about signs that rows were standardised within their split.

    The means of two samples of patients differ by about their standard error, in each of many directions. If all of
    them agree to a hundredth of it, or all maxima are equal, each split was standardised separately.

    Args:
        table: Vectors of one dataset.
        ids: Ids of its recordings.
        splits: Split of each.
        dataset: Name of the dataset.
    """
    names, split_of = np.asarray(ids, dtype=object), np.asarray(splits, dtype=object)
    groups = {}
    for name in dict.fromkeys((TRAIN, *split_of)):
        places = table.places.get_indexer(names[split_of == name])
        if (found := places[places >= 0]).size >= FEWEST:
            groups[name] = found
    if TRAIN not in groups:
        return
    facts = {name: _Facts(table, places) for name, places in groups.items()}
    train = facts.pop(TRAIN)
    for name, one in facts.items():
        if reason := _apart(train, one):
            yield (
                f"{dataset}: the {name} rows look standardised separately from the training rows ({reason}). Standardise all rows by the "
                "numbers of the training rows, or not at all, because a probe does not transfer between scales"
            )
    whole = _Facts(table, np.concatenate(list(groups.values())))
    if facts and whole.centred and not train.centred:
        yield (
            f"{dataset}: the vectors look standardised by all rows together, test rows included (their mean is 0 in all "
            f"{whole.width} directions, that of the training rows is not)"
        )


class _Facts:
    """Moments of the vectors of a split, in the directions that vary.

    The standard error is that of the recordings' means, because several vectors of one recording are not independent.
    """

    def __init__(self, table: VectorTable, places: np.ndarray):
        lengths = np.diff(table.offsets)[places]
        first = np.cumsum(lengths) - lengths
        rows = np.repeat(table.offsets[places] - first, lengths) + np.arange(lengths.sum())
        vectors = table.vectors[rows].astype(np.float64)
        means = np.add.reduceat(vectors, first, axis=0) / lengths[:, None]
        self.mean, self.error = vectors.mean(axis=0), means.std(axis=0) / np.sqrt(len(means))
        self.low, self.high = vectors.min(axis=0), vectors.max(axis=0)
        self.once = (vectors == self.high).sum(axis=0) == 1
        self.varies = self.error > 0
        self.width = int(self.varies.sum())

    @property
    def centred(self) -> bool:
        """Return whether the mean is 0 in all directions, far closer than by chance."""
        chosen = self.varies
        return self.width > 1 and bool((np.abs(self.mean[chosen]) < CLOSE * self.error[chosen]).all())


def _apart(train: _Facts, other: _Facts) -> str:
    """Return the sign that rows were standardised by their own statistics; empty if there is none."""
    varies = train.varies & other.varies
    if varies.sum() < 2:
        return ""
    where = f"in all {varies.sum()} directions"
    if other.centred:
        return f"their own mean is 0 {where}"
    if (np.abs(train.mean - other.mean)[varies] < CLOSE * other.error[varies]).all():
        return f"the means of both agree {where}, far closer than those of other patients do"
    spread = train.high - train.low
    same = other.once & train.once & (np.abs(train.high - other.high) <= SAME * spread)
    return f"the largest values of both are the same {where}" if same[varies].all() else ""
