"""Balanced samples of the datasets in an analysis."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cardiobench.core.errors import NotApplicable
from cardiobench.protocols.analysis import Analysis
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.subjects import class_names, classes_of

MIN_PER_CLASS = 15  # Minimum number of records per class and dataset, also needed by the folds of a cross-validation.


@dataclass(frozen=True)
class DatasetSample:
    """Records of one dataset, equally many of each class.

    Attributes:
        name: Name of the dataset.
        features: Features (n, d), float64.
        labels: Codes of `BalancedSample.classes`, (n,).
        patients: Patient of each row, shape (n,).
        ids: Ids of the recordings, shape (n,).
    """

    name: str
    features: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    patients: np.ndarray = field(repr=False)
    ids: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int, n_classes: int) -> "DatasetSample":
        """Return the first rows; classes alternate, so the rows stay balanced."""
        stop = max(count // n_classes, 1) * n_classes
        columns = (self.features, self.labels, self.patients, self.ids)
        return DatasetSample(self.name, *(column[:stop] for column in columns))


@dataclass(frozen=True)
class BalancedSample:
    """Samples of several datasets.

    Attributes:
        classes: Classes shared by all datasets.
        parts: Samples, one per dataset.
        left_out: Sentences about unused datasets and classes.
    """

    classes: tuple[str, ...]
    parts: tuple[DatasetSample, ...]
    left_out: tuple[str, ...] = ()

    def first(self, count: int) -> "BalancedSample":
        """Return at most `count` rows of each dataset."""
        parts = tuple(part.first(count, len(self.classes)) for part in self.parts)
        return BalancedSample(self.classes, parts, self.left_out)

    def select_dimensions(self, dimensions: np.ndarray) -> "BalancedSample":
        """Return the same records with some of their dimensions."""
        parts = tuple(replace(part, features=part.features[:, dimensions]) for part in self.parts)
        return replace(self, parts=parts)

    def shuffle_labels(self, seed: int) -> "BalancedSample":
        """Return the same records with the labels of each dataset permuted."""
        rng = np.random.default_rng(seed)
        return replace(self, parts=tuple(replace(part, labels=rng.permutation(part.labels)) for part in self.parts))

    @property
    def names(self) -> tuple[str, ...]:
        """Datasets, in order."""
        return tuple(part.name for part in self.parts)

    def concatenate(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features (n, d), labels (n,) and dataset codes (n,) of all rows."""
        datasets = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        return (
            np.concatenate([part.features for part in self.parts]),
            np.concatenate([part.labels for part in self.parts]),
            datasets,
        )


def draw(
    analysis: Analysis, max_records: int, *, least: int = MIN_PER_CLASS, splits: Sequence[str] = ()
) -> BalancedSample:
    """Draw at most `max_records` of every dataset, one per patient and class, with alternating classes.

    Only classes with enough records in every dataset are used; a dataset with fewer than two such classes is left out.
    Smaller draws are subsets of larger ones.

    Args:
        analysis: Analysis of one or several datasets.
        max_records: Maximum number of records of a dataset.
        least: Minimum number of records per class and dataset.
        splits: Splits to draw from; empty for all.

    Raises:
        NotApplicable: No dataset has two classes.
    """
    usable, left_out = {}, []
    for task in analysis.tasks:
        data = analysis.data(task)
        rows = candidates(data, analysis.seed, splits)
        classes = [name for name in class_names(task) if len(rows.get(name, ())) >= least]
        if len(classes) < 2:
            counts = ", ".join(f"{name} {len(rows.get(name, ()))}" for name in class_names(task))
            left_out.append(f"{task.dataset} has too few records of two classes ({counts}; {least} needed)")
        else:
            usable[task.dataset] = data, rows, classes
    common = _common([classes for _, _, classes in usable.values()])
    while usable and len(common) < 2:  # Drop the dataset with the fewest classes in common with the others.
        odd = min(usable, key=lambda name: sum(len({*usable[name][2]} & {*other}) for _, _, other in usable.values()))
        left_out.append(f"{odd} shares fewer than two classes with the others ({', '.join(usable.pop(odd)[2])})")
        common = _common([classes for _, _, classes in usable.values()])
    if not usable:
        raise NotApplicable("; ".join(left_out))
    parts = tuple(_sample(name, data, rows, common, max_records) for name, (data, rows, _) in usable.items())
    return BalancedSample(common, parts, tuple(left_out))


def candidates(data: TaskData, seed: int, splits: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return shuffled rows (m,) by class, one per patient, of some splits or of all.

    A patient with both of two classes counts as positive.
    """
    order = np.lexsort([data.rows["id"].to_numpy(str)])
    order = order[np.random.default_rng(seed).permutation(len(order))]
    if splits:
        order = order[np.isin(order, data.indices(*splits))]
    names = classes_of(data)
    taken: set[str] = set()
    rows_of = {}
    for name in reversed(class_names(data.task)):
        rows = order[names[order] == name]
        _, first = np.unique(data.patients[rows].astype(str), return_index=True)
        rows = rows[np.sort(first)]
        if data.task.rules.two_classes:
            rows = rows[[patient not in taken for patient in data.patients[rows]]]
            taken |= set(data.patients[rows])
        rows_of[name] = rows
    return rows_of


def _common(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(name for name in lists[0] if all(name in other for other in lists)) if lists else ()


def _sample(
    name: str, data: TaskData, rows: dict[str, np.ndarray], classes: tuple[str, ...], max_records: int
) -> DatasetSample:
    """Return the first rows of each class, equally many, with the classes taking turns.

    `rows` has the shuffled rows (m,) of each class.
    """
    per_class = min(max(max_records // len(classes), 1), *(len(rows[label]) for label in classes))
    chosen = np.stack([rows[label][:per_class] for label in classes], axis=1).reshape(-1)
    labels = np.tile(np.arange(len(classes)), per_class)
    ids = data.rows["id"].to_numpy(str)[chosen]
    return DatasetSample(name, data.features[chosen].astype(np.float64), labels, data.patients[chosen], ids)
